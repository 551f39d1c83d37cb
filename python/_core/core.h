/* python/_core/core.h: what the files of the extension `frontier_nki._core` share.
 *
 * The extension adds no meaning of its own: it turns Python objects into fr_neuron_view and fr_neuron_call
 * and back. There is one Python type per thing of include/frontier/neuron.h - Core, Tile, Register - and one
 * callable per instruction, all made from the descriptor table; no instruction is named in this folder.
 * Everything is written to CPython's stable ABI (3.11), so one binary serves all later versions.
 *
 * Ownership. A Tile points to a Storage, a Storage to its Core; the last reference to a Storage releases the
 * tensor, which is how the simulated memory learns that a kernel can no longer reach it.
 */
#ifndef FRONTIER_PYTHON_CORE_H
#define FRONTIER_PYTHON_CORE_H
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "frontier/neuron.h"

typedef struct core_object {
    PyObject_HEAD fr_neuron *core;
    fr_neuron_machine machine;
    int cores;
} core_object;

typedef struct storage_object {
    PyObject_HEAD core_object *owner;
    fr_neuron_tensor *tensor;
    PyObject *name; /* str */
    bool written;   /* by an instruction: an input array that was must be read back */
} storage_object;

enum { TILE_RANK = FR_NEURON_RANK + 1 };

/* A view in the shape the kernel sees. On chip dimension 0 is the partitions and stride[0] is not used. */
typedef struct tile_object {
    PyObject_HEAD storage_object *storage;
    fr_neuron_dtype dtype;
    fr_neuron_memory memory;
    int dims;
    int partition; /* first partition, relative to the tensor */
    int64_t offset, shape[TILE_RANK], stride[TILE_RANK];
    PyObject *index; /* Tile or Register of a dynamic offset, or NULL */
    bool whole_rows;
    int64_t index_stride, index_limit;
} tile_object;

typedef struct register_object {
    PyObject_HEAD storage_object *storage;
} register_object;

/* nl.add, nl.exp, ...: what an `op=` argument may be, and callable as the function of that name. */
typedef struct operator_object {
    PyObject_HEAD PyObject *name, *function;
    fr_neuron_operator op;
    fr_neuron_function activation;
} operator_object;

typedef struct instruction_object {
    PyObject_HEAD const fr_neuron_instruction *descriptor;
    fr_neuron_call blank; /* defaults filled in */
    PyObject *names[FR_NEURON_PARAMETERS];
    int parameters;
    PyMethodDef method;
} instruction_object;

/* One module per process; the types and what a call needs are kept here. */
typedef struct core_state {
    PyTypeObject *core, *storage, *tile, *reg, *op, *instruction, *handle;
    PyObject *rule_error, *usage_error, *handle_instance;
    core_object *current; /* the core of the kernel that runs */
    PyObject *package;    /* str: path prefix of the package, whose frames are not kernel lines */
    PyObject *override;   /* (file, line) while a deferred instruction is issued, or NULL */
    PyObject *dtypes[FR_NEURON_DTYPES]; /* what tile.dtype returns: objects of the Python layer */
    PyObject *buffers;                  /* {memory name: object} for tile.buffer */
    PyObject *tile_method, *code_method, *name_method; /* interned "__nki_tile__", "nki_code", "name" */
    PyObject *start_name, *stop_name, *step_name;
} core_state;
extern core_state state;

/* errors.c */
PyObject *core_raise(fr_status status, const fr_error *error);
bool core_usage(const char *where, const char *format, ...) __attribute__((format(printf, 2, 3))); /* false */

/* source.c: the kernel's line for the next instructions */
void core_locate(fr_neuron *core);
PyObject *core_here(PyObject *module, PyObject *unused);

/* tile.c */
tile_object *tile_new(storage_object *storage, PyTypeObject *type);
tile_object *tile_of_tensor(core_object *core, fr_neuron_layout layout, PyObject *name, PyTypeObject *type);
tile_object *tile_copy(const tile_object *tile);
bool tile_view(const tile_object *tile, fr_neuron_view *view); /* false: Python error set */
/* A new reference to the Tile that `object` is or stands for, or NULL with a Python error. */
tile_object *tile_from(PyObject *object, const char *what);
bool tile_is(PyObject *object);
fr_neuron_dtype
dtype_from(PyObject *object); /* a name, a numpy type, a dtype object; NO_DTYPE when unknown */
int64_t
tile_free_elements(const tile_object *tile); /* of the whole tensor, in one partition, in tile->dtype */
static inline bool tile_on_chip(const tile_object *tile)
{
    return tile->memory != FR_NEURON_HBM;
}

/* index.c, pattern.c */
PyObject *tile_subscript(PyObject *self, PyObject *key);
bool tile_set_index(tile_object *tile, PyObject *index, int64_t stride, int64_t limit);
extern PyMethodDef tile_view_methods[];

/* registers.c */
bool register_read(const register_object *reg, int64_t *value);
register_object *register_new(core_object *core, int64_t value);
PyObject *core_register(PyObject *self, PyObject *args);

/* arguments.c */
typedef struct call_scratch {
    double lists[4][2 * FR_NEURON_LIST];
    int lists_used;
    fr_neuron_view views[16];
    tile_object *held[FR_NEURON_PARAMETERS + 16];
    int held_count;
    core_object *core;
} call_scratch;
bool argument_parse(const fr_neuron_parameter *parameter, PyObject *value, fr_neuron_argument *out,
                    call_scratch *scratch, const char *instruction);

/* call.c */
PyObject *instruction_functions(PyObject *module, PyObject *unused);

/* timing.c */
PyObject *core_time(PyObject *self, PyObject *unused);
PyObject *core_segment(PyObject *self, PyObject *first);
PyObject *core_lines(PyObject *self, PyObject *unused);

/* timeline.c */
PyObject *core_timeline(PyObject *self, PyObject *columns);

/* tables.c: instructions, rules, machines and dtypes as Python data */
PyObject *table_instructions(PyObject *module, PyObject *unused);
PyObject *table_rules(PyObject *module, PyObject *unused);
PyObject *table_language_rules(PyObject *module, PyObject *unused);
PyObject *table_collective_rules(PyObject *module, PyObject *unused);
PyObject *table_dtypes(PyObject *module, PyObject *unused);
PyObject *table_operators(PyObject *module, PyObject *unused);

/* reference.c, updates.c: the trainer's operators and optimizer steps */
PyObject *reference_run(PyObject *module, PyObject *args);
PyObject *reference_operators(PyObject *module, PyObject *unused);
PyObject *update_adamw(PyObject *module, PyObject *args);
PyObject *update_muon(PyObject *module, PyObject *args);
PyObject *update_sum_squares(PyObject *module, PyObject *array);
PyObject *update_cross_entropy(PyObject *module, PyObject *args);

/* types: one maker per file */
PyTypeObject *make_core_type(PyObject *module);
PyTypeObject *make_storage_type(PyObject *module);
PyTypeObject *make_tile_type(PyObject *module);
PyTypeObject *make_register_type(PyObject *module);
PyTypeObject *make_operator_type(PyObject *module);
PyTypeObject *make_instruction_type(PyObject *module);
PyTypeObject *make_handle_type(PyObject *module);

#endif
