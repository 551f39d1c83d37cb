/* bench/cmd_bench.c: `frontier bench machine, gemm, loader, tokenizer`: the parts, each beside its bound. */
#include <stdlib.h>
#include <string.h>

#include "repeat.h"
#include "commands.h"
#include "frontier/cpu.h"
#include "frontier/text.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const cli_option thread_options[] = {
    {"threads", CLI_INT, "N", "0", "threads; 0 = all available", false, false},
};

/* ---- machine -------------------------------------------------------------------------------------------- */

typedef struct stream {
    float *target, *source;
    int64_t count;
    fr_pool *pool;
} stream;

static void add_streams(void *context)
{
    stream *s = context;
    fr_vector_add(s->target, s->source, s->count, s->pool);
}

static fr_status run_machine(cli_run *run, fr_error *error)
{
    fr_cpu_features features;
    fr_peak peak;
    stream s = {.count = 32 << 20};
    fr_cpu_detect(&features);
    FR_TRY(fr_pool_create(&s.pool, (int)cli_int(run, "threads", 0), error));
    int threads = fr_pool_threads(s.pool);
    s.target = fr_allocate((size_t)s.count * sizeof(float));
    s.source = fr_allocate((size_t)s.count * sizeof(float));
    fr_status status = s.target && s.source ? fr_cpu_peak(threads, 2, &peak, error)
                                            : fr_error_memory(error, (size_t)s.count * 8, "two streams");
    if (status == FR_OK) {
        bench_times times = bench_repeat(2, add_streams, &s);
        double bandwidth = 3.0 * (double)s.count * sizeof(float) / times.best;
        cli_print(run, "%s, %d threads, kernels %s\n", features.name, threads, features.path);
        cli_print(run, "  fp32 peak  %.1f GFLOP/s (register loop %.1f, library product %.1f)\n",
                  peak.flops / 1e9, peak.register_loop / 1e9, peak.library_product / 1e9);
        cli_print(run, "  memory     %.1f GB/s (two reads and a write of 128 MiB each)\n", bandwidth / 1e9);
        cli_put(run, "peak_flops", json_real(peak.flops));
        cli_put(run, "register_loop", json_real(peak.register_loop));
        cli_put(run, "library_product", json_real(peak.library_product));
        cli_put(run, "bandwidth_bytes_per_s", json_real(bandwidth));
        cli_put(run, "threads", json_integer(threads));
        cli_put(run, "kernels", json_string(features.path));
        cli_put(run, "basis", json_string("measured"));
    }
    fr_deallocate(s.target);
    fr_deallocate(s.source);
    fr_pool_free(s.pool);
    return status;
}

const cli_command cmd_bench_machine = {
    .name = "bench machine",
    .least = 0,
    .most = 0,
    .summary = "peak FLOP/s and memory bandwidth of this machine",
    .options = thread_options,
    .option_count = COUNT(thread_options),
    .examples = "  frontier bench machine",
    .run = run_machine,
    .schema = "bench-machine",
};

/* ---- gemm ------------------------------------------------------------------------------------------------ */

typedef struct product {
    const char *what;
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    float *a, *b, *c;
} product;

static void multiply(void *context)
{
    product *p = context;
    fr_gemm_f32(p->transpose_a, p->transpose_b, p->m, p->n, p->k, 1, p->a, p->transpose_a ? p->m : p->k, p->b,
                p->transpose_b ? p->k : p->n, 0, p->c, p->n);
}

static fr_status measure_product(cli_run *run, product *p, double peak, json_t *list, fr_error *error)
{
    int64_t sizes[] = {p->m * p->k, p->k * p->n, p->m * p->n};
    float **matrices[] = {&p->a, &p->b, &p->c};
    bool whole = true;
    for (int i = 0; i < 3; i++) {
        *matrices[i] = fr_allocate((size_t)sizes[i] * sizeof(float));
        whole = whole && *matrices[i];
        for (int64_t k = 0; whole && k < sizes[i]; k++)
            (*matrices[i])[k] = (float)(k % 17) * 0.1f - 0.8f;
    }
    if (whole) {
        bench_times t = bench_repeat(0.5, multiply, p);
        double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k / t.best;
        cli_print(run, "  %-26s %5lld x %5lld x %5lld  %8.1f GFLOP/s  %5.1f %% of peak\n", p->what,
                  (long long)p->m, (long long)p->n, (long long)p->k, flops / 1e9, 100 * flops / peak);
        json_array_append_new(list, json_pack("{s:s,s:I,s:I,s:I,s:f,s:f}", "what", p->what, "m",
                                              (json_int_t)p->m, "n", (json_int_t)p->n, "k", (json_int_t)p->k,
                                              "flops", flops, "of_peak", flops / peak));
    }
    for (int i = 0; i < 3; i++)
        fr_deallocate(*matrices[i]);
    return whole ? FR_OK
                 : fr_error_memory(error, (size_t)(sizes[0] + sizes[1] + sizes[2]) * 4, "a matrix product");
}

