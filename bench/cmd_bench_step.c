/* bench/cmd_bench_step.c: `frontier bench step` and `bench kernels`: how near a training step is to the limit.
 *
 * One step is many equal micro-batches, the sum of the shards and one update, so these are measured and the whole step is
 * composed from their medians: at depth 10 and 65,536 tokens it would take over a minute on two cores. The peak is
 * measured before and after in the same run: the better of a register loop and the library's best product. Utilisation
 * is given twice: `full` counts attention over all T keys as published figures do, `causal` only the needed work.
 */
#include <math.h>
#include <stdlib.h>

#include "commands.h"
#include "step.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option step_options[] = {
    {"recipe", CLI_PATH, "FILE", NULL, "recipe to measure (default: the kit baseline)", false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key", true, false},
    {"vocab", CLI_INT, "N", "8192", "tokenizer entries", false, false},
    {"rows", CLI_INT, "N", "1", "rows per micro-batch and thread", false, false},
    {"threads", CLI_INT, "N", "0", "threads; 0 = all available", false, false},
    {"seconds", CLI_DURATION, "TIME", "10s", "how long to repeat the micro-batch", false, false},
};

static int by_time(const void *a, const void *b)
{
    double x = ((const step_operator *)a)->best, y = ((const step_operator *)b)->best;
    return (x < y) - (x > y);
}

static void report_operators(cli_run *run, step_bench *b)
{
    json_t *list = json_array();
    double total = 0, peak = b->peak.flops / b->threads;
    qsort(b->operators, (size_t)b->operator_count, sizeof *b->operators, by_time);
    for (int i = 0; i < b->operator_count; i++)
        total += b->operators[i].best;
    cli_print(run, "operators of one thread alone, per micro-batch:\n");
    for (int i = 0; i < b->operator_count; i++) {
        const step_operator *o = &b->operators[i];
        char of_peak[48] = "";
        if (o->flops > 0)
            snprintf(of_peak, sizeof of_peak, "%5.2f of peak", o->flops / o->best / peak);
        cli_print(run, "  %-36s %9.2f ms  %5.1f %%  %s\n", o->kernel, 1e3 * o->best, 100 * o->best / total,
                  of_peak);
        json_array_append_new(list,
                              json_pack("{s:s,s:s,s:s,s:f,s:f}", "operator", o->name, "pass",
                                        o->pass == FR_FORWARD ? "forward" : "backward", "kernel", o->kernel,
                                        "seconds", o->best, "of_peak", o->flops / o->best / peak));
    }
    cli_put(run, "operators", list);
}

static void put_peak(cli_run *run, const step_bench *b)
{
    cli_print(run, "peak %.1f GFLOP/s on %d threads (register loop %.1f, library product %.1f)\n",
              b->peak.flops / 1e9, b->threads, b->peak.register_loop / 1e9, b->peak.library_product / 1e9);
    cli_put(run, "peak_flops", json_real(b->peak.flops));
    cli_put(run, "peak_register_loop", json_real(b->peak.register_loop));
    cli_put(run, "peak_library_product", json_real(b->peak.library_product));
    cli_put(run, "threads", json_integer(b->threads));
    cli_put(run, "basis", json_string("measured"));
}

/* ---- bench step ---------------------------------------------------------------------------------- */

static void report_step(cli_run *run, step_bench *b, bench_times micro, bench_times sum, bench_times update)
{
    fr_extent extent = fr_plan_extent(b->plan);
    double tokens = (double)(extent.rows * extent.T), batch = (double)b->recipe.optim.batch_tokens;
    double full = fr_plan_flops(b->plan, true), causal = fr_plan_flops(b->plan, false),
           rounds = batch / tokens;
    double step = rounds / b->threads * micro.median + sum.median + update.median;
    double best = rounds / b->threads * micro.best + sum.best + update.best;
    double share = full / b->processor_seconds / (b->peak.flops / b->threads);
    cli_print(run, "micro-batch of %.0f tokens per thread: median %.1f ms, best %.1f ms of %d\n", tokens,
              1e3 * micro.median, 1e3 * micro.best, micro.count);
    cli_print(run, "  processor time of one thread %.1f ms at best: %.1f %% of its peak, full attention\n",
              1e3 * b->processor_seconds, 100 * share);
    cli_print(run, "shard sum %.1f ms, update %.1f ms\n", 1e3 * sum.median, 1e3 * update.median);
    cli_print(run, "step of %.0f tokens, composed: %.2f s, %.0f tokens/s\n", batch, step, batch / step);
    cli_print(run, "  mfu_full %.1f %%, mfu_causal %.1f %% (from the best times: %.1f %%, %.1f %%)\n",
              100 * full * rounds / step / b->peak.flops, 100 * causal * rounds / step / b->peak.flops,
              100 * full * rounds / best / b->peak.flops, 100 * causal * rounds / best / b->peak.flops);
    bench_put(run, "micro_batch", micro);
    bench_put(run, "shard_sum", sum);
    bench_put(run, "optimizer", update);
    cli_put(run, "processor_s", json_real(b->processor_seconds));
    cli_put(run, "processor_mfu_full", json_real(share));
    cli_put(run, "step_s", json_real(step));
    cli_put(run, "tokens_per_s", json_real(batch / step));
    cli_put(run, "mfu_full", json_real(full * rounds / step / b->peak.flops));
    cli_put(run, "mfu_causal", json_real(causal * rounds / step / b->peak.flops));
}

