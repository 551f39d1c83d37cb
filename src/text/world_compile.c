/* world_compile.c: from templates as people write them to the symbols the machine walks.
 *
 *     {rule}                 one alternative of a rule
 *     {class} {class+form}   one entry of a class, written in a form: {thing}, {walk+ed}, {fruit+a}
 *     {P:class+form}         the same, and the document remembers it as P
 *     {P=class}              remembered without being written
 *     {P} {P+form}           what was remembered
 *     {P.home.river+form}    a fact about it
 *     {=A+B} {=A-B} {=A*B}   arithmetic on remembered numbers
 *     {^...}                 starts with a capital
 *
 * A template that names something the world does not have is our bug and is reported with its text.
 */
#include "text/world.h"
#include <string.h>

const char *const world_attribute_names[WORLD_ATTRIBUTE_NAMES] = {
    "trade", "home",    "pet",  "food",  "colour", "hobby",   "friend", "kind",     "river", "ware", "shop",
    "tool",  "species", "coat", "owner", "sound",  "shelter", "meal",   "material", "place", "act"};

static int find(const char *const *names, int count, const char *name, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    return -1;
}

static bool same(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

int world_find_class(const world *w, const char *name, size_t length)
{
    for (int i = 0; i < w->class_count; i++)
        if (same(w->classes[i].choice.name, name, length))
            return i;
    return -1;
}

int world_find_rule(const world *w, const char *name, size_t length)
{
    for (int i = 0; i < w->rule_count; i++)
        if (same(w->rules[i].choice.name, name, length))
            return i;
    return -1;
}

static size_t name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_");
}

static bool compile_form(const char **at, world_symbol *symbol)
{
    if (**at != '+')
        return true;
    size_t length = name_length(++*at);
    int form = find(world_form_names, WORLD_FORMS, *at, length);
    *at += length;
    symbol->form = (uint8_t)form;
    return form > 0;
}

static bool compile_pick(const world *w, const char **at, world_symbol *symbol)
{
    size_t length = name_length(*at);
    symbol->op = OP_PICK;
    symbol->target = (int16_t)world_find_class(w, *at, length);
    *at += length;
    return symbol->target >= 0 && compile_form(at, symbol);
}

static bool compile_recall(const char **at, world_symbol *symbol)
{
    symbol->op = OP_RECALL;
    while (**at == '.' && symbol->path_length < WORLD_PATH) {
        size_t length = name_length(++*at);
        int name = find(world_attribute_names, WORLD_ATTRIBUTE_NAMES, *at, length);
        if (name < 0)
            return false;
        symbol->path[symbol->path_length++] = (uint8_t)name;
        *at += length;
    }
    return compile_form(at, symbol);
}

