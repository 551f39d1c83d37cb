/* cli/program.h: training through a submission's program. */
#ifndef FRONTIER_CLI_PROGRAM_H
#define FRONTIER_CLI_PROGRAM_H
#include "cli.h"

/* Builds the folder into RUN/program, runs `program train` with this command's options, passes signals on. */
fr_status cli_train_program(cli_run *run, const char *source, const char *run_folder, fr_error *error);

#endif
