/* Every fast kernel against its reference: fp32, mixed bf16, bf16 stream; odd widths, tails, one token,
 * windows, shared heads; accumulation; the same bits on any number of threads; NaN comes out. Two thresholds
 * per dtype: a warning is printed, beyond the second the test fails. Differences are in units of the root
 * mean square of the reference. Set FRONTIER_KERNELS to test another table than this processor's best.
 */
#include "kernel_case.h"

#include <unistd.h>

typedef struct threshold {
    double warn, fail;
} threshold;
static const threshold thresholds[2] = {
    {2e-5, 1e-4}, {4e-2, 1.2e-1}}; /* fp32, bf16: an ulp of bf16 is 0.8 % of large elements */

#define TOKENS FR_TOKENS
#define X(C)                                                                                                 \
    {                                                                                                        \
        TOKENS, C, FR_KIND_ACTIVATION, 0                                                                     \
    }
#define S(C)                                                                                                 \
    {                                                                                                        \
        TOKENS, C, FR_KIND_STREAM, 0                                                                         \
    }
#define W(R, C)                                                                                              \
    {                                                                                                        \
        R, C, FR_KIND_PARAMETER, 0                                                                           \
    }
#define IDS(N)                                                                                               \
    {                                                                                                        \
        TOKENS, 1, FR_KIND_IDS, N                                                                            \
    }
#define SCALAR                                                                                               \
    {                                                                                                        \
        1, 1, FR_KIND_STATISTIC, 0                                                                           \
    }
#define NONE                                                                                                 \
    {                                                                                                        \
        0, 0, FR_KIND_ACTIVATION, 0                                                                          \
    }

static const fr_norm_options norm = {.eps = 1e-6}, stream_norm = {.eps = 1e-5, .stream = true};
static const fr_rotary_options rotary_plain = {.heads = 3, .base = 10000, .eps = 1e-6, .gain = 1};
static const fr_rotary_options rotary_norm = {
    .heads = 2, .base = 100000, .norm = true, .eps = 1e-6, .gain = 1.2};
static const fr_rotary_options rotary_pairs = {
    .heads = 2, .base = 10000, .interleaved = true, .eps = 1e-6, .gain = 1};
static const fr_rotary_options rotary_pairs_norm = {
    .heads = 1, .base = 100, .interleaved = true, .norm = true, .eps = 1e-6, .gain = 0.7};
static const fr_attention_options attention_one = {.heads = 1, .kv_heads = 1, .scale = 0.2};
static const fr_attention_options attention_full = {.heads = 2, .kv_heads = 2, .scale = 0.125};
static const fr_attention_options attention_window = {.heads = 4, .kv_heads = 2, .window = 20, .scale = 0.2};
static const fr_attention_options attention_narrow = {.heads = 2, .kv_heads = 1, .window = 1, .scale = 0.3};
static const fr_add_scaled_options minus = {.sign = -1};
static const fr_value_gate_options gate_range = {.range = 3};
static const fr_head_options head_cap = {.vocab = 61, .softcap = 15, .weight = 1},
                             head_plain = {.vocab = 64, .weight = 0.5};
static const fr_head_options head_wide = {.vocab = 700, .softcap = 5, .weight = 1};

