/* src/submission/client.c: the scorer's side: start the program, ask, distrust.
 *
 * What the child writes is copied into our memory before it is looked at, so it cannot change between check
 * and use. The block must carry the sequence number, document and positions that were asked for and finite
 * values; anything else, silence or death is the submission's failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontier/submission.h"
#include "submission/ring.h"

extern char **environ;

struct fr_program {
    ring blocks;
    pid_t child;
    int descriptor;
    int64_t vocab; /* ours: the child can write to the header */
    double timeout;
    int64_t longest; /* tokens of the last question */
    uint32_t asked, taken;
    ring_slot copy;
    float *row; /* logits of one row, for nats */
    size_t row_capacity;
    bool dead;
};

static fr_status launch(fr_program *p, const char *program, const char *run_folder, int threads,
                        fr_error *error)
{
    char descriptor[16], count[16];
    posix_spawn_file_actions_t actions;
    snprintf(descriptor, sizeof descriptor, "%d", p->descriptor);
    snprintf(count, sizeof count, "%d", threads > 0 ? threads : 0);
    char *arguments[] = {(char *)(uintptr_t)program,
                         (char *)(uintptr_t) "serve-blocks",
                         (char *)(uintptr_t)run_folder,
                         (char *)(uintptr_t) "--descriptor",
                         descriptor,
                         (char *)(uintptr_t) "--threads",
                         count,
                         NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawn(&p->child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return fr_error_set(error, FR_ANSWER_NO, program, "build it with 'frontier build'",
                            "the submission's program does not start: %s", strerror(failed));
    return FR_OK;
}

fr_status fr_program_start(fr_program **out, const char *program, const char *run_folder, int64_t vocab,
                           const fr_program_options *options, fr_error *error)
{
    fr_program *p = fr_allocate(sizeof *p);
    if (!p)
        return fr_error_memory(error, sizeof *p, "the program's handle");
    p->timeout = options && options->timeout_s > 0 ? options->timeout_s : 120;
    p->descriptor = -1;
    p->vocab = vocab;
    int threads = options ? options->threads : 0;
    fr_status status = ring_create(&p->blocks, &p->descriptor, vocab, threads, error);
    if (status == FR_OK)
        status = launch(p, program, run_folder, threads, error);
    if (status != FR_OK) {
        fr_program_stop(p);
        return status;
    }
    *out = p;
    return FR_OK;
}

static fr_status program_failed(fr_program *p, fr_error *error, const char *what)
{
    p->dead = true;
    return fr_error_set(error, FR_ANSWER_NO, "the submission's program",
                        "run 'frontier eval bpb' on its run by hand to see its messages", "%s", what);
}

/* Waits for block `p->taken + 1`; notices a child that ended. */
static fr_status await_block(fr_program *p, fr_error *error)
{
    ring_header *h = p->blocks.header;
    for (double waited = 0; waited < p->timeout; waited += 0.25) {
        if (ring_wait(&h->filled, p->taken, 0.25))
            return FR_OK;
        int state;
        if (waitpid(p->child, &state, WNOHANG) == p->child) {
            p->child = 0;
            return program_failed(p, error, "it ended instead of answering");
        }
    }
    return program_failed(p, error, "it did not answer in time");
}

/* The child's words are for a terminal: printable ASCII, the rest becomes a question mark. */
static void clean_message(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *c = text; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
}

static fr_status take_block(fr_program *p, int64_t document, int64_t at, int64_t count, float *logits,
                            fr_error *error)
{
    FR_TRY(await_block(p, error));
    uint32_t number = p->taken + 1;
    ring_slot *slot = ring_slot_at(&p->blocks, number);
    memcpy(&p->copy, slot, sizeof p->copy);
    clean_message(p->copy.message, sizeof p->copy.message);
    if (p->copy.sequence != number || p->copy.document != document)
        return program_failed(p, error, "it answered another question than the one asked");
    if (p->copy.status != FR_OK)
        return program_failed(p, error, p->copy.message[0] ? p->copy.message : "it reported a failure");
    if (p->copy.first != at || p->copy.count != count)
        return program_failed(p, error, "it answered for other positions than those asked");
    size_t values = (size_t)count * (size_t)p->vocab;
    memcpy(logits, ring_logits(slot), values * sizeof(float));
    p->taken = number;
    ring_raise(&p->blocks.header->taken, number);
    for (size_t i = 0; i < values; i++)
        if (!isfinite(logits[i]))
            return program_failed(p, error, "its logits hold NaN or infinity");
    return FR_OK;
}

fr_status fr_program_logits(fr_program *p, int64_t document, int64_t T, const int32_t *tokens, int64_t first,
                            float *logits, fr_error *error)
{
    ring_header *h = p->blocks.header;
    if (p->dead)
        return program_failed(p, error, "it failed before");
    if (T < 1 || T > RING_MAX_TOKENS || first < 0 || first >= T)
        return fr_error_set(error, FR_BAD_USAGE, NULL, NULL,
                            "positions %lld to %lld of a row cannot be asked for", (long long)first,
                            (long long)T);
    memcpy(h->tokens, tokens, (size_t)T * sizeof *tokens);
    if (p->longest > T) /* what a longer question held must not be found behind a shorter one */
        memset(h->tokens + T, 0, (size_t)(p->longest - T) * sizeof *tokens);
    p->longest = T;
    h->document = document;
    h->T = T;
    h->first = first;
    ring_raise(&h->asked, ++p->asked);
    for (int64_t at = first; at < T; at += RING_POSITIONS) {
        int64_t count = T - at < RING_POSITIONS ? T - at : RING_POSITIONS;
        FR_TRY(take_block(p, document, at, count, logits + (size_t)(at - first) * (size_t)p->vocab, error));
    }
    return FR_OK;
}

/* -log softmax(z)[target], in double, largest logit taken out first. */
static double cross_entropy(const float *z, int64_t vocab, int32_t target)
{
    double most = z[0], sum = 0;
    for (int64_t i = 1; i < vocab; i++)
        most = z[i] > most ? z[i] : most;
    for (int64_t i = 0; i < vocab; i++)
        sum += exp((double)z[i] - most);
    return most + log(sum) - (double)z[target];
}

fr_status fr_program_nats(void *program, int64_t rows, int64_t T, const int32_t *inputs,
                          const int32_t *targets, float *nats, fr_error *error)
{
    fr_program *p = program;
    int64_t vocab = p->vocab;
    size_t needed = (size_t)T * (size_t)vocab;
    if (needed > p->row_capacity) {
        fr_deallocate(p->row);
        p->row_capacity = 0;
        p->row = fr_allocate(needed * sizeof(float));
        if (!p->row)
            return fr_error_memory(error, needed * sizeof(float), "logits of one row");
        p->row_capacity = needed;
    }
    for (int64_t r = 0; r < rows; r++) {
        FR_TRY(fr_program_logits(p, r, T, inputs + r * T, 0, p->row, error));
        for (int64_t t = 0; t < T; t++) {
            int32_t target = targets[r * T + t];
            if (target >= vocab)
                return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "target %d is outside the vocabulary",
                                    target);
            nats[r * T + t] =
                target < 0 ? 0 : (float)cross_entropy(p->row + (size_t)t * (size_t)vocab, vocab, target);
        }
    }
    return FR_OK;
}

void fr_program_stop(fr_program *p)
{
    if (!p)
        return;
    if (p->child > 0) {
        atomic_store(&p->blocks.header->closed, 1);
        ring_raise(&p->blocks.header->asked, p->asked + 1);
        ring_raise(&p->blocks.header->taken, p->taken);
        bool ended = false;
        for (int i = 0; i < 40 && !ended && !p->dead; i++) { /* one that failed gets no grace */
            ended = waitpid(p->child, NULL, WNOHANG) != 0;
            if (!ended)
                usleep(25000);
        }
        if (!ended) {
            kill(p->child, SIGKILL);
            waitpid(p->child, NULL, 0);
        }
    }
    ring_release(&p->blocks);
    if (p->descriptor >= 0)
        close(p->descriptor);
    fr_deallocate(p->row);
    fr_deallocate(p);
}
