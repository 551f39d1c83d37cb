/* text/world.h: how the built-in world is represented (internal).
 *
 * A world is (facts, grammar). Facts are classes of entries: a class is a kind of thing a sentence can
 * name (person, trade, fruit), an entry is one of them with its written forms ("knife", "knives", "a
 * knife") and its attributes, which point to entries of other classes (a person's trade, that trade's
 * tool). The grammar is a set of rules; a rule is a list of weighted alternatives; an alternative is a
 * template that was compiled to symbols. Two kinds of choice exist: which alternative of a rule, and which
 * entry of a class. Everything else in a document follows from earlier choices and the facts.
 *
 * One machine (world_machine.c) walks the grammar and stops at each choice. Three drivers answer it: a
 * random one writes documents, a searching one explains them, a replaying one proves the explanation.
 */
#ifndef FRONTIER_SRC_TEXT_WORLD_H
#define FRONTIER_SRC_TEXT_WORLD_H
#include "frontier/text.h"

enum {
    WORLD_VERSION = 2,     /* raise when any byte of any document changes */
    WORLD_REGISTERS = 26,  /* {A:..} to {Z:..}: what a document has named */
    WORLD_ATTRIBUTES = 10, /* attributes of one entry */
    WORLD_PATH = 3,        /* {P.home.river} is a path of two */
    WORLD_CLASSES = 160,
    WORLD_RULES = 240,
    WORLD_FRAMES = 4096 /* nesting of rules while a document is written */
};

/* Written forms of an entry; the name is what follows '+' in a template. */
typedef enum world_form {
    FORM_BASE,
    FORM_S, /* plural, or third person singular */
    FORM_ED,
    FORM_ING,
    FORM_LY,
    FORM_NESS,
    FORM_A,    /* with its indefinite article */
    FORM_FULL, /* a person's full name; a number in words */
    FORM_HE,
    FORM_HIS,
    FORM_HIM,
    WORLD_FORMS
} world_form;

/* Names of attributes, in the order of world_attribute_names. */
typedef enum world_attribute {
    ATTRIBUTE_TRADE,
    ATTRIBUTE_HOME,
    ATTRIBUTE_PET,
    ATTRIBUTE_FOOD,
    ATTRIBUTE_COLOUR,
    ATTRIBUTE_HOBBY,
    ATTRIBUTE_FRIEND,
    ATTRIBUTE_KIND,
    ATTRIBUTE_RIVER,
    ATTRIBUTE_WARE,
    ATTRIBUTE_SHOP,
    ATTRIBUTE_TOOL,
    ATTRIBUTE_SPECIES,
    ATTRIBUTE_COAT,
    ATTRIBUTE_OWNER,
    ATTRIBUTE_SOUND,
    ATTRIBUTE_SHELTER,
    ATTRIBUTE_MEAL,
    ATTRIBUTE_MATERIAL,
    ATTRIBUTE_PLACE,
    ATTRIBUTE_ACT,
    WORLD_ATTRIBUTE_NAMES
} world_attribute;

typedef struct world_text {
    const char *data;
    size_t length;
} world_text;
typedef struct world_ref {
    int16_t kind, entry; /* class number and entry number; kind < 0 = nothing */
} world_ref;
typedef struct world_entry {
    world_text forms[WORLD_FORMS]; /* data NULL = has no such form */
    world_ref attributes[WORLD_ATTRIBUTES];
    uint8_t attribute_names[WORLD_ATTRIBUTES];
    int attribute_count;
    int value; /* of a number */
} world_entry;

/* The weights of a choice: cumulative[i] = weights before i, cumulative[count] = total. Costs are in
 * units of 2^-32 bits. */
typedef struct world_choice {
    const char *name;
    int count;
    uint32_t *cumulative;
    int64_t *cost;
} world_choice;
typedef struct world_class {
    world_choice choice;
    world_entry *entries;
} world_class;

typedef enum world_op { OP_LITERAL, OP_RULE, OP_PICK, OP_RECALL, OP_SUM } world_op;
typedef struct world_symbol {
    uint8_t op, form, path_length;
    uint8_t path[WORLD_PATH];
    bool capital, silent;
    int8_t place;    /* register of pick and recall; first of a sum; -1 = none */
    int8_t second;   /* second register of a sum */
    char sign;       /* + - * of a sum */
    int16_t target;  /* rule or class number */
    world_text text; /* of a literal */
} world_symbol;
typedef struct world_alternative {
    const world_symbol *symbols;
    int count;
    const char *source; /* the template as written */
} world_alternative;
typedef struct world_rule {
    world_choice choice;
    world_alternative *alternatives;
} world_rule;

typedef struct world {
    fr_arena arena;
    uint64_t seed;
    int class_count, rule_count, patterns;
    world_class classes[WORLD_CLASSES];
    world_rule rules[WORLD_RULES];
} world;

fr_status world_create(world **out, uint64_t seed, fr_error *error);
void world_free(world *w);
int world_find_class(const world *w, const char *name, size_t length); /* number or -1 */
int world_find_rule(const world *w, const char *name, size_t length);
/* The entry an attribute points to; kind < 0 when the entry has no such attribute. */
world_ref world_attribute_of(const world *w, world_ref ref, world_attribute name);
extern const char *const world_form_names[WORLD_FORMS];
extern const char *const world_attribute_names[WORLD_ATTRIBUTE_NAMES];

