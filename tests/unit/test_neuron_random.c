/* Random calls of every instruction: views, constants and lists that are mostly plausible and sometimes
 * hostile. Whatever they are, the answer is one of done, refused with a rule that exists, or misuse; a
 * call that was not done leaves every byte and the trace as they were. Run under sanitizers this is the
 * test of the checks. */
#include "neuron_fixture.h"

#include "neuron/core.h"

static neuron_fixture f;
static fr_rng rng;

enum { TENSORS = 24 };
static fr_neuron_tensor *tensors[TENSORS];

static int64_t below(int64_t bound)
{
    return (int64_t)fr_rng_below(&rng, (uint64_t)bound);
}

static void make_tensors(void)
{
    static const fr_neuron_dtype dtypes[] = {FR_NEURON_FLOAT32, FR_NEURON_BFLOAT16, FR_NEURON_FLOAT8_E4M3,
                                             FR_NEURON_INT32,   FR_NEURON_UINT32,   FR_NEURON_UINT16,
                                             FR_NEURON_UINT8,   FR_NEURON_FLOAT16};
    for (int i = 0; i < TENSORS; i++) {
        fr_neuron_layout layout = {.memory = (fr_neuron_memory)(i % 3), .dims = 2 + i % 2};
        layout.dtype = dtypes[below(i % 4 ? 8 : 2)];
        layout.shape[0] = i % 3 == 0 ? 40 : (int64_t[]){32, 64, 128, 1}[below(4)];
        layout.shape[1] = (int64_t[]){8, 8, 32, 64}[below(4)];
        layout.shape[2] = 1 + i % 2;
        layout.placed = i % 3 != 0 && i % 5 == 0;
        layout.byte_offset = layout.placed ? 64 * below(4) : 0;
        if (i == TENSORS - 1)
            layout = (fr_neuron_layout){
                .memory = FR_NEURON_REGISTER, .dtype = FR_NEURON_INT32, .dims = 1, .shape = {1}};
        CHECK_DONE(fr_neuron_tensor_create(&tensors[i], f.core, layout, &f.error));
        if (i % 4 && layout.memory != FR_NEURON_REGISTER)
            neuron_fill(&f, tensors[i], 1 / 32.0f);
    }
}

static int64_t hostile(void)
{
    static const int64_t numbers[] = {-1,        0,        3, 1000, INT64_C(1) << 20, INT64_C(1) << 36,
                                      INT64_MAX, INT64_MIN};
    return numbers[below(8)];
}

static int64_t call_rows, call_columns; /* what most views of a call have */

/* A part of a tensor of the call's size, sometimes bent out of shape. */
static fr_neuron_view random_view(void)
{
    fr_neuron_view view = fr_neuron_view_of(tensors[below(TENSORS)]);
    int last = view.dims - 1;
    if (view.partitions > call_rows)
        view.partitions = (int16_t)call_rows;
    if (view.partitions == 0 && view.size[0] > call_rows)
        view.size[0] = call_rows;
    for (int64_t *size = &view.size[last]; below(8); size = view.size) {
        *size = *size > call_columns ? call_columns : *size;
        if (size == view.size || view.partitions == 0)
            break;
    }
    if (below(4))
        return view;
    if (view.dims > 1 && below(4) == 0)
        view.stride[0] = 0;
    if (below(6) == 0) {
        view.index = tensors[below(TENSORS)];
        view.whole_rows = below(2);
        view.index_partitions = (int16_t)below(40);
        view.index_stride = below(3) ? view.stride[0] : hostile();
        view.index_limit = below(3) ? 40 : hostile();
    }
    if (below(12) == 0)
        view.offset = hostile();
    if (below(12) == 0)
        view.size[below(view.dims)] = hostile();
    if (below(12) == 0)
        view.stride[below(view.dims)] = hostile();
    if (below(12) == 0)
        view.partition = (int16_t)hostile();
    if (below(16) == 0)
        view.dtype = (fr_neuron_dtype)below(FR_NEURON_DTYPES);
    return view;
}

