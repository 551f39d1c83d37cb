/* Random calls that the machine accepts. test_neuron_random asks what happens to nonsense, and almost none
 * of it is executed; here operands come from the descriptor table with shapes, memories and dtypes that fit
 * each other, and once a call of an instruction was done it is varied: another operator, other rows or
 * columns in all operands at once, another tile, an option given or left out. What was done must have
 * written only into tiles it may write, must do the same again from the same memory, and must have a time. */
#include "neuron_fixture.h"

#include "neuron/core.h"

#include <math.h>

enum { TENSORS = 28, KEPT = 4, MOST = 80, ROWS = 128, COLUMNS = 64 };

typedef struct kept_call {
    fr_neuron_call call;
    fr_neuron_view views[4];
    double numbers[FR_NEURON_PARAMETERS][FR_NEURON_LIST];
} kept_call;

static neuron_fixture f;
static fr_rng rng;
static fr_neuron_tensor *tensors[TENSORS];
static uint8_t *before[TENSORS];
static kept_call kept[MOST][KEPT];
static int kept_count[MOST], tried, done, reached[MOST];

static int64_t below(int64_t bound)
{
    return (int64_t)fr_rng_below(&rng, (uint64_t)bound);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static size_t tensor_bytes(const fr_neuron_tensor *t)
{
    return (size_t)(neuron_count(t) * fr_neuron_dtype_bytes(fr_neuron_tensor_layout(t)->dtype));
}

/* Whole numbers from 0, small enough for indices, lists of rows and every dtype. */
static void refill(void)
{
    for (int i = 0; i < TENSORS; i++) {
        int64_t count = neuron_count(tensors[i]);
        float *values = malloc((size_t)count * sizeof *values);
        bool whole = i % 3 == 0 || fr_neuron_tensor_layout(tensors[i])->dtype >= FR_NEURON_INT8;
        for (int64_t k = 0; k < count; k++)
            values[k] =
                whole ? (float)((k * 7919 + i) % 31) : 0.125f + (float)((k * 7919 + 13 * i) % 251) / 251;
        neuron_put(&f, tensors[i], values);
        free(values);
    }
}

static void make_tensors(void)
{
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_FLOAT32, FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16,
                                             FR_NEURON_FLOAT16, FR_NEURON_INT32,   FR_NEURON_UINT32,
                                             FR_NEURON_UINT16,  FR_NEURON_UINT8,   FR_NEURON_INT16};
    for (int i = 0; i < TENSORS; i++) {
        fr_neuron_layout layout = {.memory = FR_NEURON_SBUF, .dtype = dtypes[i % 9], .dims = 2};
        layout.memory = i < 18 ? FR_NEURON_SBUF : i < 23 ? FR_NEURON_PSUM : FR_NEURON_HBM;
        layout.shape[0] = ROWS, layout.shape[1] = COLUMNS;
        CHECK_DONE(fr_neuron_tensor_create(&tensors[i], f.core, layout, &f.error));
        before[i] = malloc(tensor_bytes(tensors[i]));
    }
    refill();
}

static void remember(void)
{
    for (int i = 0; i < TENSORS; i++)
        CHECK_DONE(fr_neuron_tensor_read(tensors[i], before[i], tensor_bytes(tensors[i]), &f.error));
}

static void put_back(void)
{
    for (int i = 0; i < TENSORS; i++)
        CHECK_DONE(fr_neuron_tensor_write(tensors[i], before[i], tensor_bytes(tensors[i]), &f.error));
}

static uint64_t contents(const fr_neuron_tensor *t)
{
    uint64_t sum = 1;
    for (int64_t r = 0; r < t->rows; r++)
        sum = fr_hash64(t->data + r * t->pitch, (size_t)t->row_bytes, sum);
    return sum;
}

/* ---- operands ------------------------------------------------------------------------------------------------- */

static fr_neuron_view part(fr_neuron_tensor *tensor, int64_t rows, int64_t columns)
{
    return neuron_slice(tensor, 0, rows, 0, columns);
}

static int64_t a_size(void)
{
    return (int64_t[]){32, 32, 32, 64, 16, 8, 1, 2}[below(8)];
}