static bool is_register(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool compile_sum(const char **at, world_symbol *symbol)
{
    const char *t = *at;
    if (!is_register(t[0]) || !t[1] || !strchr("+-*", t[1]) || !is_register(t[2]))
        return false;
    symbol->op = OP_SUM;
    symbol->place = (int8_t)(t[0] - 'A');
    symbol->sign = t[1];
    symbol->second = (int8_t)(t[2] - 'A');
    *at += 3;
    return true;
}

static bool compile_register(const world *w, const char **at, world_symbol *symbol)
{
    symbol->place = (int8_t)(**at - 'A');
    char after = *++*at;
    if (after != ':' && after != '=')
        return compile_recall(at, symbol);
    symbol->silent = after == '=';
    ++*at;
    return compile_pick(w, at, symbol);
}

/* One {...}; *at stands behind the brace and is left behind the closing one. */
static bool compile_slot(const world *w, const char **at, world_symbol *symbol)
{
    bool fine;
    *symbol = (world_symbol){.place = -1};
    if (**at == '^') {
        symbol->capital = true;
        ++*at;
    }
    int rule = world_find_rule(w, *at, name_length(*at));
    if (is_register(**at)) {
        fine = compile_register(w, at, symbol);
    } else if (**at == '=') {
        ++*at;
        fine = compile_sum(at, symbol);
    } else if (rule >= 0) {
        *at += name_length(*at);
        symbol->op = OP_RULE;
        symbol->target = (int16_t)rule;
        fine = world_find_class(w, w->rules[rule].choice.name, strlen(w->rules[rule].choice.name)) < 0;
    } else {
        fine = compile_pick(w, at, symbol);
    }
    return fine && *(*at)++ == '}';
}

static fr_status compile_template(world *w, const char *source, world_alternative *out, fr_error *error)
{
    int most = 1;
    for (const char *c = source; *c; c++)
        most += *c == '{' ? 2 : 0;
    world_symbol *symbols = fr_arena_alloc(&w->arena, (size_t)most * sizeof *symbols);
    if (!symbols)
        return fr_error_memory(error, (size_t)most * sizeof *symbols, "the world's grammar");
    int count = 0;
    for (const char *at = source; *at;) {
        size_t plain = strcspn(at, "{");
        if (plain > 0) {
            symbols[count++] = (world_symbol){.op = OP_LITERAL, .place = -1, .text = {at, plain}};
            at += plain;
        } else {
            at++;
            if (!compile_slot(w, &at, &symbols[count++]))
                return fr_error_set(error, FR_BUG, source, NULL, "bad slot in a template, before '%.40s'",
                                    at);
        }
    }
    *out = (world_alternative){symbols, count, source};
    return FR_OK;
}

/* Rules are numbered before any template is compiled, because templates name rules that come later. */
static fr_status number_rules(world *w, fr_error *error)
{
    for (int c = 0; c < world_chapter_count; c++)
        for (int i = 0; i < world_chapters[c]->count; i++) {
            const char *name = world_chapters[c]->templates[i].rule;
            if (world_find_rule(w, name, strlen(name)) >= 0)
                continue;
            if (w->rule_count == WORLD_RULES)
                return fr_error_set(error, FR_BUG, name, NULL, "too many rules in the world's grammar");
            w->rules[w->rule_count++].choice.name = name;
        }
    return FR_OK;
}

static bool has_words(const char *text)
{
    for (; *text; text++) {
        if (*text == '{')
            text += strcspn(text, "}");
        else if ((*text | 32) >= 'a' && (*text | 32) <= 'z')
            return true;
    }
    return false;
}

static fr_status compile_rule(world *w, world_rule *rule, fr_error *error)
{
    enum { MOST = 200 };
    uint32_t weights[MOST];
    int count = 0;
    const char *name = rule->choice.name;
    rule->alternatives = fr_arena_alloc(&w->arena, MOST * sizeof *rule->alternatives);
    if (!rule->alternatives)
        return fr_error_memory(error, MOST * sizeof *rule->alternatives, "the world's grammar");
    for (int c = 0; c < world_chapter_count; c++)
        for (int i = 0; i < world_chapters[c]->count; i++) {
            const world_template *t = &world_chapters[c]->templates[i];
            if (strcmp(t->rule, name) != 0)
                continue;
            if (count == MOST || t->weight <= 0)
                return fr_error_set(error, FR_BUG, name, NULL,
                                    "too many alternatives, or one without weight");
            FR_TRY(compile_template(w, t->text, &rule->alternatives[count], error));
            weights[count++] = (uint32_t)t->weight;
            w->patterns += has_words(t->text) && strncmp(name, "task_", 5) != 0 ? 1 : 0;
        }
    return world_weigh(&w->arena, &rule->choice, name, weights, count, error);
}

fr_status world_compile(world *w, fr_error *error)
{
    FR_TRY(number_rules(w, error));
    for (int i = 0; i < w->rule_count; i++)
        FR_TRY(compile_rule(w, &w->rules[i], error));
    return FR_OK;
}