static const kernel_case cases[] = {
    {"embed", 3, 5, 2, {W(17, 37), IDS(17)}, false, NULL, 0},
    {"embed", 1, 70, 2, {W(5, 64), IDS(5)}, false, NULL, 0},
    {"embed_positions", 3, 5, 2, {S(37), W(7, 37)}, false, NULL, 0},
    {"rms_norm", 1, 1, 1, {S(3)}, false, &norm, 0},
    {"rms_norm", 2, 9, 1, {S(37)}, false, &norm, 0},
    {"rms_norm", 2, 40, 2, {S(130), W(1, 130)}, false, &norm, 0},
    {"rms_norm", 2, 9, 1, {X(48)}, false, &stream_norm, 0},
    {"layer_norm", 2, 9, 3, {S(37), NONE, NONE}, false, &norm, 0},
    {"layer_norm", 2, 40, 3, {S(131), W(1, 131), W(1, 131)}, false, &norm, 0},
    {"layer_norm", 1, 3, 3, {S(16), W(1, 16), NONE}, false, &stream_norm, 0},
    {"linear", 1, 1, 2, {X(7), W(3, 7)}, false, NULL, 0},
    {"linear", 2, 33, 2, {X(65), W(47, 65)}, false, NULL, 0},
    {"linear", 1, 17, 2, {X(1300), W(33, 1300)}, false, NULL, 0},
    {"linear", 1, 70, 2, {X(40), W(1299, 40)}, false, NULL, 0.3},
    {"rotary", 2, 9, 1, {X(36)}, false, &rotary_plain, 0},
    {"rotary", 1, 40, 1, {X(128)}, false, &rotary_norm, 0},
    {"rotary", 2, 9, 1, {X(44)}, false, &rotary_pairs, 0},
    {"rotary", 2, 9, 1, {X(34)}, false, &rotary_pairs_norm, 0},
    {"attention", 1, 1, 3, {X(6), X(6), X(6)}, false, &attention_one, 0},
    {"attention", 2, 200, 3, {X(128), X(128), X(128)}, false, &attention_full, 0},
    {"attention", 2, 300, 3, {X(40), X(20), X(20)}, false, &attention_window, 0},
    {"attention", 1, 33, 3, {X(36), X(18), X(18)}, false, &attention_narrow, 0},
    {"attention", 1, 129, 3, {X(34), X(34), X(34)}, false, &attention_one, 2},
    {"relu_squared", 3, 7, 1, {X(37)}, false, NULL, 0},
    {"gelu", 3, 7, 1, {X(37)}, false, NULL, 2},
    {"swiglu", 3, 7, 2, {X(37), X(37)}, false, NULL, 2},
    {"add", 3, 7, 2, {S(37), X(37)}, false, NULL, 0},
    {"add_bias", 3, 7, 2, {X(37), W(1, 37)}, false, NULL, 0},
    {"add_bias", 1, 90, 2, {X(64), W(1, 64)}, false, NULL, 0},
    {"blend", 3, 70, 4, {W(1, 1), S(37), W(1, 1), S(37)}, false, NULL, 0},
    {"add_scaled", 3, 70, 3, {S(37), W(1, 1), S(37)}, false, &minus, 0},
    {"smear", 3, 30, 3, {S(37), W(1, 24), W(1, 1)}, false, NULL, 0},
    {"smear", 4, 1, 3, {S(20), W(1, 5), W(1, 1)}, false, NULL, 0},
    {"value_gate", 3, 30, 4, {X(36), S(36), X(41), W(2, 12)}, false, &gate_range, 0},
    {"value_gate", 1, 9, 4, {X(40), S(40), X(20), W(1, 20)}, false, &gate_range, 0},
    {"head_logits", 2, 9, 2, {X(37), W(64, 37)}, false, &head_cap, 0},
    {"head_logits", 2, 9, 2, {X(37), W(64, 37)}, false, &head_plain, 0},
    {"head_loss", 2, 20, 4, {X(37), W(64, 37), IDS(61), SCALAR}, true, &head_cap, 0},
    {"head_loss", 1, 7, 4, {X(32), W(64, 32), IDS(64), SCALAR}, true, &head_plain, 0},
    {"head_loss", 1, 40, 4, {X(20), W(704, 20), IDS(700), SCALAR}, false, &head_wide, 0.7},
};
enum { CASES = sizeof cases / sizeof *cases };

static const fr_kernel_table *table_of_this_machine(void)
{
    const fr_kernel_table *table = NULL;
    fr_error error = {0};
    CHECK_OK(fr_cpu_kernels(&table, &error));
    return table;
}

static void describe(char text[200], const kernel_case *c, const fr_kernel *kernel, bool bf16)
{
    snprintf(text, 200, "%s (%lld rows of %lld, width %lld, %s)", kernel->name, (long long)c->rows,
             (long long)c->T, (long long)c->in[0].columns, bf16 ? "bf16" : "fp32");
}

static void judge(const case_data *got, const case_data *want, const kernel_case *c, const fr_kernel *kernel)
{
    const char *where;
    char name[200], text[320];
    double difference = case_difference(got, want, kernel->pass, &where);
    threshold t = thresholds[got->bf16];
    describe(name, c, kernel, got->bf16);
    snprintf(text, sizeof text, "%s: %s differs by %.3g", name, where, difference);
    if (!(difference <= t.fail))
        test_fail(__FILE__, __LINE__, text);
    else if (difference > t.warn)
        printf("# warning: %s\n", text);
}

/* The reference and the fast kernel of one pass on one case. */
static void compare_pass(const kernel_case *c, const fr_kernel_table *table, fr_pass pass, case_width bf16,
                         bool accumulate)
{
    case_data forward, want, got;
    case_init(&forward, c, bf16, accumulate);
    if (!forward.op->reference[pass].run) {
        case_release(&forward);
        return;
    }
    case_init(&want, c, bf16, accumulate);
    case_init(&got, c, bf16, accumulate);
    case_run(&forward, &forward.op->reference[FR_FORWARD], NULL, NULL);
    case_run(&want, &want.op->reference[pass], pass == FR_BACKWARD ? &forward : NULL, NULL);
    const fr_kernel *kernel = case_find(table, c->op, pass, &got.call);
    if (kernel) {
        case_run(&got, kernel, pass == FR_BACKWARD ? &forward : NULL, NULL);
        judge(&got, &want, c, kernel);
    } else if (!want.op->reference_suffices) {
        test_fail(__FILE__, __LINE__, c->op);
    }
    case_release(&forward);
    case_release(&want);
    case_release(&got);
}

