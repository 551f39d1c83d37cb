/* Segments and parts of a graph: rows that share a beginning give what they give alone, a plan may run
 * fewer tokens than it was made for and begin in the middle; what makes no sense is refused.
 */
#include "graph_model.h"

static const model_shape shape = {
    .depth = 3, .heads = 4, .kv_heads = 2, .columns = 16, .vocab = 11, .padded_vocab = 13};
static const char *const nats[] = {"nats"}, *const hidden[] = {"hidden"};
static fr_error error;

enum { SHARED = 5, FIRST = 4, SECOND = 7, ALONE = 3, TOTAL = SHARED + FIRST + SECOND + ALONE, ROOM = 32 };

static bool open_room(bench *b, const fr_graph *g, const char *const *outputs, const char *const *given,
                      fr_numerics numerics)
{
    fr_plan_options options = {.extent = {1, ROOM},
                               .numerics = numerics,
                               .outputs = outputs,
                               .output_count = 1,
                               .given = given,
                               .given_count = given != NULL};
    bool ready = bench_open(b, g, &options, 11);
    for (int i = 0; ready && i < ROOM; i++) {
        b->tokens[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % 11);
        b->targets[i] = (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % 11);
    }
    return ready;
}

/* One row of `count` tokens: nats of its last `own` tokens. */
static void run_alone(bench *b, const int32_t *tokens, const int32_t *targets, int64_t count, int64_t own,
                      double *out)
{
    fr_run_args args = b->args;
    fr_binding inputs[] = {{"tokens", tokens}, {"targets", targets}};
    args.inputs = inputs;
    args.input_count = 2;
    args.tokens = count;
    CHECK_OK(fr_plan_run(b->plan, &args, &error));
    for (int64_t i = 0; i < own; i++)
        out[i] = bench_output(b, "nats", count - own + i);
}

TEST(shared_beginnings_give_what_whole_rows_give)
{
    static const fr_numerics all[] = {FR_NUMERICS_F64, FR_NUMERICS_F32, FR_NUMERICS_BF16};
    static const fr_segment list[] = {{0, SHARED, 0, 0, 0},
                                      {SHARED, FIRST, 0, SHARED, 0},
                                      {SHARED + FIRST, SECOND, 0, SHARED, 0},
                                      {SHARED + FIRST + SECOND, ALONE, 0, 0, 0}};
    int32_t positions[TOTAL], previous[TOTAL];
    fr_segments_fill(list, 4, NULL, positions, previous);
    CHECK(positions[SHARED] == SHARED && previous[SHARED + FIRST] == SHARED - 1 &&
          previous[TOTAL - ALONE] == -1);
    for (int n = 0; n < 3; n++) {
        fr_graph *g = baseline_model(shape);
        fr_segments segments = {list, 4, positions, previous, NULL, NULL, 0};
        double wanted[TOTAL];
        bench b;
        if (!open_room(&b, g, nats, NULL, all[n]))
            return;
        int32_t row[ROOM], targets[ROOM];
        memcpy(row, b.tokens, sizeof row);
        memcpy(targets, b.targets, sizeof targets);
        run_alone(&b, row, targets, SHARED + FIRST, SHARED + FIRST, wanted);
        memmove(row + SHARED, b.tokens + SHARED + FIRST, SECOND * sizeof *row);
        memmove(targets + SHARED, b.targets + SHARED + FIRST, SECOND * sizeof *row);
        run_alone(&b, row, targets, SHARED + SECOND, SECOND, wanted + SHARED + FIRST);
        run_alone(&b, b.tokens + TOTAL - ALONE, b.targets + TOTAL - ALONE, ALONE, ALONE,
                  wanted + TOTAL - ALONE);
        fr_run_args args = b.args;
        args.tokens = TOTAL;
        args.segments = &segments;
        CHECK_OK(fr_plan_run(b.plan, &args, &error));
        for (int i = 0; i < TOTAL; i++)
            CHECK(bench_output(&b, "nats", i) == wanted[i]);
        bench_free(&b);
        fr_graph_free(g);
    }
}

