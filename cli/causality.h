/* cli/causality.h: a score too good to be true is refused until the model passed its probes. */
#ifndef FRONTIER_CLI_CAUSALITY_H
#define FRONTIER_CLI_CAUSALITY_H
#include "score.h"

/* FR_OK for a plausible score, and for any score of a model whose record in the run folder says it passed. */
fr_status cli_plausible(const cli_scored *scored, double bpb, double floor_bpb, fr_error *error);

#endif
