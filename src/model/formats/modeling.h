/* modeling_frontier.py as the build put it in, line by line. */
#ifndef FRONTIER_MODEL_FORMATS_MODELING_H
#define FRONTIER_MODEL_FORMATS_MODELING_H

extern const char *const modeling_frontier_lines[]; /* with their newlines; ends with NULL */

#endif
