/* Tiles for the tests of NeuronCore instructions: a core of a generation, random tiles in every layout a view can have,
 * and reading one back element by element with index arithmetic of its own (not the library's gather).
 *
 * A reference loop works on `values`, the tile's numbers as fp32; what it expects is rounded to the destination's dtype
 * with `rounded`. expect_refused checks the rule, and that nothing was recorded. */
#ifndef NEURON_TILES_H
#define NEURON_TILES_H
#include "frontier/base.h"
#include "frontier/neuron.h"
#include "test.h"

/* Numbers of a tile, in the desk's list until the tile or the desk is done. */
typedef struct tile_numbers {
    struct tile_numbers *next, **link;
    float values[];
} tile_numbers;

typedef struct desk {
    fr_neuron_machine machine;
    fr_neuron *core;
    fr_error error;
    uint64_t stream; /* of random numbers */
    tile_numbers *numbers;
} desk;

static inline desk desk_open(int generation)
{
    desk d = {.machine = {.name = "test",
                          .generation = generation,
                          .sbuf_partition_bytes = 229376,
                          .sbuf_usable_bytes = 212984,
                          .psum_bank_bytes = 2048,
                          .psum_banks = 8,
                          .hbm_bytes = 1 << 30,
                          .stack_cores = 2,
                          .dma_engines = 16,
                          .dma_queues = 16,
                          .has_hardware_descriptors = generation >= 3,
                          .has_mx = generation >= 4}};
    for (int e = 1; e < FR_NEURON_ENGINES; e++) {
        d.machine.clock_ghz[e] = 1;
        d.machine.issue_floor_cycles[e] = 64;
    }
    return d;
}

/* The core keeps a pointer to the machine: the desk must not move after this. */
static inline void desk_start(desk *d)
{
    if (fr_neuron_create(&d->core, &d->machine, 1, &d->error) != FR_OK)
        test_fail(__FILE__, __LINE__, d->error.what);
}
#define DESK(NAME, GENERATION)                                                                               \
    desk NAME = desk_open(GENERATION);                                                                       \
    desk_start(&NAME)
static inline float *desk_numbers(desk *d, int64_t count)
{
    tile_numbers *n = calloc(1, sizeof *n + (size_t)count * sizeof(float));
    n->next = d->numbers;
    n->link = &d->numbers;
    if (n->next)
        n->next->link = &n->next;
    d->numbers = n;
    return n->values;
}

static inline void desk_forget(float *values)
{
    tile_numbers *n = (tile_numbers *)(void *)((char *)values - offsetof(tile_numbers, values));
    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    free(n);
}

static inline void desk_close(desk *d)
{
    while (d->numbers)
        desk_forget(d->numbers->values);
    fr_neuron_free(d->core);
}

typedef enum layout_kind { CONTIGUOUS, STRIDED, TWO_DIMS, BROADCAST, LAYOUT_KINDS } layout_kind;

typedef struct tile {
    fr_neuron_tensor *tensor;
    fr_neuron_view view;
    int rows;
    int64_t n;
    float *values; /* rows x n */
} tile;

static inline double desk_random(desk *d, double low, double high)
{
    return low + (high - low) * fr_rng_uniform_at(11, 0, d->stream++);
}

/* Offset in its row, in elements, of element i of the view. */
static inline int64_t tile_offset(const fr_neuron_view *view, int64_t i)
{
    int64_t at = view->offset;
    for (int k = view->dims - 1; k >= 0; k--) {
        at += i % view->size[k] * view->stride[k];
        i /= view->size[k];
    }
    return at;
}

static inline fr_neuron_view tile_view(fr_neuron_tensor *tensor, layout_kind kind, int64_t n)
{
    fr_neuron_view view = fr_neuron_view_of(tensor);
    view.dims = 1;
    view.size[0] = n;
    view.stride[0] = kind == STRIDED ? 2 : kind == BROADCAST ? 0 : 1;
    view.offset = kind == STRIDED ? 1 : kind == TWO_DIMS ? 2 : 0;
    if (kind == TWO_DIMS) { /* n / 4 runs of four, with gaps of three */
        view.dims = 2;
        view.size[0] = n / 4;
        view.stride[0] = 7;
        view.size[1] = 4;
        view.stride[1] = 1;
    }
    return view;
}

