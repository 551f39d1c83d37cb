/* The parts of the timeline page that a browser runs. */
#ifndef REPORT_TIMELINE_H
#define REPORT_TIMELINE_H

extern const char fr_timeline_style[];
extern const char fr_timeline_script[];

#endif
