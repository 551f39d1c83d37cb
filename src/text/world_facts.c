/* world_facts.c: who lives in the world, and what is true of them.
 *
 * Everything here is a function of the world's seed: which words are frequent, who the sixty people are,
 * their trades, homes, pets and tastes, which river passes a place, who keeps a treasure. The fixed
 * relations of the lexicon (a baker has an oven, a dog barks) hold in every world. The stream of each
 * decision is named, so adding a class never changes another one.
 */
#include "text/world.h"
#include "text/world/world_names.h"
#include <string.h>

enum { PEOPLE = 60, PLACES = 20, TREASURES = 20, MOST_WORDS = 256 };

typedef struct words { /* pieces of a space-separated string */
    world_text items[MOST_WORDS];
    int count;
} words;

static words split_words(const char *text)
{
    words list = {.count = 0};
    while (*text && list.count < MOST_WORDS) {
        size_t length = strcspn(text, " ");
        list.items[list.count++] = (world_text){text, length};
        text += length + (text[length] == ' ');
    }
    return list;
}

static fr_rng stream_of(const world *w, const char *name)
{
    return (fr_rng){.seed = w->seed, .stream = fr_hash64(name, strlen(name), WORLD_VERSION)};
}

static void shuffle(words *list, fr_rng *rng)
{
    for (int i = list->count - 1; i > 0; i--) {
        int j = (int)fr_rng_below(rng, (uint64_t)i + 1);
        world_text held = list->items[i];
        list->items[i] = list->items[j];
        list->items[j] = held;
    }
}

/* A class of `count` entries weighted by rank. */
static fr_status add_class(world *w, const char *name, int count, int flatness, world_class **out,
                           fr_error *error)
{
    uint32_t weights[1024];
    if (w->class_count == WORLD_CLASSES || count > 1024)
        return fr_error_set(error, FR_BUG, name, NULL, "too many classes or entries in the world");
    for (int i = 0; i < count; i++)
        weights[i] = (1u << 20) / (uint32_t)(i + flatness);
    world_class *c = &w->classes[w->class_count++];
    c->entries = fr_arena_alloc(&w->arena, (size_t)count * sizeof *c->entries);
    if (!c->entries)
        return fr_error_memory(error, (size_t)count * sizeof *c->entries, "the world's words");
    *out = c;
    return world_weigh(&w->arena, &c->choice, name, weights, count, error);
}

static fr_status out_of_memory(fr_error *error)
{
    return fr_error_memory(error, 64, "the world's words");
}

static fr_status add_words(world *w, const char *name, world_shape shape, int flatness, const words *list,
                           fr_error *error)
{
    world_class *c;
    FR_TRY(add_class(w, name, list->count, flatness, &c, error));
    for (int i = 0; i < list->count; i++)
        if (!world_inflect(&w->arena, shape, list->items[i].data, list->items[i].length, &c->entries[i]))
            return out_of_memory(error);
    return FR_OK;
}

static fr_status add_lexicon(world *w, fr_error *error)
{
    for (int i = 0; i < world_lexicon_count; i++) {
        const world_list *list = &world_lexicon[i];
        words all = split_words(list->words);
        fr_rng rng = stream_of(w, list->name);
        shuffle(&all, &rng);
        FR_TRY(add_words(w, list->name, list->shape, list->flatness, &all, error));
    }
    return FR_OK;
}

static int class_named(const world *w, const char *name)
{
    return world_find_class(w, name, strlen(name));
}

static void relate(world *w, int class_number, int entry, world_attribute name, int other, int other_entry)
{
    world_entry *e = &w->classes[class_number].entries[entry];
    e->attribute_names[e->attribute_count] = (uint8_t)name;
    e->attributes[e->attribute_count++] = (world_ref){(int16_t)other, (int16_t)other_entry};
}

typedef struct column {
    const char *name;
    world_shape shape;
    world_attribute attribute; /* of the first column's entry */
} column;

/* A table becomes a class per column; row i of the first points to row i of the others. */
static fr_status add_table(world *w, const world_relation *rows, int count, const column *columns, int width,
                           int flatness, fr_error *error)
{
    int first = w->class_count;
    for (int c = 0; c < width; c++) {
        words list = {.count = count};
        for (int i = 0; i < count; i++)
            list.items[i] = (world_text){rows[i].row[c], strlen(rows[i].row[c])};
        FR_TRY(add_words(w, columns[c].name, columns[c].shape, flatness, &list, error));
        for (int i = 0; c > 0 && i < count; i++)
            relate(w, first, i, columns[c].attribute, first + c, i);
    }
    return FR_OK;
}