/* Two questions with the same first example, which is run once: the second one's beginning is its tokens again. */
TEST(a_beginning_may_be_put_together)
{
    enum { STEM = 3, OWN = 2, OPTION = 4, TOKENS = STEM + 2 * (OWN + OPTION) };
    static const fr_numerics all[] = {FR_NUMERICS_F64, FR_NUMERICS_F32, FR_NUMERICS_BF16};
    static const int32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 9, 10, 11, 12, 13, 14};
    static const fr_segment list[] = {
        {0, STEM, 0, 0, 0}, {3, OWN, 0, STEM, 0}, {5, OPTION, 0, 5, 0}, {12, OWN, 9, STEM, 0}, {14, OPTION, 9, 5, 0}};
    int32_t positions[TOKENS], previous[TOKENS];
    fr_segments_fill(list, 5, order, positions, previous);
    CHECK(positions[9] == STEM && previous[9] == STEM - 1 && previous[11] == 10 && positions[14] == 8);
    for (int n = 0; n < 3; n++) {
        fr_graph *g = baseline_model(shape);
        const fr_segments segments = {list, 5, positions, previous, order, NULL, sizeof order / sizeof *order};
        double wanted[TOKENS];
        bench b;
        if (!open_room(&b, g, nats, NULL, all[n]))
            return;
        int32_t row[ROOM], targets[ROOM];
        memcpy(row, b.tokens, sizeof row);
        memcpy(targets, b.targets, sizeof targets);
        run_alone(&b, row, targets, STEM + OWN + OPTION, STEM + OWN + OPTION, wanted);
        memmove(row + STEM, b.tokens + STEM + OWN + OPTION, (OWN + OPTION) * sizeof *row);
        memmove(targets + STEM, b.targets + STEM + OWN + OPTION, (OWN + OPTION) * sizeof *row);
        run_alone(&b, row, targets, STEM + OWN + OPTION, OWN + OPTION, wanted + STEM + OWN + OPTION);
        fr_run_args args = b.args;
        args.tokens = TOKENS;
        args.segments = &segments;
        CHECK_OK(fr_plan_run(b.plan, &args, &error));
        for (int i = 0; i < TOKENS; i++)
            CHECK(bench_output(&b, "nats", i) == wanted[i]);
        bench_free(&b);
        fr_graph_free(g);
    }
}

TEST(a_plan_may_begin_in_the_middle)
{
    fr_graph *g = baseline_model(shape);
    bench whole, trunk, head;
    bool ready = open_room(&whole, g, nats, NULL, FR_NUMERICS_F32);
    ready = open_room(&trunk, g, hidden, NULL, FR_NUMERICS_F32) && ready;
    ready = open_room(&head, g, nats, hidden, FR_NUMERICS_F32) && ready;
    if (ready) {
        fr_run_args args = head.args;
        bench_run(&whole);
        bench_run(&trunk);
        fr_binding inputs[] = {{"hidden", fr_plan_output(trunk.plan, trunk.arena, "hidden", NULL)},
                               {"targets", head.targets}};
        args.inputs = inputs;
        args.input_count = 2;
        CHECK_OK(fr_plan_run(head.plan, &args, &error));
        for (int i = 0; i < ROOM; i++)
            CHECK(bench_output(&head, "nats", i) == bench_output(&whole, "nats", i));
        args.input_count = 0;
        CHECK_INT(fr_plan_run(head.plan, &args, &error), FR_BAD_USAGE);
    }
    bench_free(&whole);
    bench_free(&trunk);
    bench_free(&head);
    fr_graph_free(g);
}