/* What a parameter's line in the manual says of dtypes is believed, where it names any. */
static bool dtype_suits(const fr_neuron_parameter *p, fr_neuron_dtype dtype)
{
    static const char *const words[] = {"uint16", "uint32", "uint8", "int32", "bfloat16", "float32"};
    const char *text = p->text ? p->text : "";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(text, words[i]))
            return strstr(text, fr_neuron_dtype_name(dtype)) != NULL;
    return true;
}

static fr_neuron_tensor *tensor_in(fr_neuron_memory memory, const fr_neuron_parameter *p)
{
    bool believe = below(8) != 0;
    for (int n = 0;; n++) {
        fr_neuron_tensor *t = tensors[below(TENSORS)];
        const fr_neuron_layout *layout = fr_neuron_tensor_layout(t);
        if (layout->memory == memory && (!believe || n > 200 || dtype_suits(p, layout->dtype)))
            return t;
    }
}

typedef struct shape {
    int64_t rows, columns;
    fr_neuron_memory write, read;
    fr_neuron_tensor *same; /* NULL: every operand has a tile of its own choice */
} shape;

static shape a_shape(const fr_neuron_instruction *i)
{
    bool tensor = i->engines & FR_NEURON_ON(FR_NEURON_TENSOR),
         moves = i->engines & FR_NEURON_ON(FR_NEURON_DMA);
    shape s = {a_size(), a_size(), FR_NEURON_SBUF, FR_NEURON_SBUF, NULL};
    s.rows = s.rows < 8 ? 32 : s.rows;
    if (tensor && below(4))
        s.write = FR_NEURON_PSUM;
    if (moves && below(2))
        s.read = FR_NEURON_HBM;
    if (below(5) == 0 && i->engines & (FR_NEURON_ON(FR_NEURON_VECTOR) | FR_NEURON_ON(FR_NEURON_SCALAR)))
        s.write = FR_NEURON_PSUM;
    if (below(2))
        s.same = tensors[below(18)];
    return s;
}

static fr_neuron_view an_operand(const shape *s, const fr_neuron_parameter *p, bool is_write)
{
    fr_neuron_memory memory = is_write ? s->write : s->read;
    fr_neuron_tensor *t = s->same && below(4) && memory == FR_NEURON_SBUF &&
                                  dtype_suits(p, fr_neuron_tensor_layout(s->same)->dtype)
                              ? s->same
                              : tensor_in(memory, p);
    int64_t rows = s->rows, columns = s->columns;
    bool first = strcmp(p->name, "dst") == 0 || strstr(p->name, "idx");
    if ((p->kind == FR_NEURON_READ_OR_NUMBER && below(4)) || strstr(p->name, "res") ||
        strstr(p->name, "bound"))
        columns = 1;
    else if (first && below(6) == 0)
        rows = 1;
    else if (first && below(3) == 0)
        columns = (int64_t[]){1, 1, 2, 6, 8, 8, 33, 16}[below(8)];
    else if (first && below(3) == 0)
        rows = s->columns, columns = s->rows > COLUMNS ? COLUMNS : s->rows;
    else if (below(8) == 0)
        columns = (int64_t[]){1, 8, 6, 12}[below(4)];
    return part(t, rows > ROWS ? ROWS : rows, columns);
}

static double a_number(const fr_neuron_parameter *p)
{
    switch (p->kind) {
    case FR_NEURON_OPERATOR:
        return below(2) ? (double)below(FR_NEURON_OPERATORS)
                        : (double[]){FR_NEURON_ADD, FR_NEURON_MULTIPLY, FR_NEURON_MAXIMUM,
                                     FR_NEURON_LESS}[below(4)];
    case FR_NEURON_FUNCTION: return (double)below(FR_NEURON_FUNCTIONS);
    case FR_NEURON_ENGINE: return (double)below(FR_NEURON_ENGINES);
    case FR_NEURON_REDUCE_COMMAND: return (double)(below(2) ? 3 : below(5));
    case FR_NEURON_FLAG: return (double)below(2);
    case FR_NEURON_INTEGER: return below(2) ? p->number : (double)below(3);
    case FR_NEURON_CHOICE: return p->number;
    default: return (double[]){1, 0, 2, 0.5, -1}[below(5)];
    }
}

