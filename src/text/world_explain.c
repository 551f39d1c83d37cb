/* world_explain.c: from a document back to the choices that wrote it.
 *
 * Depth-first search over the answers to the machine's questions. The machine refuses an answer as soon as
 * the text does not go on like that, so wrong ways die within a word or a phrase. The search does not stop
 * at the first derivation: it looks for a second one, and a document with two would have no well-defined
 * information. The tests hold every document to exactly one. Hostile text is bounded by a limit on answers
 * tried.
 */
#include "text/world.h"
#include <string.h>

enum { TRIES = 20 * 1000 * 1000, MOST_CHOICES = 1 << 16 };

typedef struct point { /* a question, the state in which it was asked, and the answer being tried */
    world_state state;
    world_question question;
    int answer;
} point;
typedef struct search {
    world_machine *machine;
    point *points;
    int count, capacity;
    int64_t tries;
    size_t farthest;
} search;

static fr_status grow(search *s, fr_error *error)
{
    if (s->count < s->capacity)
        return FR_OK;
    int capacity = s->capacity ? 2 * s->capacity : 256;
    if (capacity > MOST_CHOICES)
        return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "the document is too long to explain");
    size_t bytes = (size_t)capacity * sizeof *s->points;
    point *points = fr_reallocate(s->points, bytes);
    if (!points)
        return fr_error_memory(error, bytes, "explaining a document");
    s->points = points;
    s->capacity = capacity;
    return FR_OK;
}

static fr_status record(const search *s, fr_arena *arena, world_parse *parse, fr_error *error)
{
    if (++parse->parses > 1)
        return FR_OK;
    size_t bytes = (size_t)(s->count + 1) * sizeof *parse->choices;
    parse->choices = fr_arena_alloc(arena, bytes);
    if (!parse->choices)
        return fr_error_memory(error, bytes, "recovered choices");
    for (int i = 0; i < s->count; i++)
        parse->choices[i] = s->points[i].answer;
    parse->count = s->count;
    parse->cost = s->machine->state.cost;
    return FR_OK;
}

/* Runs to the next question and puts it on the stack; a dead end or a finished document adds nothing. */
static fr_status advance(search *s, fr_arena *arena, world_parse *parse, fr_error *error)
{
    world_question question;
    world_stop stop = world_machine_run(s->machine, &question);
    if (s->machine->state.at > s->farthest)
        s->farthest = s->machine->state.at;
    if (stop == STOP_DONE && s->machine->state.at == s->machine->bytes)
        return record(s, arena, parse, error);
    if (stop != STOP_CHOICE)
        return FR_OK;
    FR_TRY(grow(s, error));
    s->points[s->count++] = (point){s->machine->state, question, -1};
    return FR_OK;
}

static fr_status explore(search *s, fr_arena *arena, world_parse *parse, fr_error *error)
{
    FR_TRY(advance(s, arena, parse, error));
    while (s->count > 0 && parse->parses < 2) {
        point *p = &s->points[s->count - 1];
        if (++p->answer == p->question.choice->count) {
            s->count--;
            continue;
        }
        if (!world_question_allows(&p->question, p->answer))
            continue;
        if (++s->tries > TRIES)
            return fr_error_set(error, FR_BAD_DATA, NULL, NULL, "gave up explaining after %d attempts",
                                TRIES);
        s->machine->state = p->state;
        if (world_machine_take(s->machine, &p->question, p->answer))
            FR_TRY(advance(s, arena, parse, error));
    }
    return FR_OK;
}

fr_status world_parse_text(const world *w, const char *text, size_t bytes, fr_arena *arena,
                           world_parse *parse, fr_error *error)
{
    search s = {0};
    *parse = (world_parse){0};
    s.machine = fr_allocate(sizeof *s.machine);
    if (!s.machine)
        return fr_error_memory(error, sizeof *s.machine, "explaining a document");
    world_machine_start(s.machine, w, 0);
    s.machine->text = text;
    s.machine->bytes = bytes;
    fr_status status = explore(&s, arena, parse, error);
    if (status == FR_OK && parse->parses == 0)
        status = fr_error_set(error, FR_BAD_DATA, NULL, "only documents of the same --seed can be explained",
                              "not a document of this world: nothing fits after byte %zu", s.farthest);
    fr_deallocate(s.points);
    fr_deallocate(s.machine);
    return status;
}

static void account(const world *w, const world_question *q, int answer, fr_buffer *out)
{
    double bits = (double)world_question_cost(q, answer) / 4294967296.0;
    fr_buffer_printf(out, "%8.3f  %-14s ", bits, q->choice->name);
    if (q->symbol->op == OP_PICK) {
        world_text text = w->classes[q->symbol->target].entries[answer].forms[FORM_BASE];
        fr_buffer_append(out, text.data, text.length);
    } else {
        for (const char *c = w->rules[q->symbol->target].alternatives[answer].source; *c; c++)
            fr_buffer_append(out, *c == '\n' ? "\\n" : c, *c == '\n' ? 2 : 1);
    }
    fr_buffer_append(out, "\n", 1);
}

/* Answers every question from the record; writes the document, or with `list` an account of the answers. */
static fr_status follow(const world *w, const world_parse *parse, fr_buffer *out, bool list, int64_t *cost,
                        fr_error *error)
{
    fr_buffer text;
    fr_buffer_init(&text, 0);
    world_machine *machine = fr_allocate(sizeof *machine);
    if (!machine)
        return fr_error_memory(error, sizeof *machine, "replaying a document");
    world_machine_start(machine, w, 0);
    machine->out = list ? &text : out;
    world_question q;
    world_stop stop;
    int i = 0;
    while ((stop = world_machine_run(machine, &q)) == STOP_CHOICE && i < parse->count) {
        int answer = parse->choices[i++];
        if (answer < 0 || answer >= q.choice->count || !world_machine_take(machine, &q, answer))
            break;
        if (list)
            account(w, &q, answer, out);
    }
    *cost = machine->state.cost;
    bool whole = stop == STOP_DONE && i == parse->count;
    fr_deallocate(machine);
    fr_buffer_release(&text);
    return whole ? FR_OK : fr_error_set(error, FR_BAD_DATA, NULL, NULL, "choices do not fit this world");
}

fr_status world_replay(const world *w, const world_parse *parse, fr_buffer *out, int64_t *cost,
                       fr_error *error)
{
    return follow(w, parse, out, false, cost, error);
}

static fr_status explain(const world *w, const char *text, size_t bytes, fr_arena *arena, fr_buffer *out,
                         double *bits, fr_error *error)
{
    world_parse parse;
    int64_t cost;
    FR_TRY(world_parse_text(w, text, bytes, arena, &parse, error));
    if (parse.parses > 1)
        return fr_error_set(error, FR_BUG, NULL, NULL, "two ways to derive this document");
    FR_TRY(follow(w, &parse, out, true, &cost, error));
    double total = (double)cost / 4294967296.0;
    fr_buffer_printf(out, "%8.3f  bits in %d choices, %zu bytes, %.3f bits per byte\n", total, parse.count,
                     bytes, bytes ? total / (double)bytes : 0.0);
    if (bits)
        *bits = total;
    return FR_OK;
}

fr_status fr_world_explain(uint64_t seed, const char *text, size_t bytes, fr_buffer *out, double *bits,
                           fr_error *error)
{
    world *w;
    FR_TRY(world_create(&w, seed, error));
    fr_arena arena;
    fr_arena_init(&arena, 1 << 16);
    fr_status status = explain(w, text, bytes, &arena, out, bits, error);
    fr_arena_release(&arena);
    world_free(w);
    return status;
}