static fr_status measure_step(cli_run *run, step_bench *b, fr_error *error)
{
    FR_TRY(step_bench_peak(b, 1.5, error));
    bench_times micro = bench_repeat(cli_seconds(run, "seconds", 10), step_bench_micro_batches, b);
    bench_times sum = bench_repeat(0.2, step_bench_sum_shards, b);
    bench_times update = bench_repeat(1, step_bench_update, b);
    if (b->status != FR_OK) {
        *error = b->error;
        return b->status;
    }
    FR_TRY(step_bench_peak(b, 1.5, error));
    FR_TRY(step_bench_operators(b, 3, error));
    put_peak(run, b);
    report_step(run, b, micro, sum, update);
    report_operators(run, b);
    return FR_OK;
}

static fr_status with_bench(cli_run *run, fr_status (*measure)(cli_run *, step_bench *, fr_error *),
                            fr_error *error)
{
    step_bench *b = fr_arena_alloc(&run->arena, sizeof *b);
    if (!b)
        return fr_error_memory(error, sizeof *b, "the benchmark");
    fr_status status = step_bench_init(b, run, error);
    if (status == FR_OK)
        status = measure(run, b, error);
    step_bench_release(b);
    return status;
}

static fr_status run_bench_step(cli_run *run, fr_error *error)
{
    return with_bench(run, measure_step, error);
}

const cli_command cmd_bench_step = {
    .name = "bench step",
    .least = 0,
    .most = 0,
    .summary = "a training step against this machine's peak, operator by operator",
    .options = step_options,
    .option_count = COUNT(step_options),
    .details =
        "Micro-batch, shard sum and update are measured, the whole step is composed from them. mfu_full "
        "counts\n"
        "attention over all T keys, as published figures do; mfu_causal only the work a causal model needs.",
    .examples = "  frontier bench step --recipe recipes/baseline.toml\n  frontier bench step --set "
                "model.depth=4 --json",
    .run = run_bench_step,
    .schema = "bench-step",
};

/* ---- bench kernels ------------------------------------------------------------------------------- */

static const cli_option kernel_options[] = {
    {"recipe", CLI_PATH, "FILE", NULL, "whose operators (default: the kit baseline)", false, false},
    {"set", CLI_TEXT, "KEY=VALUE", NULL, "override a recipe key", true, false},
    {"vocab", CLI_INT, "N", "8192", "tokenizer entries", false, false},
    {"rows", CLI_INT, "N", "1", "rows of the micro-batch", false, false},
    {"threads", CLI_INT, "N", "1", "threads whose peak is measured; operators run on one", false, false},
    {"rounds", CLI_INT, "N", "3", "repetitions; the best counts", false, false},
};

static fr_status measure_kernels(cli_run *run, step_bench *b, fr_error *error)
{
    int64_t rounds = cli_int(run, "rounds", 3);
    if (rounds < 1 || rounds > 10000)
        return fr_error_set(error, FR_BAD_USAGE, "--rounds", "3 is a good choice",
                            "not between 1 and 10,000");
    FR_TRY(step_bench_peak(b, 1, error));
    FR_TRY(step_bench_operators(b, (int)rounds, error));
    FR_TRY(step_bench_peak(b, 1, error));
    put_peak(run, b);
    report_operators(run, b);
    return FR_OK;
}

static fr_status run_bench_kernels(cli_run *run, fr_error *error)
{
    return with_bench(run, measure_kernels, error);
}

const cli_command cmd_bench_kernels = {
    .name = "bench kernels",
    .least = 0,
    .most = 0,
    .summary = "each operator's kernels by themselves against one thread's peak",
    .options = kernel_options,
    .option_count = COUNT(kernel_options),
    .details = "A micro-batch runs on one thread; the time of every operator is the best of the rounds, in "
               "wall time.",
    .examples = "  frontier bench kernels --set model.depth=2\n  FRONTIER_KERNELS=avx2 frontier bench "
                "kernels --set model.depth=2",
    .run = run_bench_kernels,
    .schema = "bench-kernels",
};