/* A tile whose numbers are not written yet. TWO_DIMS needs n to be a multiple of 4. */
static inline tile tile_new(desk *d, fr_neuron_dtype dtype, fr_neuron_memory memory, int rows, int64_t n,
                            layout_kind kind)
{
    tile t = {.rows = rows, .n = n};
    int64_t storage = kind == STRIDED ? 2 * n + 1 : kind == TWO_DIMS ? 2 * n + 2 : n;
    fr_neuron_layout layout = {
        .memory = memory, .dtype = dtype, .dims = 2, .shape = {rows, storage}, .name = "tile"};
    if (fr_neuron_tensor_create(&t.tensor, d->core, layout, &d->error) != FR_OK) {
        test_fail(__FILE__, __LINE__, d->error.what);
        exit(1);
    }
    t.view = tile_view(t.tensor, kind, n);
    t.values = desk_numbers(d, rows * n);
    return t;
}

static inline int64_t tile_storage(const tile *t)
{
    return fr_neuron_tensor_layout(t->tensor)->shape[1];
}

/* Reads what the tensor holds into `values`. */
static inline void tile_read(desk *d, tile *t)
{
    int64_t storage = tile_storage(t), bytes = fr_neuron_dtype_bytes(t->view.dtype);
    char *raw = malloc((size_t)(t->rows * storage * bytes));
    if (fr_neuron_tensor_read(t->tensor, raw, (size_t)(t->rows * storage * bytes), &d->error) != FR_OK)
        test_fail(__FILE__, __LINE__, d->error.what);
    for (int r = 0; r < t->rows; r++)
        for (int64_t i = 0; i < t->n; i++)
            fr_neuron_to_float(&t->values[r * t->n + i],
                               raw + (r * storage + tile_offset(&t->view, i)) * bytes, t->view.dtype, 1);
    free(raw);
}

static inline void tile_fill_from(desk *d, tile *t, double low, double high)
{
    int64_t storage = tile_storage(t), bytes = fr_neuron_dtype_bytes(t->view.dtype);
    char *raw = malloc((size_t)(t->rows * storage * bytes));
    for (int64_t i = 0; i < t->rows * storage; i++) {
        float x = (float)desk_random(d, low, high);
        fr_neuron_from_float(raw + i * bytes, &x, t->view.dtype, 1);
    }
    if (fr_neuron_tensor_write(t->tensor, raw, (size_t)(t->rows * storage * bytes), &d->error) != FR_OK)
        test_fail(__FILE__, __LINE__, d->error.what);
    free(raw);
    tile_read(d, t);
}

static inline tile tile_random(desk *d, fr_neuron_dtype dtype, fr_neuron_memory memory, int rows, int64_t n,
                               layout_kind kind, double low, double high)
{
    tile t = tile_new(d, dtype, memory, rows, n, kind);
    tile_fill_from(d, &t, low, high);
    return t;
}

/* A contiguous SBUF tile with these raw elements. */
static inline tile tile_of(desk *d, fr_neuron_dtype dtype, int rows, int64_t n, const void *raw)
{
    tile t = tile_new(d, dtype, FR_NEURON_SBUF, rows, n, CONTIGUOUS);
    if (fr_neuron_tensor_write(t.tensor, raw, (size_t)(rows * n * fr_neuron_dtype_bytes(dtype)), &d->error) !=
        FR_OK)
        test_fail(__FILE__, __LINE__, d->error.what);
    tile_read(d, &t);
    return t;
}

static inline void tile_raw(desk *d, const tile *t, void *out) /* a contiguous one, as stored */
{
    size_t bytes = (size_t)(t->rows * t->n * fr_neuron_dtype_bytes(t->view.dtype));
    if (fr_neuron_tensor_read(t->tensor, out, bytes, &d->error) != FR_OK)
        test_fail(__FILE__, __LINE__, d->error.what);
}