static fr_status run_gemm(cli_run *run, fr_error *error)
{
    product shapes[] = {
        {"square, forward", false, true, 1024, 640, 640, 0, 0, 0},
        {"up, forward", false, true, 1024, 2560, 640, 0, 0, 0},
        {"down, forward", false, true, 1024, 640, 2560, 0, 0, 0},
        {"head chunk, forward", false, true, 256, 8192, 640, 0, 0, 0},
        {"up, gradient of input", false, false, 1024, 640, 2560, 0, 0, 0},
        {"up, gradient of weight", true, false, 2560, 640, 1024, 0, 0, 0},
        {"Muon, X X^T", false, true, 640, 640, 2560, 0, 0, 0},
        {"large square", false, false, 2048, 2048, 2048, 0, 0, 0},
    };
    fr_peak peak;
    json_t *list = json_array();
    cli_put(run, "products", list);
    FR_TRY(fr_cpu_peak(1, 1, &peak, error));
    cli_print(run, "one thread; peak %.1f GFLOP/s (register loop %.1f, library product %.1f)\n",
              peak.flops / 1e9, peak.register_loop / 1e9, peak.library_product / 1e9);
    for (int i = 0; i < COUNT(shapes); i++)
        FR_TRY(measure_product(run, &shapes[i], peak.flops, list, error));
    cli_put(run, "peak_flops", json_real(peak.flops));
    cli_put(run, "basis", json_string("measured"));
    return FR_OK;
}

const cli_command cmd_bench_gemm = {
    .name = "bench gemm",
    .least = 0,
    .most = 0,
    .summary = "matrix products of the baseline's shapes against peak, one thread",
    .examples = "  frontier bench gemm --json",
    .run = run_gemm,
    .schema = "bench-gemm",
};

/* ---- loader ---------------------------------------------------------------------------------------------- */

static const cli_option loader_options[] = {
    {"data", CLI_PATH, "FOLDER", NULL, "data folder", false, true},
    {"context", CLI_INT, "T", "1024", "row length", false, false},
    {"packing", CLI_CHOICE, "best-fit|stream", "best-fit", "how rows are made", false, false},
};

typedef struct loading {
    fr_loader *loader;
    int32_t *inputs, *targets;
    int64_t rows;
    fr_status status;
    fr_error error;
} loading;

static void load_rows(void *context)
{
    loading *l = context;
    int64_t got;
    fr_status status = fr_loader_next(l->loader, l->rows, l->inputs, l->targets, &got, &l->error);
    if (status != FR_OK)
        l->status = status;
}

static fr_status run_loader(cli_run *run, fr_error *error)
{
    fr_corpus *corpus;
    int64_t T = cli_int(run, "context", 1024);
    loading l = {.rows = 64};
    FR_TRY(fr_corpus_open(&corpus, cli_text(run, "data"), false, error));
    fr_loader_options options = {
        .split = FR_TRAIN,
        .packing = strcmp(cli_text(run, "packing"), "stream") == 0 ? FR_PACK_STREAM : FR_PACK_BEST_FIT,
        .context = T};
    fr_status status = fr_loader_create(&l.loader, corpus, &options, error);
    l.inputs = fr_allocate((size_t)(l.rows * (T > 0 ? T : 1)) * 4);
    l.targets = fr_allocate((size_t)(l.rows * (T > 0 ? T : 1)) * 4);
    if (status == FR_OK && (!l.inputs || !l.targets))
        status = fr_error_memory(error, (size_t)(l.rows * T) * 8, "rows");
    if (status == FR_OK) {
        bench_times t = bench_repeat(2, load_rows, &l);
        status = l.status;
        *error = l.error;
        double rate = (double)(l.rows * T) / t.median;
        cli_print(run, "%.1f million tokens/s (median of %d calls of %lld rows of %lld)\n", rate / 1e6,
                  t.count, (long long)l.rows, (long long)T);
        cli_put(run, "tokens_per_s", json_real(rate));
        bench_put(run, "call", t);
    }
    fr_deallocate(l.inputs);
    fr_deallocate(l.targets);
    fr_loader_free(l.loader);
    fr_corpus_free(corpus);
    return status;
}

