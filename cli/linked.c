/* cli/linked.c: finds the submission's one symbol.
 *
 * A submission's program is our command plus the contestant's objects; they define frontier_submission, we refer to
 * it weakly, so the same objects make both `frontier` and every submission's program.
 */
#include "linked.h"

extern const fr_submission frontier_submission __attribute__((weak));

const fr_submission *cli_linked_submission(void)
{
    return &frontier_submission;
}