/* -- words: world_words.c -- */
typedef enum world_shape { SHAPE_NOUN, SHAPE_VERB, SHAPE_ADJECTIVE, SHAPE_PLAIN, SHAPE_GIVEN } world_shape;
/* Fills the forms of one entry from its lexicon spelling: "knife/knives", "run/ran/running", "Mara/f". */
bool world_inflect(fr_arena *arena, world_shape shape, const char *spelling, size_t length,
                   world_entry *entry);
bool world_set_form(fr_arena *arena, world_entry *entry, world_form form, const char *text);

/* -- the lexicon and the templates: world/ -- */
typedef struct world_list {
    const char *name;
    world_shape shape;
    int flatness;      /* weight of rank r is proportional to 1 / (r + flatness) */
    const char *words; /* separated by spaces; '_' writes a space inside a word */
} world_list;
extern const world_list world_lexicon[];
extern const int world_lexicon_count;
/* Rows of words with fixed relations that any world shares: name, then one word per attribute. */
typedef struct world_relation {
    const char *row[5];
} world_relation;
extern const world_relation world_trade_table[], world_animal_table[];
extern const int world_trade_count, world_animal_count;

typedef struct world_template {
    const char *rule;
    int weight;
    const char *text;
} world_template;
typedef struct world_chapter {
    const world_template *templates;
    int count;
} world_chapter;
extern const world_chapter *const world_chapters[];
extern const int world_chapter_count;

/* -- facts: world_facts.c -- */
fr_status world_make_facts(world *w, fr_error *error);
/* -- grammar: world_compile.c -- */
fr_status world_compile(world *w, fr_error *error);
/* -- information: world_bits.c -- */
int64_t world_log2(uint64_t x); /* log2(x) in units of 2^-32, x >= 1; integers only */
fr_status world_weigh(fr_arena *arena, world_choice *choice, const char *name, const uint32_t *weights,
                      int count, fr_error *error);
int world_draw(const world_choice *choice, uint32_t ticket); /* the entry that holds this ticket */

/* -- the machine: world_machine.c -- */
typedef struct world_frame {
    const world_symbol *next, *end;
    int parent; /* frame below, -1 = none */
} world_frame;
typedef struct world_state { /* everything a snapshot needs; frames at or above `used` are free */
    int frame, used;
    bool capital;
    size_t at; /* bytes written or matched */
    int64_t cost;
    world_ref registers[WORLD_REGISTERS];
} world_state;
typedef struct world_machine {
    const world *w;
    world_state state;
    world_symbol start;
    world_frame frames[WORLD_FRAMES];
    fr_buffer *out;   /* writing; or NULL: */
    const char *text; /* matching against this */
    size_t bytes;
    int64_t *mentions; /* counts of stated facts by world_fact_index; may be NULL */
} world_machine;
typedef enum world_stop { STOP_DONE, STOP_CHOICE, STOP_MISMATCH, STOP_OVERFLOW } world_stop;
/* What the machine asks when it stops at a choice. */
typedef struct world_question {
    const world_symbol *symbol;
    const world_choice *choice;
    uint32_t total;                /* tickets: all weights but those of excluded entries */
    int excluded[WORLD_REGISTERS]; /* ascending */
    int excluded_count;
} world_question;
void world_machine_start(world_machine *machine, const world *w, int rule);
world_stop world_machine_run(world_machine *machine, world_question *question);
/* Answers the question. False: the text does not go on like that. */
bool world_machine_take(world_machine *machine, const world_question *question, int index);
int64_t world_question_cost(const world_question *question, int index);
bool world_question_allows(const world_question *question, int index);
/* The text of one entry's form, or data NULL. */
world_text world_form_of(const world *w, world_ref ref, world_form form);
/* Every (entry, attribute) of a world has a number, for counting how often it is stated. */
int world_fact_count(const world *w);
int world_fact_index(const world *w, world_ref ref, int slot);
/* Writes one derivation of a rule. The machine is the caller's: `mentions` goes on counting, and registers and
 * cost can be read afterwards. */
fr_status world_write(world_machine *machine, const world *w, int rule, fr_rng *rng, fr_buffer *out,
                      fr_error *error);
/* Streams of documents beside FR_TRAIN and FR_VALID. */
enum { WORLD_STREAM_TASKS = 16 };
fr_rng world_document_rng(const world *w, uint64_t docs_seed, int stream, int64_t index);

/* -- explaining: world_explain.c -- */
typedef struct world_parse {
    int *choices; /* in the order the machine asks; in the arena */
    int count, parses;
    int64_t cost;
} world_parse;
/* All ways to derive the text, up to two: parses is 1 for every document of the world. */
fr_status world_parse_text(const world *w, const char *text, size_t bytes, fr_arena *arena,
                           world_parse *parse, fr_error *error);
/* Writes the document of recorded choices. */
fr_status world_replay(const world *w, const world_parse *parse, fr_buffer *out, int64_t *cost,
                       fr_error *error);

#endif
