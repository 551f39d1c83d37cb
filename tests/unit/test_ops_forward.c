/* What every built-in operator computes, against the plainest formula for it.
 *
 * The gradient checks show that backward belongs to forward; this shows that forward is what its name
 * says. Each case runs an operator in double on random inputs and compares with loops written the most
 * naive way: whole T x T score matrices, complex multiplication for rotations, constants from tables. As
 * in the gradient checks, an operator of fr_ops() without a case fails the suite.
 */
#include "graph_fixture.h"

#include <complex.h>

enum { ROWS = 2, T = 7, N = ROWS * T };

/* ---- running one operator ---- */

typedef struct trial {
    fr_graph *g;
    bench b;
} trial;

static fr_tensor *matrix(fr_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return fr_parameter(g, name, rows, columns, fr_init_normal(0.8), "matrix");
}

/* A trial of a graph that keeps the tensor `out`, renamed "out". */
static trial trial_of(fr_graph *g, fr_tensor *out)
{
    trial t = {.g = g};
    fr_name(g, out, "out");
    return t;
}

static bool run_trial(trial *t)
{
    static const char *const outputs[] = {"out"};
    fr_plan_options options = {.extent = {ROWS, T}, .numerics = FR_NUMERICS_F64, .outputs = outputs};
    options.output_count = 1;
    bool ready = bench_open(&t->b, t->g, &options, 7);
    if (ready)
        bench_run(&t->b);
    return ready;
}

static void end_trial(trial *t)
{
    bench_free(&t->b);
    fr_graph_free(t->g);
}

/* Element (row, column) of a parameter, which for a leaf is the tensor itself. */
static double at(const trial *t, const char *name, int64_t row, int64_t column)
{
    const fr_tensor *tensor = fr_graph_find(t->g, name);
    const fr_parameter_info *info = fr_graph_parameter(t->g, tensor->parameter);
    return ((const double *)t->b.parameters)[info->offset + row * info->columns + column];
}

static void expect(const trial *t, int64_t row, int64_t column, double want)
{
    const fr_tensor *out = fr_graph_find(t->g, "out");
    double got = bench_output(&t->b, "out", row * out->columns + column);
    if (!(fabs(got - want) <= 1e-7 + 1e-7 * fabs(want))) { /* rotary's tables are fp32 */
        char text[200];
        snprintf(text, sizeof text, "%s at (%lld, %lld): got %.12g, want %.12g", out->producer->op->name,
                 (long long)row, (long long)column, got, want);
        test_fail(__FILE__, __LINE__, text);
    }
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- tables and norms ---- */

static void check_embed(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_embed(g, matrix(g, "table", 7, 3), fr_input_ids(g, "tokens")));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t c = 0; c < 3; c++)
                expect(&t, n, c, at(&t, "table", t.b.tokens[n], c));
    end_trial(&t);
}

static void check_embed_positions(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_embed_positions(g, leaf(g, "x", N, 3), matrix(g, "table", 9, 3)));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t c = 0; c < 3; c++)
                expect(&t, n, c, at(&t, "x", n, c) + at(&t, "table", n % T, c));
    end_trial(&t);
}

static void check_rms_norm(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_rms_norm(g, leaf(g, "x", N, 5),
                                      (fr_norm_options){.eps = 0.2, .gain = matrix(g, "gain", 1, 5)}));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++) {
            double mean = 0;
            for (int64_t c = 0; c < 5; c++)
                mean += at(&t, "x", n, c) * at(&t, "x", n, c) / 5;
            for (int64_t c = 0; c < 5; c++)
                expect(&t, n, c, at(&t, "gain", 0, c) * at(&t, "x", n, c) / sqrt(mean + 0.2));
        }
    end_trial(&t);
}

static void check_layer_norm(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_norm_options options = {.eps = 0.2, .gain = matrix(g, "gain", 1, 5), .bias = matrix(g, "bias", 1, 5)};
    trial t = trial_of(g, fr_layer_norm(g, leaf(g, "x", N, 5), options));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++) {
            double mean = 0, squares = 0;
            for (int64_t c = 0; c < 5; c++) {
                mean += at(&t, "x", n, c) / 5;
                squares += at(&t, "x", n, c) * at(&t, "x", n, c) / 5;
            }
            for (int64_t c = 0; c < 5; c++) {
                double y = (at(&t, "x", n, c) - mean) / sqrt(squares - mean * mean + 0.2);
                expect(&t, n, c, at(&t, "gain", 0, c) * y + at(&t, "bias", 0, c));
            }
        }
    end_trial(&t);
}