static void an_argument(kept_call *k, int a, const shape *s)
{
    const fr_neuron_parameter *p = &k->call.instruction->parameters[a];
    fr_neuron_argument *argument = &k->call.argument[a];
    *argument = (fr_neuron_argument){.given = p->required || below(4) == 0, .number = p->number};
    if (!argument->given)
        return;
    bool tile = p->kind <= FR_NEURON_UPDATE || (p->kind == FR_NEURON_READ_OR_NUMBER && below(2));
    argument->is_view = tile;
    if (tile)
        argument->view = an_operand(s, p, p->kind == FR_NEURON_WRITE || p->kind == FR_NEURON_UPDATE);
    else
        argument->number = a_number(p);
    if (p->kind == FR_NEURON_READ_LIST)
        for (int i = 0; i < 4; i++)
            k->views[i] = an_operand(s, p, false);
    argument->count = p->kind == FR_NEURON_READ_LIST ? 1 + (int)below(4)
                      : strstr(p->name, "mask")      ? FR_NEURON_LIST
                      : p->kind == FR_NEURON_PATTERN ? 2
                                                     : 1 + (int)below(3);
    for (int i = 0; i < FR_NEURON_LIST; i++)
        k->numbers[a][i] = (double)below(strstr(p->name, "mask") ? 32 : 3);
    if (p->kind == FR_NEURON_PATTERN)
        k->numbers[a][1] = (double)s->columns;
    if (p->kind == FR_NEURON_INTEGER_LIST && strstr(p->name, "axis"))
        k->numbers[a][0] = 1, argument->count = 1;
}

static int parameters_of(const kept_call *k)
{
    int n = 0;
    while (n < FR_NEURON_PARAMETERS && k->call.instruction->parameters[n].name)
        n++;
    return n;
}

static void fresh(kept_call *k, const fr_neuron_instruction *instruction)
{
    shape s = a_shape(instruction);
    *k = (kept_call){.call = {.instruction = instruction}};
    for (int a = 0; a < parameters_of(k); a++)
        an_argument(k, a, &s);
}

/* All operands with `from` rows (or columns) get `to`. */
static void resize(kept_call *k, bool rows, int64_t from, int64_t to)
{
    for (int a = 0; a < parameters_of(k); a++) {
        fr_neuron_view *v = &k->call.argument[a].view;
        if (!k->call.argument[a].is_view)
            continue;
        if (!rows && v->size[v->dims - 1] == from)
            v->size[v->dims - 1] = to;
        if (rows && v->partitions == from)
            v->partitions = (int16_t)to;
        else if (rows && v->partitions == 0 && v->size[0] == from)
            v->size[0] = to;
    }
}