static void compare_all(case_width bf16, bool accumulate)
{
    const fr_kernel_table *table = table_of_this_machine();
    if (table->reference_only)
        SKIP("this processor has no fast kernels");
    for (int i = 0; i < CASES; i++)
        for (int pass = 0; pass < 2; pass++)
            compare_pass(&cases[i], table, (fr_pass)pass, bf16, accumulate);
}

TEST(fp32_overwrites)
{
    compare_all(CASE_F32, false);
}
TEST(fp32_accumulates)
{
    compare_all(CASE_F32, true);
}
TEST(bf16_overwrites)
{
    compare_all(CASE_BF16, false);
}
TEST(bf16_accumulates)
{
    compare_all(CASE_BF16, true);
}
TEST(bf16_stream)
{
    compare_all(CASE_BF16_STREAM, false);
}

static void compare_threads(const kernel_case *c, const fr_kernel_table *table, fr_pass pass, case_width bf16,
                            fr_pool *pool)
{
    case_data forward, one, many;
    case_init(&forward, c, bf16, true);
    const fr_kernel *kernel = case_find(table, c->op, pass, &forward.call),
                    *first = case_find(table, c->op, FR_FORWARD, &forward.call);
    if (kernel && first) {
        case_init(&one, c, bf16, true);
        case_init(&many, c, bf16, true);
        case_run(&forward, first, NULL, NULL);
        case_run(&one, kernel, pass == FR_BACKWARD ? &forward : NULL, NULL);
        case_run(&many, kernel, pass == FR_BACKWARD ? &forward : NULL, pool);
        char text[200];
        describe(text, c, kernel, bf16);
        if (!case_same_bits(&one, &many, pass))
            test_fail(__FILE__, __LINE__, text);
        case_release(&one);
        case_release(&many);
    }
    case_release(&forward);
}

TEST(a_pool_changes_no_bit)
{
    const fr_kernel_table *table = table_of_this_machine();
    fr_error error = {0};
    fr_pool *pool = NULL;
    CHECK_OK(fr_pool_create(&pool, 3, &error));
    for (int i = 0; i < CASES && pool; i++)
        for (int variant = 0; variant < 4; variant++)
            compare_threads(&cases[i], table, (fr_pass)(variant & 1), variant & 2 ? CASE_BF16 : CASE_F32,
                            pool);
    fr_pool_free(pool);
}

/* An element of input i whose NaN must reach the outputs; -1: nothing need show. */
static int64_t poisoned_element(const case_data *d, int i)
{
    const char *op = d->what->op;
    if (!d->node.in[i] || d->call.in_dtype[i] != FR_F32)
        return -1;
    if (strcmp(op, "embed") == 0)
        return ((const int32_t *)d->call.in[1])[0] * d->in[0].columns;
    if (strcmp(op, "smear") == 0 && d->what->T == 1 && i > 0) /* single tokens read no gate */
        return -1;
    if (strcmp(op, "head_loss") == 0 && i == 0) /* token 0 may have no target */
        return d->in[0].columns + 1;
    if (strcmp(op, "embed_positions") == 0 || strcmp(op, "value_gate") == 0 || strncmp(op, "head", 4) == 0)
        return 0;
    return case_elements(d, &d->in[i]) - 1;
}

/* A NaN in any float input must show in some output, wherever it stands. */
TEST(nan_is_not_hidden)
{
    const fr_kernel_table *table = table_of_this_machine();
    for (int c = 0; c < CASES; c++)
        for (int i = 0; i < cases[c].inputs; i++) {
            case_data d;
            bool seen = false;
            char text[200];
            case_init(&d, &cases[c], CASE_F32, false);
            const fr_kernel *kernel = case_find(table, cases[c].op, FR_FORWARD, &d.call);
            int64_t at = poisoned_element(&d, i);
            if (kernel && at >= 0) {
                ((float *)(uintptr_t)d.call.in[i])[at] = NAN;
                case_run(&d, kernel, NULL, NULL);
                for (int o = 0; o < d.op->outputs; o++)
                    for (int64_t e = 0; e < case_elements(&d, &d.out[o]); e++)
                        seen |= isnan(((float *)d.out_data[o])[e]);
                describe(text, &cases[c], kernel, false);
                if (!seen)
                    test_fail(__FILE__, __LINE__, text);
            }
            case_release(&d);
        }
}

TEST(unknown_kernels_are_refused)
{
    const fr_kernel_table *table;
    fr_error error = {0};
    const char *before = getenv("FRONTIER_KERNELS");
    char *kept = before ? strdup(before) : NULL;
    setenv("FRONTIER_KERNELS", "sse9", 1);
    CHECK_INT(fr_cpu_kernels(&table, &error), FR_BAD_ENVIRONMENT);
    CHECK(strstr(error.what, "sse9"));
    setenv("FRONTIER_KERNELS", "ref", 1);
    CHECK_OK(fr_cpu_kernels(&table, &error));
    CHECK(table->reference_only);
    if (kept)
        setenv("FRONTIER_KERNELS", kept, 1);
    else
        unsetenv("FRONTIER_KERNELS");
    free(kept);
}

TEST_MAIN(kernels)