static double random_number(const fr_neuron_parameter *parameter)
{
    static const double numbers[] = {0, 1, 2, -1, 0.5, 8, 64, 1e9, -1e300, 1e300};
    if (below(20) == 0)
        return NAN;
    if (below(6) == 0)
        return numbers[below(10)];
    switch (parameter->kind) {
    case FR_NEURON_OPERATOR: return (double)below(FR_NEURON_OPERATORS);
    case FR_NEURON_FUNCTION: return (double)below(FR_NEURON_FUNCTIONS);
    case FR_NEURON_ENGINE: return (double)below(FR_NEURON_ENGINES);
    case FR_NEURON_REDUCE_COMMAND: return (double)below(5);
    default: return parameter->number;
    }
}

static void random_argument(fr_neuron_argument *argument, const fr_neuron_parameter *parameter,
                            fr_neuron_view *views, double *numbers)
{
    bool tile =
        parameter->kind <= FR_NEURON_UPDATE || (parameter->kind == FR_NEURON_READ_OR_NUMBER && below(2));
    *argument = (fr_neuron_argument){.given = parameter->required ? below(50) != 0 : below(3) == 0};
    argument->number = argument->given ? random_number(parameter) : parameter->number;
    argument->is_view = argument->given && tile && below(60) != 0;
    if (argument->is_view)
        argument->view = random_view();
    argument->views = views;
    argument->numbers = numbers;
    argument->count = (int)below(parameter->kind == FR_NEURON_PATTERN ? 9 : 5);
    for (int i = 0; i < FR_NEURON_LIST; i++) {
        views[i] = random_view();
        numbers[i] = below(8) ? (double)below(4) : (double)hostile();
    }
    if (parameter->kind == FR_NEURON_INTEGER_LIST && below(3) == 0)
        argument->count = FR_NEURON_LIST;
}

static uint64_t fingerprint(void)
{
    uint64_t sum = (uint64_t)fr_neuron_record_count(f.core);
    for (int i = 0; i < TENSORS; i++)
        for (int64_t r = 0; r < tensors[i]->rows; r++)
            sum = fr_hash64(tensors[i]->data + r * tensors[i]->pitch, (size_t)tensors[i]->row_bytes, sum);
    return sum;
}

static bool known_rule(const char *what)
{
    int count;
    const fr_neuron_rule *rules = fr_neuron_rules(&count);
    for (int i = 0; i < count; i++)
        if (strncmp(rules[i].name, what, strlen(rules[i].name)) == 0 && what[strlen(rules[i].name)] == ':')
            return true;
    return false;
}

static void random_calls(const char *machine, int calls, int *done)
{
    static fr_neuron_view views[FR_NEURON_PARAMETERS][FR_NEURON_LIST];
    static double numbers[FR_NEURON_PARAMETERS][FR_NEURON_LIST];
    int count;
    const fr_neuron_instruction *const *all = fr_neuron_instructions(&count);
    neuron_begin(&f, machine);
    make_tensors();
    for (int i = 0; i < calls; i++) {
        fr_neuron_call call = fr_neuron_call_of(all[below(count)]->name);
        call_rows = (int64_t[]){1, 16, 32, 64}[below(4)];
        call_columns = (int64_t[]){1, 8, 8, 32}[below(4)];
        for (int a = 0; a < FR_NEURON_PARAMETERS && call.instruction->parameters[a].name; a++)
            random_argument(&call.argument[a], &call.instruction->parameters[a], views[a], numbers[a]);
        uint64_t before = fingerprint();
        fr_status status = neuron_issue(&f, &call);
        *done += status == FR_OK;
        if (status == FR_OK)
            continue;
        if (fingerprint() != before || (status != FR_ANSWER_NO && status != FR_BAD_USAGE) ||
            (status == FR_ANSWER_NO && !known_rule(f.error.what)))
            test_fail_format(__FILE__, __LINE__, "%s on %s, call %d: status %d, %s", call.instruction->name,
                             machine, i, status, f.error.what);
    }
    neuron_end(&f);
}

TEST(random_calls_are_done_or_change_nothing)
{
    static const char *const machines[] = {"trn1", "trn2", "trn3"};
    int done = 0;
    for (int round = 0; round < 30; round++) {
        rng = (fr_rng){.seed = (uint64_t)round, .stream = 4};
        random_calls(machines[round % 3], 400, &done);
    }
    CHECK(done > 100);
    printf("# %d of 12000 were done\n", done);
}

TEST_MAIN(neuron_random)