static void vary(kept_call *k)
{
    int a = (int)below(parameters_of(k));
    const fr_neuron_parameter *p = &k->call.instruction->parameters[a];
    fr_neuron_argument *argument = &k->call.argument[a];
    const fr_neuron_view *v = &argument->view;
    if (!argument->is_view) {
        shape s = a_shape(k->call.instruction);
        if (p->kind != FR_NEURON_PATTERN && p->kind != FR_NEURON_READ_LIST)
            an_argument(k, a, &s);
        return;
    }
    switch (below(4)) {
    case 0:
        resize(k, true, v->partitions ? v->partitions : v->size[0], (int64_t[]){16, 32, 64, 128}[below(4)]);
        break;
    case 1: resize(k, false, v->size[v->dims - 1], a_size()); break;
    case 2: argument->view.tensor = tensors[below(18)]; break;
    default:
        argument->view.offset +=
            v->size[v->dims - 1] <= COLUMNS / 2 && argument->view.offset == 0 ? COLUMNS / 2 : 0;
    }
    if (argument->view.tensor != v->tensor || below(2))
        argument->view.dtype = fr_neuron_tensor_layout(argument->view.tensor)->dtype;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static fr_status issue(kept_call *k)
{
    for (int a = 0; a < FR_NEURON_PARAMETERS; a++) {
        k->call.argument[a].views = k->views;
        k->call.argument[a].numbers = k->numbers[a];
    }
    return neuron_issue(&f, &k->call);
}

static bool may_write(const kept_call *k, const fr_neuron_tensor *t)
{
    for (int a = 0; a < parameters_of(k); a++) {
        fr_neuron_kind kind = k->call.instruction->parameters[a].kind;
        if ((kind == FR_NEURON_WRITE || kind == FR_NEURON_UPDATE) && k->call.argument[a].view.tensor == t)
            return true;
    }
    return false;
}

static bool has_state(const char *name) /* random numbers and accumulators go on where they were */
{
    return strstr(name, "ran") == name || strstr(name, "rng") || strstr(name, "dropout") ||
           strstr(name, "reduce") || strstr(name, "cumulative") || strstr(name, "activat") ||
           strstr(name, "select") || strstr(name, "exponential") || strstr(name, "matmul") ||
           strstr(name, "sendrecv");
}

static void check_done(kept_call *k, const uint64_t *old)
{
    uint64_t now[TENSORS];
    const char *name = k->call.instruction->name;
    for (int i = 0; i < TENSORS; i++) {
        now[i] = contents(tensors[i]);
        if (now[i] != old[i] && !may_write(k, tensors[i]))
            test_fail_format(__FILE__, __LINE__, "%s wrote into a tile that is not its own", name);
    }
    if (has_state(name))
        return;
    put_back();
    if (issue(k) != FR_OK)
        test_fail_format(__FILE__, __LINE__, "%s was done and then refused: %s", name, f.error.what);
    for (int i = 0; i < TENSORS; i++)
        if (contents(tensors[i]) != now[i])
            test_fail_format(__FILE__, __LINE__, "%s does not do the same twice", name);
}

static bool attempt(kept_call *k, int instruction)
{
    uint64_t old[TENSORS];
    for (int i = 0; i < TENSORS; i++)
        old[i] = contents(tensors[i]);
    tried++;
    if (issue(k) != FR_OK)
        return false;
    done++;
    reached[instruction]++;
    check_done(k, old);
    put_back();
    if (kept_count[instruction] < KEPT || below(8) == 0) {
        int at = kept_count[instruction] < KEPT ? kept_count[instruction]++ : (int)below(KEPT);
        kept[instruction][at] = *k;
    }
    return true;
}

static void run_machine(const char *machine, uint64_t seed)
{
    int count;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    rng = (fr_rng){.seed = seed, .stream = 5};
    memset(kept_count, 0, sizeof kept_count);
    neuron_begin(&f, machine);
    make_tensors();
    remember();
    for (int i = 0; i < count && i < MOST; i++) {
        kept_call k;
        if (all[i]->least_generation > f.machine.generation)
            continue;
        for (int n = 0; n < 150 && !kept_count[i]; n++) {
            fresh(&k, all[i]);
            attempt(&k, i);
        }
        for (int n = 0; n < 60 && kept_count[i]; n++) {
            k = kept[i][below(kept_count[i])];
            vary(&k);
            attempt(&k, i);
        }
    }
    fr_neuron_timing time;
    CHECK_DONE(fr_neuron_time(f.core, &time, NULL, &f.error));
    CHECK(isfinite(time.predicted_ns) && time.predicted_ns > 0);
    for (int i = 0; i < TENSORS; i++)
        free(before[i]);
    neuron_end(&f);
}

TEST(legal_calls_keep_to_their_tiles_and_repeat)
{
    int count, instructions = 0;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    CHECK(count <= MOST);
    run_machine("trn1", 1);
    run_machine("trn2", 2);
    run_machine("trn3", 3);
    for (int i = 0; i < count; i++) {
        instructions += reached[i] > 0;
        if (!reached[i])
            printf("# never done: %s\n", all[i]->name);
    }
    printf("# %d of %d calls were done, of %d of %d instructions\n", done, tried, instructions, count);
    CHECK(done * 5 > tried);
    CHECK(instructions * 3 > count * 2);
}

TEST_MAIN(neuron_legal)
