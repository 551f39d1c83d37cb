/* world_tasks.c: six in-context tasks about the world, in CORE's file format.
 *
 *     multiple choice     world_trades, world_homes    four answers, one true
 *     schema              world_sounds, world_rivers   two beginnings, one fits the ending
 *     language modelling  world_pets, world_reading    the answer must be produced
 *
 * An item is one derivation of a task rule (world/world_chapter_tasks.c), cut at its '|'. Wrong answers
 * are other entries of the right answer's class. Items come from their own stream of random numbers, so
 * they share no text with training or validation documents beyond the phrases every document uses;
 * world_reading asks about its own context, with what the corpus says of noises, tools and wares; the others about facts
 * of the corpus alone.
 */
#include "text/world.h"
#include <string.h>

typedef enum task_kind { TASK_CHOICE, TASK_SCHEMA, TASK_LANGUAGE } task_kind;
typedef struct task {
    const char *label;
    task_kind kind;
    int shots;
    const char *rule;
    char subject;              /* register whose entry or attribute is exchanged for wrong answers */
    world_attribute attribute; /* multiple choice: of the subject; schema: what must differ */
    world_form form;
    const char *description;
} task;

static const task tasks[] = {
    {"world_trades", TASK_CHOICE, 0, "task_trades", 'P', ATTRIBUTE_TRADE, FORM_A,
     "What somebody's trade is."},
    {"world_homes", TASK_CHOICE, 2, "task_homes", 'P', ATTRIBUTE_HOME, FORM_BASE, "Where somebody lives."},
    {"world_sounds", TASK_SCHEMA, 0, "task_sounds", 'A', ATTRIBUTE_SOUND, FORM_BASE,
     "Which animal makes the noise."},
    {"world_rivers", TASK_SCHEMA, 0, "task_rivers", 'L', ATTRIBUTE_RIVER, FORM_BASE,
     "Which place lies on the river."},
    {"world_pets", TASK_LANGUAGE, 0, "task_pets", 'P', ATTRIBUTE_PET, FORM_BASE, "What animal somebody has."},
    {"world_reading", TASK_LANGUAGE, 2, "task_reading", 'X', ATTRIBUTE_KIND, FORM_BASE,
     "A question about a short passage."},
};
enum { TASKS = sizeof tasks / sizeof tasks[0], CHOICES = 4 };
static const char *const kind_names[] = {"multiple_choice", "schema", "language_modeling"};
static const int baselines[] = {25, 50, 0};

typedef struct item {
    char *parts[3]; /* the text between bars */
    int part_count;
} item;

static item cut(char *text)
{
    item it = {.part_count = 0};
    while (text && it.part_count < 3) {
        it.parts[it.part_count++] = text;
        text = strchr(text, '|');
        if (text)
            *text++ = 0;
    }
    return it;
}

/* Texts of the world are letters, digits, spaces, line ends and plain punctuation. */
static void put_string(fr_buffer *out, const char *text)
{
    fr_buffer_append(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '\n')
            fr_buffer_append(out, "\\n", 2);
        else if (*text == '"' || *text == '\\')
            fr_buffer_printf(out, "\\%c", *text);
        else
            fr_buffer_append(out, text, 1);
    }
    fr_buffer_append(out, "\"", 1);
}

static const char *text_of(const world *w, world_ref ref, world_form form)
{
    return world_form_of(w, ref, form).data;
}

/* Another entry of the same class that is not among those taken and reads differently. */
static world_ref other_entry(const world *w, const world_ref *taken, int count, world_form form, fr_rng *rng)
{
    for (;;) {
        uint64_t entries = (uint64_t)w->classes[taken[0].kind].choice.count;
        world_ref ref = {taken[0].kind, (int16_t)fr_rng_below(rng, entries)};
        bool fresh = true;
        for (int i = 0; i < count; i++)
            fresh = fresh && strcmp(text_of(w, ref, form), text_of(w, taken[i], form)) != 0;
        if (fresh)
            return ref;
    }
}

static void put_choice_item(const world *w, const task *t, world_ref subject, const item *it, fr_rng *rng,
                            fr_buffer *out)
{
    world_ref options[CHOICES] = {world_attribute_of(w, subject, t->attribute)};
    for (int i = 1; i < CHOICES; i++)
        options[i] = other_entry(w, options, i, t->form, rng);
    int gold = (int)fr_rng_below(rng, CHOICES);
    world_ref held = options[gold];
    options[gold] = options[0];
    options[0] = held;
    fr_buffer_printf(out, "{\"query\": ");
    put_string(out, it->parts[0]);
    fr_buffer_printf(out, ", \"choices\": [");
    for (int i = 0; i < CHOICES; i++) {
        fr_buffer_printf(out, "%s", i ? ", " : "");
        put_string(out, text_of(w, options[i], t->form));
    }
    fr_buffer_printf(out, "], \"gold\": %d}\n", gold);
}

static void put_schema_option(fr_buffer *out, const char *context, const char *subject)
{
    fr_buffer whole;
    fr_buffer_init(&whole, 0);
    fr_buffer_printf(&whole, "%s %s", context, subject);
    out->failed = out->failed || whole.failed;
    put_string(out, whole.failed ? "" : whole.data);
    fr_buffer_release(&whole);
}

