/* The block protocol: an honest program's logits arrive bit for bit; every kind of bad program is its own
 * failure, named.
 *
 * The programs are this test program itself: the scorer starts it as `PROGRAM serve-blocks RUN --descriptor N
 * ...`, and main then plays the part that the last component of RUN names.
 */
#include "frontier/submission.h"

#include "submission/ring.h"

#include "model_fixture.h"
#include "test.h"

enum { VOCAB = 285, LONG_T = 600 };

/* ---- parts the child plays -------------------------------------------------------------------------- */

static ring blocks;

static void wait_for_question(void)
{
    ring_wait(&blocks.header->asked, 0, 60);
}

/* One block as an honest program would send it: all logits `value`. */
static ring_slot *fill_block(uint32_t number, int64_t at, float value)
{
    ring_header *h = blocks.header;
    ring_slot *slot = ring_slot_at(&blocks, number);
    int64_t count = h->T - at < RING_POSITIONS ? h->T - at : RING_POSITIONS;
    *slot = (ring_slot){.sequence = number, .document = h->document, .first = at, .count = count};
    for (int64_t i = 0; i < count * VOCAB; i++)
        ring_logits(slot)[i] = value;
    return slot;
}

static void send_block(uint32_t number)
{
    ring_raise(&blocks.header->filled, number);
}

/* Until the scorer closes the ring. */
static void linger(void)
{
    for (int i = 0; i < 6000 && !atomic_load(&blocks.header->closed); i++)
        usleep(10000);
}

static void play_die_unasked(void)
{
}

static void play_die_midway(void)
{
    wait_for_question();
    fill_block(1, blocks.header->first, 1);
    send_block(1);
}

static void play_silent(void)
{
    sleep(60);
}

static void play_wrong_sequence(void)
{
    wait_for_question();
    fill_block(1, blocks.header->first, 1)->sequence = 7;
    send_block(1);
    linger();
}

static void play_wrong_document(void)
{
    wait_for_question();
    fill_block(1, blocks.header->first, 1)->document++;
    send_block(1);
    linger();
}

static void play_wrong_positions(void)
{
    wait_for_question();
    fill_block(1, blocks.header->first, 1)->count = INT64_MAX;
    send_block(1);
    linger();
}

static void play_nan(void)
{
    wait_for_question();
    fill_block(1, blocks.header->first, NAN);
    send_block(1);
    linger();
}

static void play_reports(void)
{
    wait_for_question();
    ring_slot *slot = fill_block(1, blocks.header->first, 1);
    slot->status = FR_BAD_DATA;
    memset(slot->message, 'x', sizeof slot->message); /* no end */
    memcpy(slot->message, "weights\033[2J lost", 16);
    send_block(1);
    linger();
}

/* Tells lies in the header, to make the scorer copy more than was asked for; the block itself is right. */
static void play_lies_about_vocab(void)
{
    wait_for_question();
    blocks.header->vocab = (int64_t)1 << 40;
    fill_block(1, blocks.header->first, 1);
    send_block(1);
    linger();
}

