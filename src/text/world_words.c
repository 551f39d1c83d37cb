/* world_words.c: the written forms of a word.
 *
 * English inflection by rule, with exceptions written into the lexicon where the rule fails:
 *     noun       knife/knives
 *     verb       run/ran/running   (past, then present participle; the third form may be left out)
 *     adjective  patient/patience, else by rule: quiet, quietly, quietness, a quiet
 *     given name Mara/f or Tobin/m, which fixes the pronouns
 * A form that makes no sense for a class simply is not asked for by any template.
 */
#include "text/world.h"
#include <string.h>

const char *const world_form_names[WORLD_FORMS] = {"",  "s",    "ed", "ing", "ly", "ness",
                                                   "a", "full", "he", "his", "him"};

static bool is_vowel(char c)
{
    return c && strchr("aeiou", c) != NULL;
}

bool world_set_form(fr_arena *arena, world_entry *entry, world_form form, const char *text)
{
    char *copy = fr_arena_strdup(arena, text);
    entry->forms[form] = (world_text){copy, copy ? strlen(copy) : 0};
    return copy != NULL;
}

static bool ends_with(const char *word, const char *tail)
{
    size_t n = strlen(word), m = strlen(tail);
    return n >= m && strcmp(word + n - m, tail) == 0;
}

/* Consonant + y: the y turns into i before most endings. */
static bool has_soft_y(const char *word)
{
    size_t n = strlen(word);
    return n > 1 && word[n - 1] == 'y' && !is_vowel(word[n - 2]);
}

static void add_s(const char *word, char *out, size_t size)
{
    bool hiss =
        ends_with(word, "s") || ends_with(word, "x") || ends_with(word, "ch") || ends_with(word, "sh");
    if (has_soft_y(word))
        snprintf(out, size, "%.*sies", (int)strlen(word) - 1, word);
    else
        snprintf(out, size, "%s%s", word, hiss ? "es" : "s");
}

static void add_ed(const char *word, char *out, size_t size)
{
    if (has_soft_y(word))
        snprintf(out, size, "%.*sied", (int)strlen(word) - 1, word);
    else
        snprintf(out, size, "%s%s", word, ends_with(word, "e") ? "d" : "ed");
}

static void add_ing(const char *word, char *out, size_t size)
{
    bool drop = ends_with(word, "e") && !ends_with(word, "ee");
    snprintf(out, size, "%.*sing", (int)strlen(word) - (drop ? 1 : 0), word);
}

static void add_ly(const char *word, char *out, size_t size)
{
    size_t n = strlen(word);
    if (has_soft_y(word))
        snprintf(out, size, "%.*sily", (int)n - 1, word);
    else if (ends_with(word, "le"))
        snprintf(out, size, "%.*sy", (int)n - 1, word);
    else
        snprintf(out, size, "%s%s", word, ends_with(word, "ll") ? "y" : "ly");
}

static void add_ness(const char *word, char *out, size_t size)
{
    if (has_soft_y(word))
        snprintf(out, size, "%.*siness", (int)strlen(word) - 1, word);
    else
        snprintf(out, size, "%sness", word);
}

static void add_article(const char *word, char *out, size_t size)
{
    bool vowel = is_vowel(word[0]) && strncmp(word, "use", 3) != 0 && strncmp(word, "uni", 3) != 0;
    snprintf(out, size, "%s %s", vowel ? "an" : "a", word);
}

typedef void (*inflection)(const char *word, char *out, size_t size);

/* "pull weeds" becomes "pulled weeds": the first word carries the ending. */
static void inflect_first(inflection rule, const char *words, char *out, size_t size)
{
    char first[96], ending[128];
    size_t length = strcspn(words, " ");
    snprintf(first, sizeof first, "%.*s", (int)length, words);
    rule(first, ending, sizeof ending);
    snprintf(out, size, "%s%s", ending, words + length);
}

static bool set_or_inflect(fr_arena *arena, world_entry *entry, world_shape shape, world_form form,
                           const char *given, inflection rule, const char *word)
{
    char text[256];
    if (!given && shape == SHAPE_VERB)
        inflect_first(rule, word, text, sizeof text);
    else if (!given)
        rule(word, text, sizeof text);
    return world_set_form(arena, entry, form, given ? given : text);
}

static bool set_pronouns(fr_arena *arena, world_entry *entry, bool female)
{
    return world_set_form(arena, entry, FORM_HE, female ? "she" : "he") &&
           world_set_form(arena, entry, FORM_HIS, female ? "her" : "his") &&
           world_set_form(arena, entry, FORM_HIM, female ? "her" : "him");
}

static bool set_shape(fr_arena *arena, world_shape shape, const char *word, const char *second,
                      const char *third, world_entry *entry)
{
    if (shape == SHAPE_NOUN)
        return set_or_inflect(arena, entry, shape, FORM_S, second, add_s, word) &&
               set_or_inflect(arena, entry, shape, FORM_A, NULL, add_article, word);
    if (shape == SHAPE_VERB)
        return set_or_inflect(arena, entry, shape, FORM_S, NULL, add_s, word) &&
               set_or_inflect(arena, entry, shape, FORM_ED, second, add_ed, word) &&
               set_or_inflect(arena, entry, shape, FORM_ING, third, add_ing, word);
    if (shape == SHAPE_ADJECTIVE)
        return set_or_inflect(arena, entry, shape, FORM_LY, NULL, add_ly, word) &&
               set_or_inflect(arena, entry, shape, FORM_NESS, second, add_ness, word) &&
               set_or_inflect(arena, entry, shape, FORM_A, NULL, add_article, word);
    if (shape == SHAPE_GIVEN)
        return set_pronouns(arena, entry, second && strcmp(second, "f") == 0);
    return true;
}

bool world_inflect(fr_arena *arena, world_shape shape, const char *spelling, size_t length,
                   world_entry *entry)
{
    char text[128];
    if (length >= sizeof text)
        return false;
    memcpy(text, spelling, length);
    text[length] = 0;
    for (char *c = text; *c; c++)
        if (*c == '_')
            *c = ' ';
    char *parts[3] = {text, NULL, NULL};
    for (int i = 1; i < 3 && parts[i - 1]; i++)
        if ((parts[i] = strchr(parts[i - 1], '/')) != NULL)
            *parts[i]++ = 0;
    return world_set_form(arena, entry, FORM_BASE, text) &&
           set_shape(arena, shape, text, parts[1], parts[2], entry);
}
