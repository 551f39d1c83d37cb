/* world_write.c: documents out of numbers.
 *
 * A document is a function of (world seed, documents' seed, stream, index): the generator's stream is
 * keyed by all four, and the i-th choice takes the i-th number. Training, validation and task items are
 * different streams, so a hidden validation set is the same call with another documents' seed.
 */
#include "text/world.h"
#include <string.h>

fr_rng world_document_rng(const world *w, uint64_t docs_seed, int stream, int64_t index)
{
    uint8_t key[24];
    uint64_t parts[3] = {w->seed, docs_seed, (uint64_t)stream};
    for (int i = 0; i < 24; i++) /* bytes by shifts: the same on every byte order */
        key[i] = (uint8_t)(parts[i / 8] >> (8 * (i % 8)));
    return (fr_rng){.seed = fr_hash64(key, sizeof key, WORLD_VERSION), .stream = (uint64_t)index};
}

/* A ticket below the total without the excluded entries, moved past their ranges. */
static int draw(const world_question *q, fr_rng *rng)
{
    uint32_t ticket = (uint32_t)fr_rng_below(rng, q->total);
    for (int i = 0; i < q->excluded_count; i++) {
        const uint32_t *range = &q->choice->cumulative[q->excluded[i]];
        if (ticket >= range[0])
            ticket += range[1] - range[0];
    }
    return world_draw(q->choice, ticket);
}

fr_status world_write(world_machine *machine, const world *w, int rule, fr_rng *rng, fr_buffer *out,
                      fr_error *error)
{
    world_question q;
    world_stop stop;
    bool fine = true;
    world_machine_start(machine, w, rule);
    machine->out = out;
    while (fine && (stop = world_machine_run(machine, &q)) == STOP_CHOICE)
        fine = world_machine_take(machine, &q, draw(&q, rng));
    if (!fine || stop != STOP_DONE)
        return fr_error_set(error, FR_BUG, w->rules[rule].choice.name, NULL,
                            "a document could not be finished");
    return out->failed ? fr_error_memory(error, out->length, "a document") : FR_OK;
}

fr_status world_create(world **out, uint64_t seed, fr_error *error)
{
    world *w = fr_allocate(sizeof *w);
    if (!w)
        return fr_error_memory(error, sizeof *w, "the world");
    w->seed = seed;
    fr_arena_init(&w->arena, 1 << 18);
    fr_status status = world_make_facts(w, error);
    if (status == FR_OK)
        status = world_compile(w, error);
    if (status != FR_OK) {
        world_free(w);
        return status;
    }
    *out = w;
    return FR_OK;
}

void world_free(world *w)
{
    if (!w)
        return;
    fr_arena_release(&w->arena);
    fr_deallocate(w);
}

static fr_status write_document(const world *w, uint64_t docs_seed, fr_corpus_split split, int64_t index,
                                fr_buffer *out, double *bits, fr_error *error)
{
    world_machine *machine = fr_allocate(sizeof *machine);
    if (!machine)
        return fr_error_memory(error, sizeof *machine, "writing a document");
    fr_rng rng = world_document_rng(w, docs_seed, split, index);
    fr_status status = world_write(machine, w, 0, &rng, out, error);
    if (bits)
        *bits = (double)machine->state.cost / 4294967296.0;
    fr_deallocate(machine);
    return status;
}

fr_status fr_world_document(uint64_t seed, uint64_t docs_seed, fr_corpus_split split, int64_t index,
                            fr_buffer *out, double *bits, fr_error *error)
{
    world *w;
    FR_TRY(world_create(&w, seed, error));
    fr_status status = write_document(w, docs_seed, split, index, out, bits, error);
    world_free(w);
    return status;
}