static fr_status add_tables(world *w, fr_error *error)
{
    static const column trades[] = {{"trade", SHAPE_NOUN, ATTRIBUTE_TRADE},
                                    {"trade_shop", SHAPE_NOUN, ATTRIBUTE_SHOP},
                                    {"trade_tool", SHAPE_NOUN, ATTRIBUTE_TOOL},
                                    {"trade_ware", SHAPE_NOUN, ATTRIBUTE_WARE},
                                    {"trade_act", SHAPE_VERB, ATTRIBUTE_ACT}};
    static const column animals[] = {{"animal", SHAPE_NOUN, ATTRIBUTE_SPECIES},
                                     {"animal_sound", SHAPE_VERB, ATTRIBUTE_SOUND},
                                     {"animal_shelter", SHAPE_NOUN, ATTRIBUTE_SHELTER},
                                     {"animal_meal", SHAPE_NOUN, ATTRIBUTE_MEAL}};
    FR_TRY(add_table(w, world_trade_table, world_trade_count, trades, 5, 100, error));
    return add_table(w, world_animal_table, world_animal_count, animals, 4, 100, error);
}

static const char *number_words(fr_arena *arena, int n)
{
    static const char *const low[] = {"zero",    "one",     "two",       "three",    "four",
                                      "five",    "six",     "seven",     "eight",    "nine",
                                      "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                      "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
    static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                       "fifty", "sixty", "seventy", "eighty", "ninety"};
    if (n < 20)
        return low[n];
    if (n > 99)
        return "many";
    return n % 10 ? fr_arena_printf(arena, "%s-%s", tens[n / 10], low[n % 10]) : tens[n / 10];
}

static fr_status add_numbers(world *w, const char *name, int least, int most, fr_error *error)
{
    world_class *c;
    FR_TRY(add_class(w, name, most - least + 1, 1 << 16, &c, error));
    for (int i = 0; i <= most - least; i++) {
        const char *digits = fr_arena_printf(&w->arena, "%d", least + i);
        const char *text = number_words(&w->arena, least + i);
        c->entries[i].value = least + i;
        if (!digits || !text || !world_set_form(&w->arena, &c->entries[i], FORM_BASE, digits) ||
            !world_set_form(&w->arena, &c->entries[i], FORM_FULL, text))
            return out_of_memory(error);
    }
    return FR_OK;
}

/* Deals one attribute to every entry of a class: the other class is shuffled like a deck of cards and dealt
 * as often as needed, so that every trade has its people and every place its inhabitants. */
static void deal(world *w, int class_number, world_attribute name, const char *from, fr_rng *rng)
{
    int deck[1024], other = class_named(w, from);
    int cards = w->classes[other].choice.count, hands = w->classes[class_number].choice.count;
    for (int i = 0; i < cards; i++)
        deck[i] = i;
    for (int i = cards - 1; i > 0; i--) {
        int j = (int)fr_rng_below(rng, (uint64_t)i + 1), held = deck[i];
        deck[i] = deck[j];
        deck[j] = held;
    }
    for (int i = 0; i < hands; i++)
        relate(w, class_number, i, name, other, deck[i % cards]);
}

static fr_status add_places(world *w, fr_error *error)
{
    world_class *c;
    fr_rng rng = stream_of(w, "place");
    words heads = split_words(world_place_heads), tails = split_words(world_place_tails);
    words rivers = split_words(world_rivers);
    shuffle(&heads, &rng);
    shuffle(&rivers, &rng);
    FR_TRY(add_words(w, "river", SHAPE_PLAIN, 20, &rivers, error));
    int number = w->class_count;
    FR_TRY(add_class(w, "place", PLACES, 30, &c, error));
    for (int i = 0; i < PLACES; i++) {
        world_text tail = tails.items[fr_rng_below(&rng, (uint64_t)tails.count)], head = heads.items[i];
        const char *name =
            fr_arena_printf(&w->arena, "%.*s%.*s", (int)head.length, head.data, (int)tail.length, tail.data);
        if (!name || !world_set_form(&w->arena, &c->entries[i], FORM_BASE, name))
            return out_of_memory(error);
    }
    deal(w, number, ATTRIBUTE_RIVER, "river", &rng);
    deal(w, number, ATTRIBUTE_KIND, "kind", &rng);
    deal(w, number, ATTRIBUTE_WARE, "product", &rng);
    return FR_OK;
}

static fr_status name_person(world *w, world_entry *person, world_text given, world_text head,
                             world_text tail, fr_error *error)
{
    if (!world_inflect(&w->arena, SHAPE_GIVEN, given.data, given.length, person))
        return out_of_memory(error);
    const char *full = fr_arena_printf(&w->arena, "%s %.*s%.*s", person->forms[FORM_BASE].data,
                                       (int)head.length, head.data, (int)tail.length, tail.data);
    if (!full || !world_set_form(&w->arena, person, FORM_FULL, full))
        return out_of_memory(error);
    return FR_OK;
}