static inline void tile_free(desk *d, tile *t)
{
    fr_neuron_tensor_release(d->core, t->tensor);
    desk_forget(t->values);
}

static inline float rounded(float x, fr_neuron_dtype dtype)
{
    uint32_t raw;
    fr_neuron_from_float(&raw, &x, dtype, 1);
    fr_neuron_to_float(&x, &raw, dtype, 1);
    return x;
}

static inline void set_view(fr_neuron_call *call, const char *name, fr_neuron_view view)
{
    if (!fr_neuron_call_view(call, name, view))
        test_fail_format(__FILE__, __LINE__, "%s has no parameter %s", call->instruction->name, name);
}
static inline void set_tile(fr_neuron_call *call, const char *name, const tile *t)
{
    set_view(call, name, t->view);
}
static inline void set_number(fr_neuron_call *call, const char *name, double number)
{
    if (!fr_neuron_call_number(call, name, number))
        test_fail_format(__FILE__, __LINE__, "%s has no parameter %s", call->instruction->name, name);
}
static inline void set_list(fr_neuron_call *call, const char *name, const double *numbers, int count)
{
    set_number(call, name, 0);
    for (int i = 0; i < FR_NEURON_PARAMETERS; i++)
        if (call->instruction->parameters[i].name &&
            strcmp(call->instruction->parameters[i].name, name) == 0) {
            call->argument[i].numbers = numbers;
            call->argument[i].count = count;
        }
}

#define EXPECT_OK(DESK, CALL)                                                                                \
    do {                                                                                                     \
        (DESK)->error = (fr_error){0};                                                                       \
        if (fr_neuron_issue((DESK)->core, (CALL), &(DESK)->error) != FR_OK)                                  \
            test_fail_format(__FILE__, __LINE__, "%s: %s", (DESK)->error.where, (DESK)->error.what);         \
    } while (0)
#define EXPECT_REFUSED(DESK, CALL, RULE) expect_refused((DESK), (CALL), (RULE), __LINE__)

static inline void expect_refused(desk *d, const fr_neuron_call *call, const char *rule, int line)
{
    int64_t before = fr_neuron_record_count(d->core);
    d->error = (fr_error){0};
    fr_status status = fr_neuron_issue(d->core, call, &d->error);
    size_t length = strlen(rule);
    bool named = strncmp(d->error.what, rule, length) == 0 && d->error.what[length] == ':';
    if (status != FR_ANSWER_NO || !named)
        test_fail_format(__FILE__, line, "%s: status %d, \"%s\" instead of %s", call->instruction->name,
                         (int)status, d->error.what, rule);
    if (fr_neuron_record_count(d->core) != before)
        test_fail_format(__FILE__, line, "%s was refused and recorded", call->instruction->name);
}

/* Cycles of the last call. */
static inline double last_cycles(const desk *d)
{
    int64_t i = fr_neuron_record_count(d->core) - 1;
    while (i > 0 && fr_neuron_record_at(d->core, i - 1)->flags & FR_NEURON_MORE)
        i--;
    return (double)fr_neuron_record_at(d->core, i)->cycles;
}
static inline const fr_neuron_record *last_record(const desk *d)
{
    return fr_neuron_record_at(d->core, fr_neuron_record_count(d->core) - 1);
}

/* got equals want to a relative error, NaN equals NaN; says where not. */
static inline void check_values(const tile *t, const float *want, double relative, double absolute,
                                const char *what)
{
    for (int64_t i = 0; i < t->rows * t->n; i++) {
        float got = t->values[i];
        bool same = got == want[i] || (isnan(got) && isnan(want[i])) ||
                    fabs((double)got - (double)want[i]) <= absolute + relative * fabs((double)want[i]);
        if (!same) {
            test_fail_format(__FILE__, __LINE__, "%s: partition %d element %d: got %.9g, want %.9g", what,
                             (int)(i / t->n), (int)(i % t->n), (double)got, (double)want[i]);
            return;
        }
    }
}

#endif
