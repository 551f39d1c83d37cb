/* cli/commands.h: every command's table, each defined in the cmd_ file named after it. */
#ifndef FRONTIER_CLI_COMMANDS_H
#define FRONTIER_CLI_COMMANDS_H
#include "cli.h"

extern const cli_command cmd_data_import, cmd_data_world, cmd_data_info, cmd_data_text, cmd_data_fetch;
extern const cli_command cmd_tokenizer_train, cmd_tokenizer_encode, cmd_tokenizer_decode, cmd_tokenizer_info;
extern const cli_command cmd_train, cmd_build, cmd_serve_blocks, cmd_eval_bpb, cmd_eval_core, cmd_sample;
extern const cli_command cmd_eval_causality, cmd_serve, cmd_data_scan;
extern const cli_command cmd_info, cmd_report, cmd_compare, cmd_import;
extern const cli_command cmd_export;
extern const cli_command cmd_bench_machine, cmd_bench_gemm, cmd_bench_kernels, cmd_bench_step, cmd_bench_loader,
    cmd_bench_tokenizer, cmd_bench_decode, cmd_bench_prefill;
extern const cli_command cmd_nki_run, cmd_nki_compare, cmd_nki_check, cmd_nki_accept, cmd_nki_isa, cmd_nki_rules;
extern const cli_command cmd_doctor, cmd_help;

#endif
