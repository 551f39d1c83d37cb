/* test_world_slow: what the built-in world promises on a corpus of full size: the choices of 1,000
 * documents of the default world and of 200 documents of many others are recovered exactly, 5 MB hold over
 * 5,000 word types, the floor lies between 0.4 and 1.2 bits per byte, and xz -9 needs more than 1.5 on the
 * validation text.
 */
#include "../unit/test.h"
#include "../unit/scratch.h"
#include "frontier/text.h"
#include "text/world.h"

static fr_error error;

static void check_round_trip(const world *w, world_machine *machine, fr_rng rng, fr_arena *arena)
{
    fr_buffer text, again;
    world_parse parse;
    int64_t cost = 0;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&again, 0);
    fr_arena_clear(arena);
    CHECK_OK(world_write(machine, w, 0, &rng, &text, &error));
    CHECK_OK(world_parse_text(w, text.data, text.length, arena, &parse, &error));
    CHECK_INT(parse.parses, 1);
    CHECK_INT(parse.cost, machine->state.cost);
    CHECK_OK(world_replay(w, &parse, &again, &cost, &error));
    CHECK_STR(again.data, text.data);
    CHECK_INT(cost, machine->state.cost);
    fr_buffer_release(&text);
    fr_buffer_release(&again);
}

static void check_world(uint64_t seed, int documents)
{
    world *w;
    fr_arena arena;
    fr_arena_init(&arena, 1 << 14);
    CHECK_OK(world_create(&w, seed, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    for (int i = 0; i < documents; i++)
        check_round_trip(w, machine, world_document_rng(w, 11, FR_VALID, i), &arena);
    fr_deallocate(machine);
    world_free(w);
    fr_arena_release(&arena);
}

TEST(explain_recovers_the_choices_of_1000_documents)
{
    check_world(1, 1000);
}

TEST(every_world_is_unambiguous)
{
    for (uint64_t seed = 2; seed < 60; seed++)
        check_world(seed * UINT64_C(0x9e3779b97f4a7c15), 200);
}

TEST(five_megabytes_keep_the_promises)
{
    fr_world_summary summary;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("world"));
    fr_world_options options = {.out_folder = folder, .seed = 1, .docs_seed = 1, .bytes = 5000000};
    CHECK_OK(fr_world_generate(&options, &summary, &error));
    printf("# floor %.4f bpb, %lld documents, %lld tokens, %lld word types, %lld patterns\n",
           summary.floor_bpb, (long long)summary.documents, (long long)summary.tokens,
           (long long)summary.word_types, (long long)summary.patterns);
    CHECK(summary.floor_bpb > 0.4 && summary.floor_bpb < 1.2);
    CHECK(summary.word_types > 5000);
    CHECK(summary.patterns >= 400);
}

static void write_validation(const char *path)
{
    fr_buffer text;
    world *w;
    CHECK_OK(world_create(&w, 1, &error));
    world_machine *machine = fr_allocate(sizeof *machine);
    fr_buffer_init(&text, 0);
    for (int64_t i = 0; text.length < 250000; i++) {
        fr_rng rng = world_document_rng(w, 1, FR_VALID, i);
        CHECK_OK(world_write(machine, w, 0, &rng, &text, &error));
    }
    CHECK_OK(fr_file_write(path, text.data, text.length, &error));
    fr_buffer_release(&text);
    fr_deallocate(machine);
    world_free(w);
}

TEST(xz_needs_more_than_one_and_a_half_bits_per_byte)
{
    if (system("xz --version > /dev/null 2>&1") != 0)
        SKIP("needs xz");
    char path[512], command[1200], number[64] = "";
    snprintf(path, sizeof path, "%s", scratch("valid.txt"));
    write_validation(path);
    snprintf(command, sizeof command, "xz -9 -c '%s' | wc -c", path);
    FILE *pipe = popen(command, "r");
    CHECK(pipe && fgets(number, sizeof number, pipe));
    if (pipe)
        pclose(pipe);
    double bpb = 8.0 * atof(number) / 250000;
    printf("# xz -9: %.3f bpb\n", bpb);
    CHECK(bpb > 1.5);
}

TEST_MAIN(world_slow)