/* Writes nonsense all over the memory, counters included. */
static void play_garbage(void)
{
    wait_for_question();
    unsigned char *bytes = (unsigned char *)blocks.header;
    for (size_t i = 0; i < blocks.bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    ring_raise(&blocks.header->filled, 0x5bd1e995);
    linger();
}

static int ring_descriptor;

/* Tries to pull the memory away under the scorer. */
static void play_shrinks(void)
{
    wait_for_question();
    if (ftruncate(ring_descriptor, 0) == 0)
        return;
    fill_block(1, blocks.header->first, 1);
    send_block(1);
    linger();
}

static const struct part {
    const char *name;
    void (*play)(void);
    const char *failure; /* what the scorer must say; NULL: it must get its logits */
} parts[] = {
    {"die_unasked", play_die_unasked, "ended"},
    {"die_midway", play_die_midway, "ended"},
    {"silent", play_silent, "in time"},
    {"wrong_sequence", play_wrong_sequence, "another question"},
    {"wrong_document", play_wrong_document, "another question"},
    {"wrong_positions", play_wrong_positions, "other positions"},
    {"nan", play_nan, "NaN"},
    {"reports", play_reports, "weights?[2J lost"},
    {"garbage", play_garbage, "another question"},
    {"lies_about_vocab", play_lies_about_vocab, NULL},
    {"shrinks", play_shrinks, NULL},
};

enum { PARTS = sizeof parts / sizeof parts[0] };

/* Logits of a submission's own: the library's, times minus one half. */
static fr_status own_logits(fr_scorer *scorer, int64_t T, const int32_t *tokens, int64_t first, float *logits,
                            fr_error *error)
{
    FR_TRY(fr_scorer_logits(scorer, T, tokens, first, logits, error));
    for (int64_t i = 0; i < (T - first) * fr_scorer_vocab(scorer); i++)
        logits[i] *= -0.5f;
    return FR_OK;
}

static int serve(const char *run, int descriptor)
{
    static const fr_submission plain = {.name = "plain", .model = fr_model_build},
                               own = {.name = "own", .model = fr_model_build, .logits = own_logits};
    const char *name = strrchr(run, '/') + 1;
    fr_error error = {0};
    for (int i = 0; i < PARTS; i++)
        if (strcmp(parts[i].name, name) == 0) {
            ring_descriptor = descriptor;
            if (ring_attach(&blocks, descriptor, &error) == FR_OK)
                parts[i].play();
            return 0;
        }
    return fr_submission_serve(strcmp(name, "own") == 0 ? &own : &plain, run, descriptor, 1, &error);
}

/* ---- the scorer's side -------------------------------------------------------------------------------- */

static fr_program *start(const char *name, double timeout)
{
    fr_program *program = NULL;
    fr_error error = {0};
    fr_program_options options = {.timeout_s = timeout, .threads = 1};
    CHECK_OK(fr_program_start(&program, "/proc/self/exe", scratch(name), VOCAB, &options, &error));
    return program;
}

static int32_t tokens[LONG_T], targets[LONG_T];

static void prepare_run(const char *name)
{
    fr_recipe recipe = model_fixture_recipe();
    fr_tokenizer *tokenizer = fixture_tokenizer(20);
    CHECK_INT(fr_tokenizer_vocab(tokenizer), VOCAB);
    model_fixture_run(scratch(name), &recipe, tokenizer);
    fr_tokenizer_free(tokenizer);
    for (int i = 0; i < LONG_T; i++) {
        tokens[i] = (int32_t)(fr_rng_at(1, 1, (uint64_t)i) % VOCAB);
        targets[i] = i % 7 ? (int32_t)(fr_rng_at(1, 2, (uint64_t)i) % VOCAB) : -1;
    }
}

static fr_scorer *open_run(const char *name)
{
    fr_scorer *scorer = NULL;
    fr_error error = {0};
    CHECK_OK(fr_scorer_open(&scorer, scratch(name), &(fr_scorer_options){.threads = 1}, &error));
    return scorer;
}

TEST(an_honest_programs_logits_arrive_bit_for_bit)
{
    static const int64_t cases[][2] = {{1, 0},   {64, 0}, {65, 0},
                                       {96, 95}, {96, 3}, {LONG_T, 0}}; /* the last goes round the ring */
    fr_error error = {0};
    prepare_run("honest");
    fr_scorer *scorer = open_run("honest");
    fr_program *program = start("honest", 60);
    float *got = calloc(LONG_T * VOCAB, sizeof *got), *wanted = calloc(LONG_T * VOCAB, sizeof *wanted);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t T = cases[i][0], first = cases[i][1];
        CHECK_OK(fr_program_logits(program, 3, T, tokens, first, got, &error));
        CHECK_OK(fr_scorer_logits(scorer, T, tokens, first, wanted, &error));
        CHECK(memcmp(got, wanted, (size_t)((T - first) * VOCAB) * sizeof *got) == 0);
    }
    CHECK_INT(fr_program_logits(program, 0, 0, tokens, 0, got, &error), FR_BAD_USAGE);
    fr_program_stop(program);
    fr_scorer_free(scorer);
    free(got);
    free(wanted);
}