static const char *surname_list(const char *name)
{
    for (int i = 0; i < world_lexicon_count; i++)
        if (strcmp(world_lexicon[i].name, name) == 0)
            return world_lexicon[i].words;
    return "";
}

static fr_status name_people(world *w, world_class *people, words *given, fr_rng *rng, fr_error *error)
{
    words heads = split_words(surname_list("sur_head")), tails = split_words(surname_list("sur_tail"));
    shuffle(given, rng);
    shuffle(&heads, rng);
    for (int i = 0; i < PEOPLE; i++)
        FR_TRY(name_person(w, &people->entries[i], given->items[i], heads.items[i],
                           tails.items[fr_rng_below(rng, (uint64_t)tails.count)], error));
    return FR_OK;
}

/* Friendship is not mutual: everybody has the next person of a shuffled circle for a best friend. */
static void make_friends(world *w, int people, fr_rng *rng)
{
    int circle[PEOPLE];
    for (int i = 0; i < PEOPLE; i++)
        circle[i] = i;
    for (int i = PEOPLE - 1; i > 0; i--) {
        int j = (int)fr_rng_below(rng, (uint64_t)i + 1), held = circle[i];
        circle[i] = circle[j];
        circle[j] = held;
    }
    for (int i = 0; i < PEOPLE; i++)
        relate(w, people, circle[i], ATTRIBUTE_FRIEND, people, circle[(i + 1) % PEOPLE]);
}

static void settle_people(world *w, int people, fr_rng *rng)
{
    int pets = class_named(w, "pet");
    deal(w, people, ATTRIBUTE_TRADE, "trade", rng);
    deal(w, people, ATTRIBUTE_HOME, "place", rng);
    deal(w, people, ATTRIBUTE_FOOD, "dish", rng);
    deal(w, people, ATTRIBUTE_COLOUR, "colour", rng);
    deal(w, people, ATTRIBUTE_HOBBY, "hobby", rng);
    make_friends(w, people, rng);
    deal(w, people, ATTRIBUTE_PET, "pet", rng);
    deal(w, pets, ATTRIBUTE_SPECIES, "animal", rng);
    deal(w, pets, ATTRIBUTE_COAT, "colour", rng);
}

static fr_status add_people(world *w, fr_error *error)
{
    world_class *people;
    fr_rng rng = stream_of(w, "person");
    words given = split_words(world_given_names), pets = split_words(world_pet_names);
    shuffle(&pets, &rng);
    pets.count = PEOPLE;
    FR_TRY(add_words(w, "pet", SHAPE_PLAIN, 40, &pets, error));
    int number = w->class_count;
    FR_TRY(add_class(w, "person", PEOPLE, 300, &people, error));
    FR_TRY(name_people(w, people, &given, &rng, error));
    settle_people(w, number, &rng);
    words rest = {.count = given.count - PEOPLE};
    memcpy(rest.items, given.items + PEOPLE, (size_t)rest.count * sizeof rest.items[0]);
    return add_words(w, "given", SHAPE_GIVEN, 15, &rest, error);
}

static fr_status add_treasures(world *w, fr_error *error)
{
    world_class *c;
    fr_rng rng = stream_of(w, "treasure");
    int number = w->class_count;
    const world_class *epithets = &w->classes[class_named(w, "epithet")],
                      *relics = &w->classes[class_named(w, "relic")];
    FR_TRY(add_class(w, "treasure", TREASURES, 40, &c, error));
    for (int i = 0; i < TREASURES; i++) { /* the lists are shuffled by seed already */
        const char *name = fr_arena_printf(&w->arena, "%s %s", epithets->entries[i].forms[FORM_BASE].data,
                                           relics->entries[i].forms[FORM_BASE].data);
        if (!name || !world_set_form(&w->arena, &c->entries[i], FORM_BASE, name))
            return out_of_memory(error);
    }
    deal(w, number, ATTRIBUTE_OWNER, "person", &rng);
    deal(w, number, ATTRIBUTE_PLACE, "place", &rng);
    deal(w, number, ATTRIBUTE_MATERIAL, "stone", &rng);
    return FR_OK;
}

fr_status world_make_facts(world *w, fr_error *error)
{
    FR_TRY(add_lexicon(w, error));
    FR_TRY(add_tables(w, error));
    FR_TRY(add_numbers(w, "small", 2, 9, error));
    FR_TRY(add_numbers(w, "day", 1, 28, error));
    FR_TRY(add_numbers(w, "number", 10, 99, error));
    FR_TRY(add_numbers(w, "year", 1700, 1899, error));
    FR_TRY(add_numbers(w, "page", 100, 999, error));
    FR_TRY(add_places(w, error));
    FR_TRY(add_people(w, error));
    return add_treasures(w, error);
}
