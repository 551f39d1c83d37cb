/* cli/commands.c: the list of commands, in the order help shows them. */
#include "commands.h"

const cli_command *const cli_commands[] = {
    &cmd_data_fetch,
    &cmd_data_import,
    &cmd_data_world,
    &cmd_data_info,
    &cmd_data_text,
    &cmd_tokenizer_train,
    &cmd_tokenizer_encode,
    &cmd_tokenizer_decode,
    &cmd_tokenizer_info,
    &cmd_train,
    &cmd_build,
    &cmd_eval_bpb,
    &cmd_eval_core,
    &cmd_sample,
    &cmd_info,
    &cmd_report,
    &cmd_compare,
    &cmd_import,
    &cmd_bench_machine,
    &cmd_bench_gemm,
    &cmd_bench_kernels,
    &cmd_bench_step,
    &cmd_bench_loader,
    &cmd_bench_tokenizer,
    &cmd_doctor,
    &cmd_help,
    &cmd_serve_blocks,
};
const int cli_command_count = (int)(sizeof cli_commands / sizeof *cli_commands);