TEST(losses_are_computed_here_from_the_logits)
{
    float got[2 * 48], wanted[2 * 48];
    fr_error error = {0};
    prepare_run("honest");
    fr_scorer *scorer = open_run("honest");
    fr_program *program = start("honest", 60);
    CHECK_OK(fr_program_nats(program, 2, 48, tokens, targets, got, &error));
    CHECK_OK(fr_scorer_nats(scorer, 2, 48, tokens, targets, wanted, &error));
    for (int i = 0; i < 2 * 48; i++)
        CHECK_NEAR(got[i], wanted[i], 1e-5, 1e-5);
    fr_program_stop(program);
    fr_scorer_free(scorer);
}

TEST(a_submission_may_have_logits_of_its_own)
{
    float *got = calloc(32 * VOCAB, sizeof *got), *wanted = calloc(32 * VOCAB, sizeof *wanted);
    fr_error error = {0};
    prepare_run("own");
    fr_scorer *scorer = open_run("own");
    fr_program *program = start("own", 60);
    CHECK_OK(fr_program_logits(program, 0, 32, tokens, 0, got, &error));
    CHECK_OK(fr_scorer_logits(scorer, 32, tokens, 0, wanted, &error));
    for (int i = 0; i < 32 * VOCAB; i++)
        CHECK(got[i] == -0.5f * wanted[i]);
    fr_program_stop(program);
    fr_scorer_free(scorer);
    free(got);
    free(wanted);
}

/* 300 positions: five blocks. The buffer has exactly their size, so a sanitizer sees anything behind it. */
TEST(bad_programs_fail_by_themselves)
{
    for (int i = 0; i < PARTS; i++) {
        int64_t T = parts[i].failure ? 300 : 40;
        float *logits = calloc((size_t)(T * VOCAB), sizeof *logits);
        fr_error error = {0};
        fr_program *program = start(parts[i].name, strcmp(parts[i].name, "silent") ? 20 : 0.5);
        fr_status status = fr_program_logits(program, 5, T, tokens, 0, logits, &error);
        CHECK_INT(status, parts[i].failure ? FR_ANSWER_NO : FR_OK);
        if (parts[i].failure) {
            if (!strstr(error.what, parts[i].failure)) {
                printf("# %s: %s\n", parts[i].name, error.what);
                CHECK(!"the failure is named");
            }
            CHECK_INT(fr_program_logits(program, 5, T, tokens, 0, logits, &error),
                      FR_ANSWER_NO); /* at once */
            CHECK(strstr(error.what, "failed before") != NULL);
        } else {
            CHECK(logits[0] == 1 && logits[T * VOCAB - 1] == 1);
        }
        fr_program_stop(program);
        free(logits);
    }
}

TEST(what_does_not_start_is_named)
{
    fr_program *program = NULL;
    fr_error error = {0};
    CHECK_INT(fr_program_start(&program, scratch("no-such-program"), scratch("honest"), VOCAB, NULL, &error),
              FR_ANSWER_NO);
    CHECK(program == NULL);
    CHECK_INT(fr_program_start(&program, "/proc/self/exe", scratch("honest"), 0, NULL, &error), FR_BAD_DATA);
}

TEST(a_program_with_another_vocabulary_ends)
{
    float logits[VOCAB + 1];
    fr_program *program = NULL;
    fr_error error = {0};
    prepare_run("honest");
    CHECK_OK(fr_program_start(&program, "/proc/self/exe", scratch("honest"), VOCAB + 1,
                              &(fr_program_options){.timeout_s = 20, .threads = 1}, &error));
    CHECK_INT(fr_program_logits(program, 0, 1, tokens, 0, logits, &error), FR_ANSWER_NO);
    fr_program_stop(program);
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "serve-blocks") == 0)
        return serve(argv[2], atoi(argv[4]));
    return test_main("submission", argc, argv);
}
