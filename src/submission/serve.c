/* src/submission/serve.c: the program's side: requests in, blocks of logits out.
 *
 * The model is opened from the run folder as the library would, except that the submission's own graph is
 * built. A request's logits are computed once, then sent block by block as the scorer takes them.
 */
#include <string.h>
#include <unistd.h>

#include "frontier/submission.h"
#include "submission/ring.h"

typedef struct server {
    const fr_submission *submission;
    fr_scorer *scorer;
    ring blocks;
    float *logits;
    size_t capacity;
    pid_t parent; /* the scorer, while it lives */
} server;

/* Waits for the scorer to raise a word; false when it closed the ring or died. */
static bool await(const server *s, _Atomic uint32_t *word, uint32_t seen)
{
    while (!ring_wait(word, seen, 1))
        if (atomic_load(&s->blocks.header->closed) || getppid() != s->parent)
            return false;
    return !atomic_load(&s->blocks.header->closed);
}

static fr_status answer(server *s, const int32_t *tokens, int64_t T, int64_t first, fr_error *error)
{
    size_t needed = (size_t)(T - first) * (size_t)s->blocks.header->vocab;
    if (needed > s->capacity) {
        fr_deallocate(s->logits);
        s->capacity = 0;
        s->logits = fr_allocate(needed * sizeof(float));
        if (!s->logits)
            return fr_error_memory(error, needed * sizeof(float), "logits");
        s->capacity = needed;
    }
    if (s->submission && s->submission->logits)
        return s->submission->logits(s->scorer, T, tokens, first, s->logits, error);
    return fr_scorer_logits(s->scorer, T, tokens, first, s->logits, error);
}

/* False when the scorer went away. */
static bool send_block(server *s, uint32_t number, int64_t at, int64_t count, fr_status status,
                       const fr_error *error)
{
    ring_header *h = s->blocks.header;
    uint32_t taken;
    while (number - (taken = atomic_load(&h->taken)) > RING_SLOTS)
        if (!await(s, &h->taken, taken))
            return false;
    ring_slot *slot = ring_slot_at(&s->blocks, number);
    slot->document = h->document;
    slot->first = at;
    slot->count = count;
    slot->status = (int32_t)status;
    snprintf(slot->message, sizeof slot->message, "%.400s", status == FR_OK ? "" : error->what);
    if (status == FR_OK)
        memcpy(ring_logits(slot), s->logits + (size_t)(at - h->first) * (size_t)h->vocab,
               (size_t)count * (size_t)h->vocab * sizeof(float));
    slot->sequence = number;
    ring_raise(&h->filled, number);
    return true;
}

static bool serve_request(server *s, uint32_t *number)
{
    ring_header *h = s->blocks.header;
    fr_error error = {0};
    int64_t T = h->T, first = h->first;
    fr_status status = answer(s, h->tokens, T, first, &error);
    if (status != FR_OK)
        return send_block(s, ++*number, first, 0, status, &error);
    for (int64_t at = first; at < T; at += RING_POSITIONS)
        if (!send_block(s, ++*number, at, T - at < RING_POSITIONS ? T - at : RING_POSITIONS, FR_OK, &error))
            return false;
    return true;
}

static void serve_all(server *s)
{
    ring_header *h = s->blocks.header;
    uint32_t served = 0, number = 0;
    while (await(s, &h->asked, served)) {
        served = atomic_load(&h->asked);
        if (!serve_request(s, &number))
            return;
    }
}

fr_status fr_submission_serve(const fr_submission *submission, const char *run_folder, int descriptor,
                              int threads, fr_error *error)
{
    server s = {.submission = submission, .parent = getppid()};
    fr_scorer_options options = {.threads = threads, .model = submission ? submission->model : NULL};
    FR_TRY(ring_attach(&s.blocks, descriptor, error));
    fr_status status = fr_scorer_open(&s.scorer, run_folder, &options, error);
    if (status == FR_OK && fr_scorer_vocab(s.scorer) != s.blocks.header->vocab)
        status = fr_error_set(error, FR_BAD_DATA, run_folder, NULL,
                              "the program's vocabulary is %lld, the run's %lld",
                              (long long)fr_scorer_vocab(s.scorer), (long long)s.blocks.header->vocab);
    if (status == FR_OK)
        serve_all(&s);
    fr_scorer_free(s.scorer);
    fr_deallocate(s.logits);
    ring_release(&s.blocks);
    return status;
}