/* ---- products ---- */

static double product(const trial *t, int64_t n, int64_t row, int64_t columns, const char *matrix_name)
{
    double sum = 0;
    for (int64_t c = 0; c < columns; c++)
        sum += at(t, "x", n, c) * at(t, matrix_name, row, c);
    return sum;
}

static void check_linear(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_linear(g, leaf(g, "x", N, 5), matrix(g, "w", 18, 5)));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t o = 0; o < 18; o++)
                expect(&t, n, o, product(&t, n, o, 5, "w"));
    end_trial(&t);
}

static void check_head_logits(void)
{
    for (int cap = 0; cap <= 3; cap += 3) {
        fr_graph *g = fr_graph_create(NULL);
        fr_head_options options = {.vocab = 7, .softcap = cap};
        trial t = trial_of(g, fr_head_logits(g, leaf(g, "x", N, 4), matrix(g, "head", 9, 4), options));
        if (run_trial(&t))
            for (int64_t n = 0; n < N; n++)
                for (int64_t v = 0; v < 7; v++) {
                    double logit = product(&t, n, v, 4, "head");
                    expect(&t, n, v, cap ? cap * tanh(logit / cap) : logit);
                }
        end_trial(&t);
    }
}

static void check_head_loss(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *targets = fr_input_ids(g, "targets");
    trial t = trial_of(g, fr_head_loss(g, leaf(g, "x", N, 4), matrix(g, "head", 9, 4), targets,
                                       (fr_head_options){.vocab = 7}));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++) {
            double sum = 0;
            for (int64_t v = 0; v < 7; v++)
                sum += exp(product(&t, n, v, 4, "head"));
            bool ignored = t.b.targets[n] < 0;
            expect(&t, n, 0, ignored ? 0 : log(sum) - product(&t, n, t.b.targets[n], 4, "head"));
        }
    end_trial(&t);
}

/* ---- rotary and attention ---- */

/* Pair m of head h of token n, turned. */
static double complex turned(const trial *t, int64_t n, int64_t h, int64_t m, bool interleaved)
{
    double angle = (double)(n % T) * pow(50, -2.0 * (double)m / 6);
    int64_t first = h * 6 + (interleaved ? 2 * m : m), second = interleaved ? first + 1 : first + 3;
    return (at(t, "x", n, first) + I * at(t, "x", n, second)) * cexp((interleaved ? I : -I) * angle);
}

static void check_rotary(void)
{
    for (int variant = 0; variant < 4; variant++) {
        bool interleaved = variant & 1, norm = variant & 2;
        fr_rotary_options options = {
            .heads = 2, .base = 50, .interleaved = interleaved, .norm = norm, .gain = 1.2, .eps = 0.01};
        fr_graph *g = fr_graph_create(NULL);
        trial t = trial_of(g, fr_rotary(g, leaf(g, "x", N, 12), options));
        bool ready = run_trial(&t);
        for (int64_t n = 0; ready && n < N; n++)
            for (int64_t h = 0; h < 2; h++) {
                double squares = 0, scale = 1;
                for (int64_t c = 0; c < 6; c++)
                    squares += at(&t, "x", n, 6 * h + c) * at(&t, "x", n, 6 * h + c);
                if (norm)
                    scale = 1.2 / sqrt(squares / 6 + 0.01);
                for (int64_t m = 0; m < 3; m++) {
                    double complex z = turned(&t, n, h, m, interleaved) * scale;
                    expect(&t, n, 6 * h + (interleaved ? 2 * m : m), creal(z));
                    expect(&t, n, 6 * h + (interleaved ? 2 * m + 1 : m + 3), cimag(z));
                }
            }
        end_trial(&t);
    }
}

/* exp(score) of query i and key j of a row if i sees j, else 0. */
static double seen_weight(const trial *t, int64_t row, int64_t i, int64_t j, int64_t head, int64_t kv,
                          int64_t window)
{
    double score = 0;
    if (j > i || (window > 0 && i - j > window))
        return 0;
    for (int64_t c = 0; c < 3; c++)
        score += at(t, "q", row * T + i, head * 3 + c) * at(t, "k", row * T + j, kv * 3 + c);
    return exp(score / sqrt(3));
}