/* Six tokens in one row, and two at a time of a sequence that continues. */
TEST(two_taps_continue)
{
    static const char *const outputs[] = {"y"};
    fr_graph *g = fr_graph_create(&error);
    fr_tensor *table = fr_parameter(g, "table", 11, 5, fr_init_normal(1), "embedding");
    fr_tensor *taps = fr_parameter(g, "taps", 2, 5, fr_init_normal(1), "matrix");
    fr_name(g, fr_two_tap(g, fr_embed(g, table, fr_input_ids(g, "tokens")), taps), "y");
    fr_plan_options options = {.extent = {1, 6},
                               .numerics = FR_NUMERICS_F64,
                               .outputs = outputs,
                               .output_count = 1};
    bench whole, part;
    bool ready = bench_open(&whole, g, &options, 11);
    options.extent.T = options.continuing.chunk = 2;
    ready = bench_open(&part, g, &options, 11) && ready;
    void *memory = ready ? fr_allocate(fr_plan_sequence_bytes(part.plan)) : NULL;
    for (int64_t start = 0; ready && start < 6; start += 2) {
        fr_sequence sequence = {memory, start, 2};
        fr_binding tokens = {"tokens", whole.tokens + start};
        fr_run_args args = part.args;
        args.inputs = &tokens;
        args.input_count = 1;
        args.sequences = &sequence;
        if (start == 0)
            CHECK_OK(fr_plan_run(whole.plan, &whole.args, &error));
        CHECK_OK(fr_plan_run(part.plan, &args, &error));
        for (int64_t i = 0; i < 10; i++)
            CHECK(bench_output(&part, "y", i) == bench_output(&whole, "y", start * 5 + i));
    }
    fr_deallocate(memory);
    bench_free(&whole);
    bench_free(&part);
    fr_graph_free(g);
}

TEST(segments_that_make_no_sense_are_refused)
{
    static const fr_segment bad[][2] = {{{0, 4, 0, 0, 0}, {5, 3, 0, 0, 0}},  /* a gap */
                                        {{0, 4, 0, 0, 0}, {4, 3, 0, 0, 0}},  /* too few */
                                        {{0, 4, 0, 0, 0}, {4, 4, 2, 3, 0}},  /* goes on from itself */
                                        {{0, 4, 0, 0, 0}, {4, -1, 0, 0, 0}}, /* less than nothing */
                                        {{0, 4, -1, 2, 0}, {4, 4, 0, 0, 0}},
                                        {{0, 4, 0, 0, 0}, {4, INT64_MAX, 0, 0, 0}},
                                        {{0, 4, 0, 0, 0}, {4, 4, 0, 0, ROOM - 3}}, /* beyond the plan */
                                        {{0, 4, 0, 0, -1}, {4, 4, 0, 0, 0}}};
    fr_graph *g = baseline_model(shape);
    int32_t zero[ROOM] = {0};
    bench b;
    if (!open_room(&b, g, nats, NULL, FR_NUMERICS_F32))
        return;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fr_run_args args = b.args;
        fr_segments segments = {bad[i], 2, zero, zero, NULL, NULL, 0};
        args.tokens = 8;
        args.segments = &segments;
        CHECK_INT(fr_plan_run(b.plan, &args, &error), FR_BAD_USAGE);
    }
    static const fr_segment one[] = {{0, 8, 0, 0, 0}};
    static const int32_t beyond[8] = {0, 1, 2, 3, 4, 5, 6, 8}, far[8] = {0, 1, 2, 3, 4, 5, 6, ROOM};
    static const int32_t last_beyond[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t rising[16] = {1, 2}, nothing_left[16] = {8}, negative[16] = {0, -1};
    const fr_segments wrong[] = {{one, 1, zero, zero, beyond, NULL, 0}, {one, 1, far, zero, NULL, NULL, 0},
                                 {one, 1, zero, beyond, NULL, NULL, 0}, {one, 1, zero, zero, NULL, rising, 0},
                                 {one, 1, zero, zero, NULL, nothing_left, 0},
                                 {one, 1, zero, zero, NULL, negative, 0}, {one, 1, zero, zero, last_beyond, NULL, 9}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fr_run_args args = b.args;
        args.tokens = 8;
        args.segments = &wrong[i];
        CHECK_INT(fr_plan_run(b.plan, &args, &error), FR_BAD_USAGE);
    }
    fr_run_args args = b.args;
    args.tokens = ROOM + 1;
    CHECK_INT(fr_plan_run(b.plan, &args, &error), FR_BAD_USAGE);
    const char *unknown[] = {"nothing"};
    fr_plan_options options = {
        .extent = {1, 4}, .outputs = nats, .output_count = 1, .given = unknown, .given_count = 1};
    fr_plan *plan;
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), FR_BAD_USAGE);
    options.given = hidden;
    options.train = true;
    CHECK_INT(fr_plan_create(&plan, g, &options, &error), FR_BAD_USAGE);
    bench_free(&b);
    fr_graph_free(g);
}

TEST_MAIN(graph_segments)