const cli_command cmd_bench_loader = {
    .name = "bench loader",
    .least = 0,
    .most = 0,
    .summary = "tokens per second that the loader packs, one thread",
    .options = loader_options,
    .option_count = COUNT(loader_options),
    .examples = "  frontier bench loader --data data/mine",
    .run = run_loader,
    .schema = "bench-loader",
};

/* ---- tokenizer ------------------------------------------------------------------------------------------- */

static const cli_option tokenizer_options[] = {
    {"vocab", CLI_INT, "N", "8192", "entries to train", false, false},
    {"threads", CLI_INT, "N", "0", "threads for training; 0 = all available", false, false},
};

typedef struct encoding {
    fr_tokenizer *tokenizer;
    const char *text;
    size_t bytes;
    int32_t *ids;
    int64_t count;
} encoding;

static void encode(void *context)
{
    encoding *e = context;
    e->count = fr_tokenizer_encode(e->tokenizer, e->text, e->bytes, e->ids, (int64_t)e->bytes + 1);
}

static fr_status train_on(const fr_mapping *file, const fr_tokenizer_options *options, fr_tokenizer **out,
                          fr_error *error)
{
    fr_tokenizer_trainer *trainer;
    FR_TRY(fr_tokenizer_trainer_create(&trainer, options, error));
    fr_status status = FR_OK;
    for (size_t at = 0; status == FR_OK && at < file->bytes;
         at += 8192) /* documents of 8 KiB, under the crop */
        status = fr_tokenizer_trainer_feed(trainer, (const char *)file->data + at,
                                           file->bytes - at < 8192 ? file->bytes - at : 8192, error);
    if (status == FR_OK)
        status = fr_tokenizer_trainer_finish(trainer, out, error);
    fr_tokenizer_trainer_free(trainer);
    return status;
}

static fr_status run_tokenizer(cli_run *run, fr_error *error)
{
    fr_mapping file;
    encoding e = {0};
    fr_tokenizer_options options = {.vocab = (int32_t)cli_int(run, "vocab", 8192)};
    FR_TRY(fr_mapping_init(&file, run->arguments[0], error));
    fr_status status = fr_pool_create(&options.pool, (int)cli_int(run, "threads", 0), error);
    double start = bench_now(), seconds = 0;
    if (status == FR_OK)
        status = train_on(&file, &options, &e.tokenizer, error);
    seconds = bench_now() - start;
    e.text = (const char *)file.data;
    e.bytes = file.bytes < (8u << 20) ? file.bytes : 8u << 20;
    e.ids = fr_allocate((e.bytes + 1) * sizeof *e.ids);
    if (status == FR_OK && !e.ids)
        status = fr_error_memory(error, e.bytes * 4, "token ids");
    if (status == FR_OK) {
        bench_times t = bench_repeat(2, encode, &e);
        cli_print(run, "trained %d entries on %.1f MB in %.2f s with %d threads (%.1f MB/s)\n",
                  fr_tokenizer_vocab(e.tokenizer), (double)file.bytes / 1e6, seconds,
                  fr_pool_threads(options.pool), (double)file.bytes / 1e6 / seconds);
        cli_print(run, "encoded at %.1f MB/s, one thread, %.2f bytes per token\n",
                  (double)e.bytes / 1e6 / t.median, (double)e.bytes / (double)(e.count ? e.count : 1));
        cli_put(run, "train_s", json_real(seconds));
        cli_put(run, "bytes", json_integer((json_int_t)file.bytes));
        cli_put(run, "encode_bytes_per_s", json_real((double)e.bytes / t.median));
        cli_put(run, "bytes_per_token", json_real((double)e.bytes / (double)(e.count ? e.count : 1)));
    }
    fr_deallocate(e.ids);
    fr_tokenizer_free(e.tokenizer);
    fr_pool_free(options.pool);
    fr_mapping_release(&file);
    return status;
}

const cli_command cmd_bench_tokenizer = {
    .name = "bench tokenizer",
    .arguments = "FILE",
    .least = 1,
    .most = 1,
    .summary = "training and encoding speed on a text file",
    .options = tokenizer_options,
    .option_count = COUNT(tokenizer_options),
    .examples = "  frontier bench tokenizer book.txt",
    .run = run_tokenizer,
    .schema = "bench-tokenizer",
};
