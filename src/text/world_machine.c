/* world_machine.c: the machine that walks the grammar.
 *
 * A stack of frames, each a run of symbols still to do. Literals, recalled words and sums need no
 * decision: the machine writes them, or, when explaining, checks that the text goes on with them. At a
 * rule or a pick it stops and asks. A named pick ({P:person}) never takes an entry the document has
 * already named, so two people of a story are two people; the tickets of those entries are taken out of
 * the draw, and out of the cost.
 *
 * The whole state besides the frames is a small struct. A frame below `used` is never changed while a
 * snapshot refers to it: advancing copies the frame. So a search can go back by restoring the struct.
 */
#include "text/world.h"
#include <string.h>

static bool put(world_machine *machine, const char *text, size_t length)
{
    world_state *s = &machine->state;
    if (length == 0)
        return true;
    char first = text[0];
    if (s->capital && first >= 'a' && first <= 'z')
        first = (char)(first - 'a' + 'A');
    s->capital = false;
    if (machine->out) {
        fr_buffer_append(machine->out, &first, 1);
        fr_buffer_append(machine->out, text + 1, length - 1);
    } else if (length > machine->bytes - s->at || machine->text[s->at] != first ||
               memcmp(machine->text + s->at + 1, text + 1, length - 1) != 0) {
        return false;
    }
    s->at += length;
    return true;
}

static bool push(world_machine *machine, const world_symbol *first, int count, int parent)
{
    world_state *s = &machine->state;
    if (s->used == WORLD_FRAMES)
        return false;
    machine->frames[s->used] = (world_frame){first, first + count, parent};
    s->frame = s->used++;
    return true;
}

void world_machine_start(world_machine *machine, const world *w, int rule)
{
    machine->w = w;
    machine->state = (world_state){.frame = -1};
    for (int i = 0; i < WORLD_REGISTERS; i++)
        machine->state.registers[i].kind = -1;
    machine->start = (world_symbol){.op = OP_RULE, .place = -1, .target = (int16_t)rule};
    push(machine, &machine->start, 1, -1);
}

world_text world_form_of(const world *w, world_ref ref, world_form form)
{
    return w->classes[ref.kind].entries[ref.entry].forms[form];
}

world_ref world_attribute_of(const world *w, world_ref ref, world_attribute name)
{
    const world_entry *entry = &w->classes[ref.kind].entries[ref.entry];
    for (int i = 0; i < entry->attribute_count; i++)
        if (entry->attribute_names[i] == name)
            return entry->attributes[i];
    return (world_ref){-1, -1};
}

int world_fact_count(const world *w)
{
    int entries = 0;
    for (int c = 0; c < w->class_count; c++)
        entries += w->classes[c].choice.count;
    return entries * WORLD_ATTRIBUTES;
}

int world_fact_index(const world *w, world_ref ref, int slot)
{
    int entries = ref.entry;
    for (int c = 0; c < ref.kind; c++)
        entries += w->classes[c].choice.count;
    return entries * WORLD_ATTRIBUTES + slot;
}

static void mention(world_machine *machine, world_ref ref, world_attribute name)
{
    const world_entry *entry = &machine->w->classes[ref.kind].entries[ref.entry];
    for (int i = 0; machine->mentions && i < entry->attribute_count; i++)
        if (entry->attribute_names[i] == name)
            machine->mentions[world_fact_index(machine->w, ref, i)]++;
}

static bool recall(world_machine *machine, const world_symbol *symbol)
{
    world_ref ref = machine->state.registers[(int)symbol->place];
    for (int i = 0; i < symbol->path_length && ref.kind >= 0; i++) {
        mention(machine, ref, symbol->path[i]);
        ref = world_attribute_of(machine->w, ref, symbol->path[i]);
    }
    if (ref.kind < 0)
        return false;
    world_text text = world_form_of(machine->w, ref, symbol->form);
    return text.data && put(machine, text.data, text.length);
}

static bool sum(world_machine *machine, const world_symbol *symbol)
{
    char text[24];
    world_ref a = machine->state.registers[(int)symbol->place],
              b = machine->state.registers[(int)symbol->second];
    if (a.kind < 0 || b.kind < 0)
        return false;
    int x = machine->w->classes[a.kind].entries[a.entry].value;
    int y = machine->w->classes[b.kind].entries[b.entry].value;
    int value = symbol->sign == '+' ? x + y : symbol->sign == '-' ? x - y : x * y;
    int length = snprintf(text, sizeof text, "%d", value);
    return put(machine, text, (size_t)length);
}