static void check_attention_row(const trial *t, int64_t row, int64_t head, int64_t window)
{
    int64_t kv = head / 2;
    for (int64_t i = 0; i < T; i++) {
        double sum = 0, out[3] = {0};
        for (int64_t j = 0; j < T; j++) {
            double weight = seen_weight(t, row, i, j, head, kv, window);
            sum += weight;
            for (int64_t c = 0; c < 3; c++)
                out[c] += weight * at(t, "v", row * T + j, kv * 3 + c);
        }
        for (int64_t c = 0; c < 3; c++)
            expect(t, row * T + i, head * 3 + c, out[c] / sum);
    }
}

static void check_attention(void)
{
    static const int64_t windows[] = {0, 1, 3, 6, 100};
    for (int w = 0; w < 5; w++) {
        fr_graph *g = fr_graph_create(NULL);
        fr_attention_options options = {.heads = 4, .kv_heads = 2, .window = windows[w]};
        fr_tensor *q = leaf(g, "q", N, 12), *k = leaf(g, "k", N, 6), *v = leaf(g, "v", N, 6);
        trial t = trial_of(g, fr_attention(g, q, k, v, options));
        bool ready = run_trial(&t);
        for (int64_t row = 0; ready && row < ROWS; row++)
            for (int64_t head = 0; head < 4; head++)
                check_attention_row(&t, row, head, windows[w]);
        end_trial(&t);
    }
}

static void check_log_sum_exp(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *q = leaf(g, "q", N, 6), *k = leaf(g, "k", N, 3), *v = leaf(g, "v", N, 3);
    fr_tensor *y = fr_attention(g, q, k, v, (fr_attention_options){.heads = 2, .kv_heads = 1});
    trial t = trial_of(g, y->producer->out[1]);
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t head = 0; head < 2; head++) {
                double sum = 0;
                for (int64_t j = 0; j < T; j++)
                    sum += seen_weight(&t, n / T, n % T, j, head, 0, 0);
                expect(&t, n, head, log(sum));
            }
    end_trial(&t);
}

/* ---- element by element ---- */

static void check_relu_squared(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_relu_squared(g, leaf(g, "x", N, 3)));
    if (run_trial(&t))
        for (int64_t i = 0; i < 3 * N; i++) {
            double x = at(&t, "x", i / 3, i % 3);
            expect(&t, i / 3, i % 3, x > 0 ? x * x : 0);
        }
    end_trial(&t);
}

static void check_leaky_relu_squared(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_leaky_relu_squared(g, leaf(g, "x", N, 3), 0.35));
    if (run_trial(&t))
        for (int64_t i = 0; i < 3 * N; i++) {
            double x = at(&t, "x", i / 3, i % 3), y = x > 0 ? x : 0.35 * x;
            expect(&t, i / 3, i % 3, y * y);
        }
    end_trial(&t);
}

/* Values from tables of the tanh form. */
static void check_gelu(void)
{
    static const double known[][2] = {
        {0, 0}, {1, 0.8411919906}, {-1, -0.1588080094}, {0.5, 0.3457140131}, {3, 2.9963626}};
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_gelu(g, leaf(g, "x", N, 1)));
    if (run_trial(&t)) {
        const fr_parameter_info *info = fr_graph_parameter(g, 0);
        for (int i = 0; i < 5; i++)
            ((double *)t.b.parameters)[info->offset + i] = known[i][0];
        bench_run(&t.b);
        for (int i = 0; i < 5; i++)
            expect(&t, i, 0, known[i][1]);
    }
    end_trial(&t);
}

static void check_add_bias(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *bias = fr_parameter(g, "bias", 1, 3, fr_init_normal(1), "scalar");
    trial t = trial_of(g, fr_add_bias(g, leaf(g, "x", N, 3), bias));
    if (run_trial(&t))
        for (int64_t i = 0; i < 3 * N; i++)
            expect(&t, i / 3, i % 3, at(&t, "x", i / 3, i % 3) + at(&t, "bias", 0, i % 3));
    end_trial(&t);
}

static void check_swiglu(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_swiglu(g, leaf(g, "gate", N, 3), leaf(g, "up", N, 3)));
    if (run_trial(&t))
        for (int64_t i = 0; i < 3 * N; i++) {
            double x = at(&t, "gate", i / 3, i % 3);
            expect(&t, i / 3, i % 3, x * logistic(x) * at(&t, "up", i / 3, i % 3));
        }
    end_trial(&t);
}

