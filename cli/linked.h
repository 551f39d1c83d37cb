/* cli/linked.h: the submission this program was linked with, if it is one. */
#ifndef FRONTIER_CLI_LINKED_H
#define FRONTIER_CLI_LINKED_H
#include "frontier/submission.h"

const fr_submission *cli_linked_submission(void); /* NULL in `frontier` itself */

#endif