/* The entries of this class the document has named already leave the draw. */
static void exclude(const world_machine *machine, world_question *q)
{
    const world_symbol *symbol = q->symbol;
    for (int r = 0; symbol->place >= 0 && r < WORLD_REGISTERS; r++) {
        world_ref ref = machine->state.registers[r];
        if (ref.kind != symbol->target || r == symbol->place)
            continue;
        int i = q->excluded_count;
        while (i > 0 && q->excluded[i - 1] > ref.entry) {
            q->excluded[i] = q->excluded[i - 1];
            i--;
        }
        q->excluded[i] = ref.entry;
        q->excluded_count++;
        q->total -= q->choice->cumulative[ref.entry + 1] - q->choice->cumulative[ref.entry];
    }
}

static void ask(const world_machine *machine, const world_symbol *symbol, world_question *q)
{
    const world *w = machine->w;
    q->symbol = symbol;
    q->excluded_count = 0;
    q->choice = symbol->op == OP_RULE ? &w->rules[symbol->target].choice : &w->classes[symbol->target].choice;
    q->total = q->choice->cumulative[q->choice->count];
    if (symbol->op == OP_PICK)
        exclude(machine, q);
}

bool world_question_allows(const world_question *question, int index)
{
    for (int i = 0; i < question->excluded_count; i++)
        if (question->excluded[i] == index)
            return false;
    return true;
}

int64_t world_question_cost(const world_question *question, int index)
{
    const world_choice *choice = question->choice;
    if (question->excluded_count == 0)
        return choice->cost[index];
    return world_log2(question->total) -
           world_log2(choice->cumulative[index + 1] - choice->cumulative[index]);
}

bool world_machine_take(world_machine *machine, const world_question *question, int index)
{
    const world_symbol *symbol = question->symbol;
    world_state *s = &machine->state;
    if (symbol->op == OP_RULE) {
        s->cost += question->choice->cost[index];
        const world_alternative *a = &machine->w->rules[symbol->target].alternatives[index];
        s->capital = s->capital || symbol->capital;
        return push(machine, a->symbols, a->count, s->frame);
    }
    world_ref ref = {symbol->target, (int16_t)index};
    if (symbol->place >= 0)
        s->registers[(int)symbol->place] = ref;
    if (symbol->silent) {
        s->cost += world_question_cost(question, index);
        return true;
    }
    world_text text = world_form_of(machine->w, ref, symbol->form);
    s->capital = s->capital || symbol->capital;
    if (!text.data || !put(machine, text.data, text.length))
        return false;
    s->cost += world_question_cost(question, index);
    return true;
}

/* The next symbol to do, or NULL at the end of the document. Pops what is finished. */
static const world_symbol *next_symbol(world_machine *machine)
{
    world_state *s = &machine->state;
    while (s->frame >= 0) {
        world_frame frame = machine->frames[s->frame];
        if (frame.next == frame.end) {
            s->frame = frame.parent;
            continue;
        }
        if (frame.next + 1 == frame.end)
            s->frame = frame.parent;
        else if (!push(machine, frame.next + 1, (int)(frame.end - frame.next) - 1, frame.parent))
            return NULL;
        return frame.next;
    }
    return NULL;
}

world_stop world_machine_run(world_machine *machine, world_question *question)
{
    for (;;) {
        const world_symbol *symbol = next_symbol(machine);
        if (!symbol)
            return machine->state.frame >= 0 ? STOP_OVERFLOW : STOP_DONE;
        if (symbol->op == OP_RULE || symbol->op == OP_PICK) {
            ask(machine, symbol, question);
            return STOP_CHOICE;
        }
        machine->state.capital = machine->state.capital || symbol->capital;
        bool fits = symbol->op == OP_LITERAL  ? put(machine, symbol->text.data, symbol->text.length)
                    : symbol->op == OP_RECALL ? recall(machine, symbol)
                                              : sum(machine, symbol);
        if (!fits)
            return STOP_MISMATCH;
    }
}