/* add, blend and add_scaled are all p x + q y. */
static void check_sum(fr_graph *g, fr_tensor *out, const char *a, const char *b, double sign)
{
    trial t = trial_of(g, out);
    if (run_trial(&t))
        for (int64_t i = 0; i < 3 * N; i++) {
            double p = a ? at(&t, a, 0, 0) : 1, q = b ? at(&t, b, 0, 0) : 1;
            expect(&t, i / 3, i % 3, p * at(&t, "x", i / 3, i % 3) + sign * q * at(&t, "y", i / 3, i % 3));
        }
    end_trial(&t);
}

static void check_add(void)
{
    fr_graph *g = fr_graph_create(NULL);
    check_sum(g, fr_add(g, leaf(g, "x", N, 3), leaf(g, "y", N, 3)), NULL, NULL, 1);
}

static void check_blend(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *a = matrix(g, "a", 1, 1), *b = matrix(g, "b", 1, 1);
    check_sum(g, fr_blend(g, a, leaf(g, "x", N, 3), b, leaf(g, "y", N, 3)), "a", "b", 1);
}

static void check_add_scaled(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *scale = matrix(g, "scale", 1, 1);
    check_sum(g, fr_add_scaled(g, leaf(g, "x", N, 3), -1, scale, leaf(g, "y", N, 3)), NULL, "scale", -1);
}

/* ---- gates ---- */

static void check_smear(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t =
        trial_of(g, fr_smear(g, leaf(g, "x", N, 5), matrix(g, "gate", 1, 3), matrix(g, "lambda", 1, 1)));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++) {
            double share = at(&t, "lambda", 0, 0) * logistic(product(&t, n, 0, 3, "gate"));
            for (int64_t c = 0; c < 5; c++)
                expect(&t, n, c, at(&t, "x", n, c) + (n % T ? share * at(&t, "x", n - 1, c) : 0));
        }
    end_trial(&t);
}

static void check_two_tap(void)
{
    fr_graph *g = fr_graph_create(NULL);
    trial t = trial_of(g, fr_two_tap(g, leaf(g, "x", N, 5), matrix(g, "taps", 2, 5)));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t c = 0; c < 5; c++) {
                double before = n % T ? at(&t, "x", n - 1, c) : 0;
                expect(&t, n, c, at(&t, "taps", 0, c) * at(&t, "x", n, c) + at(&t, "taps", 1, c) * before);
            }
    end_trial(&t);
}

static void check_value_gate(void)
{
    fr_graph *g = fr_graph_create(NULL);
    fr_tensor *v = leaf(g, "v", N, 6), *e = leaf(g, "e", N, 6), *h = leaf(g, "x", N, 5);
    trial t = trial_of(g, fr_value_gate(g, v, e, h, matrix(g, "gate", 2, 4), 3));
    if (run_trial(&t))
        for (int64_t n = 0; n < N; n++)
            for (int64_t c = 0; c < 6; c++) {
                double gate = 3 * logistic(product(&t, n, c / 3, 4, "gate"));
                expect(&t, n, c, at(&t, "v", n, c) + gate * at(&t, "e", n, c));
            }
    end_trial(&t);
}

static const struct {
    const char *op;
    void (*check)(void);
} cases[] = {
    {"embed", check_embed},
    {"embed_positions", check_embed_positions},
    {"rms_norm", check_rms_norm},
    {"layer_norm", check_layer_norm},
    {"linear", check_linear},
    {"head_logits", check_head_logits},
    {"head_loss", check_head_loss},
    {"rotary", check_rotary},
    {"attention", check_attention},
    {"attention", check_log_sum_exp},
    {"gelu", check_gelu},
    {"relu_squared", check_relu_squared},
    {"swiglu", check_swiglu},
    {"add", check_add},
    {"blend", check_blend},
    {"add_scaled", check_add_scaled},
    {"smear", check_smear},
    {"value_gate", check_value_gate},
    {"add_bias", check_add_bias},
    {"two_tap", check_two_tap},
    {"leaky_relu_squared", check_leaky_relu_squared},
};
enum { CASES = sizeof cases / sizeof *cases };

TEST(every_operator_has_a_case)
{
    int count;
    const fr_op *const *ops = fr_ops(&count);
    for (int i = 0; i < count; i++) {
        bool found = false;
        for (int c = 0; c < CASES; c++)
            found |= strcmp(cases[c].op, ops[i]->name) == 0;
        if (!found)
            test_fail(__FILE__, __LINE__, ops[i]->name);
    }
}

TEST(operators_compute_their_formulas)
{
    for (int c = 0; c < CASES; c++)
        cases[c].check();
}

TEST_MAIN(ops_forward)