static void put_schema_item(const world *w, const task *t, world_ref subject, const item *it, fr_rng *rng,
                            fr_buffer *out)
{
    world_ref truth = world_attribute_of(w, subject, t->attribute), other, fact;
    do { /* the other beginning must not fit as well */
        other = other_entry(w, &subject, 1, t->form, rng);
        fact = world_attribute_of(w, other, t->attribute);
    } while (strcmp(text_of(w, fact, FORM_BASE), text_of(w, truth, FORM_BASE)) == 0);
    int gold = (int)fr_rng_below(rng, 2);
    fr_buffer_printf(out, "{\"context_options\": [");
    put_schema_option(out, it->parts[0], text_of(w, gold == 0 ? subject : other, t->form));
    fr_buffer_printf(out, ", ");
    put_schema_option(out, it->parts[0], text_of(w, gold == 0 ? other : subject, t->form));
    fr_buffer_printf(out, "], \"continuation\": ");
    put_string(out, it->parts[2]);
    fr_buffer_printf(out, ", \"gold\": %d}\n", gold);
}

static void put_language_item(const item *it, fr_buffer *out)
{
    fr_buffer_printf(out, "{\"context\": ");
    put_string(out, it->parts[0]);
    fr_buffer_printf(out, ", \"continuation\": ");
    put_string(out, it->parts[1]);
    fr_buffer_printf(out, "}\n");
}

static fr_status put_item(world_machine *machine, const world *w, int number, int64_t index, fr_buffer *text,
                          fr_buffer *out, fr_error *error)
{
    const task *t = &tasks[number];
    fr_rng rng = world_document_rng(w, 0, WORLD_STREAM_TASKS + number, index);
    fr_buffer_clear(text);
    FR_TRY(world_write(machine, w, world_find_rule(w, t->rule, strlen(t->rule)), &rng, text, error));
    item it = cut(text->data);
    if (it.part_count != (t->kind == TASK_SCHEMA ? 3 : 2))
        return fr_error_set(error, FR_BUG, t->rule, NULL, "a task's template has the wrong number of bars");
    world_ref subject = machine->state.registers[t->subject - 'A'];
    if (t->kind == TASK_CHOICE)
        put_choice_item(w, t, subject, &it, &rng, out);
    else if (t->kind == TASK_SCHEMA)
        put_schema_item(w, t, subject, &it, &rng, out);
    else
        put_language_item(&it, out);
    return FR_OK;
}

static fr_status save(fr_buffer *out, const char *folder, const char *name, fr_error *error)
{
    char path[1200];
    fr_path_join(path, sizeof path, folder, name);
    if (out->failed)
        return fr_error_memory(error, out->length, "the world's tasks");
    return fr_file_write(path, out->data, out->length, error);
}

static fr_status write_task(world_machine *machine, const world *w, int number, int items, const char *folder,
                            fr_buffer *text, fr_buffer *out, fr_error *error)
{
    char name[80];
    fr_buffer_clear(out);
    for (int i = 0; i < items; i++)
        FR_TRY(put_item(machine, w, number, i, text, out, error));
    snprintf(name, sizeof name, "eval_data/world/%s.jsonl", tasks[number].label);
    return save(out, folder, name, error);
}

static fr_status write_bundle(int items, const char *folder, fr_buffer *out, fr_error *error)
{
    fr_buffer_clear(out);
    fr_buffer_printf(out, "icl_tasks:\n");
    for (int i = 0; i < TASKS; i++)
        fr_buffer_printf(
            out, "-\n  label: %s\n  dataset_uri: world/%s.jsonl\n  num_fewshot: [%d]\n  icl_task_type: %s\n",
            tasks[i].label, tasks[i].label, tasks[i].shots, kind_names[tasks[i].kind]);
    FR_TRY(save(out, folder, "core.yaml", error));
    fr_buffer_clear(out);
    fr_buffer_printf(out, "Eval Task,Task Category,Task Type,#shots,#datapoints,Random baseline,Centered "
                          "Metric?,Description\n");
    for (int i = 0; i < TASKS; i++)
        fr_buffer_printf(out, "%s,world,%s,%d,%d,%d,,%s\n", tasks[i].label, kind_names[tasks[i].kind],
                         tasks[i].shots, items, baselines[tasks[i].kind], tasks[i].description);
    return save(out, folder, "eval_meta_data.csv", error);
}

static fr_status write_all(world_machine *machine, const world *w, const char *folder, int items,
                           fr_error *error)
{
    char data[1200];
    fr_buffer text, out;
    fr_buffer_init(&text, 0);
    fr_buffer_init(&out, 0);
    fr_path_join(data, sizeof data, folder, "eval_data/world");
    fr_status status = fr_folder_make(data, error);
    for (int i = 0; status == FR_OK && i < TASKS; i++)
        status = write_task(machine, w, i, items, folder, &text, &out, error);
    if (status == FR_OK)
        status = write_bundle(items, folder, &out, error);
    fr_buffer_release(&text);
    fr_buffer_release(&out);
    return status;
}

fr_status fr_world_tasks(uint64_t seed, const char *out_folder, int items_per_task, fr_error *error)
{
    world *w;
    if (items_per_task < 1 || items_per_task > 1000000 || strlen(out_folder) > 1000)
        return fr_error_set(error, FR_BAD_USAGE, out_folder, NULL,
                            "1 to 1000000 items per task, and a shorter path");
    FR_TRY(world_create(&w, seed, error));
    world_machine *machine = fr_allocate(sizeof *machine);
    fr_status status = machine ? write_all(machine, w, out_folder, items_per_task, error)
                               : fr_error_memory(error, sizeof *machine, "the world's tasks");
    fr_deallocate(machine);
    world_free(w);
    return status;
}
