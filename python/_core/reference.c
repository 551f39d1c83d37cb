/* python/_core/reference.c: the trainer's operators, called from Python one at a time.
 *
 * An operator of include/frontier/graph.h defines itself: infer checks shapes and says what comes out, the
 * reference kernels compute it in double and in one fixed order. So this file knows of each operator only
 * which of its inputs have a row per token and what its options are called. It makes one node by hand, as a
 * plan would, runs one pass and returns the results as bytearrays; frontier_nki/reference.py turns arrays into
 * rows and columns and back.
 *
 * A backward pass that reads saved outputs runs the forward pass first. The loss makes its gradients in the
 * forward pass, so there "backward" means that pass with gradients wanted.
 */
#include "core.h"

#include <stddef.h>
#include <string.h>

#include "frontier/graph.h"

/* Of each input: t has a row per token, i is token ids, p has rows of its own. */
static const struct {
    const char *op, *inputs;
} inputs_of[] = {
    {"embed", "pi"},       {"embed_positions", "tp"},
    {"rms_norm", "tp"},    {"layer_norm", "tpp"},
    {"linear", "tp"},      {"add_bias", "tp"},
    {"rotary", "t"},       {"attention", "ttt"},
    {"relu_squared", "t"}, {"leaky_relu_squared", "t"},
    {"two_tap", "tp"},     {"gelu", "t"},
    {"swiglu", "tt"},      {"add", "tt"},
    {"blend", "ptpt"},     {"add_scaled", "tpt"},
    {"smear", "tpp"},      {"value_gate", "tttp"},
    {"head_logits", "tp"}, {"head_loss", "tpip"},
};

typedef enum option_type { REAL, INT, INT64, FLAG } option_type;
#define OPTION(op, type, of, field)                                                                          \
    {                                                                                                        \
        op, #field, type, offsetof(of, field)                                                                \
    }
static const struct {
    const char *op, *name;
    option_type type;
    size_t offset;
} options_of[] = {
    OPTION("rms_norm", REAL, fr_norm_options, eps),
    OPTION("layer_norm", REAL, fr_norm_options, eps),
    OPTION("rotary", INT, fr_rotary_options, heads),
    OPTION("rotary", REAL, fr_rotary_options, base),
    OPTION("rotary", FLAG, fr_rotary_options, interleaved),
    OPTION("rotary", FLAG, fr_rotary_options, norm),
    OPTION("rotary", REAL, fr_rotary_options, eps),
    OPTION("rotary", REAL, fr_rotary_options, gain),
    OPTION("attention", INT, fr_attention_options, heads),
    OPTION("attention", INT, fr_attention_options, kv_heads),
    OPTION("attention", INT64, fr_attention_options, window),
    OPTION("attention", REAL, fr_attention_options, scale),
    OPTION("head_logits", INT64, fr_head_options, vocab),
    OPTION("head_logits", REAL, fr_head_options, softcap),
    OPTION("head_loss", INT64, fr_head_options, vocab),
    OPTION("head_loss", REAL, fr_head_options, softcap),
    OPTION("head_loss", REAL, fr_head_options, weight),
    OPTION("add_scaled", REAL, fr_add_scaled_options, sign),
    OPTION("leaky_relu_squared", REAL, fr_leaky_options, slope),
    OPTION("value_gate", REAL, fr_value_gate_options, range),
};

typedef union any_options {
    fr_norm_options norm;
    fr_rotary_options rotary;
    fr_attention_options attention;
    fr_head_options head;
    fr_add_scaled_options add_scaled;
    fr_value_gate_options value_gate;
    fr_leaky_options leaky;
} any_options;

enum { COUNT_INPUTS = sizeof inputs_of / sizeof inputs_of[0] };
enum { COUNT_OPTIONS = sizeof options_of / sizeof options_of[0] };

/* One operator with its data. Everything is zero or owned: release() frees what is there. */
typedef struct run {
    const fr_op *op;
    const char *roles;
    any_options options;
    fr_node node;
    fr_tensor in[FR_MAX_INPUTS], out[FR_MAX_OUTPUTS];
    Py_buffer buffers[2 * FR_MAX_INPUTS + FR_MAX_OUTPUTS];
    int held;
    void *constants, *scratch;
    PyObject *outputs[FR_MAX_OUTPUTS], *gradients[FR_MAX_INPUTS]; /* bytearrays */
    fr_call call;
} run;

static void release(run *r)
{
    while (r->held > 0)
        PyBuffer_Release(&r->buffers[--r->held]);
    fr_deallocate(r->constants);
    fr_deallocate(r->scratch);
    for (int i = 0; i < FR_MAX_OUTPUTS; i++)
        Py_XDECREF(r->outputs[i]);
    for (int i = 0; i < FR_MAX_INPUTS; i++)
        Py_XDECREF(r->gradients[i]);
}

static bool fail(fr_status status, const fr_error *error)
{
    core_raise(status, error);
    return false;
}

/* ---- what was asked for ---- */

static bool find_operator(run *r, const char *name)
{
    int count;
    const fr_op *const *ops = fr_ops(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(ops[i]->name, name) == 0)
            r->op = ops[i];
    for (int i = 0; i < COUNT_INPUTS; i++)
        if (strcmp(inputs_of[i].op, name) == 0)
            r->roles = inputs_of[i].inputs;
    return (r->op && r->roles) || core_usage("reference", "the trainer has no operator '%s'", name);
}

static bool set_option(void *options, size_t offset, option_type type, PyObject *value)
{
    void *at = (char *)options + offset;
    if (type == REAL)
        *(double *)at = PyFloat_AsDouble(value);
    else if (type == INT64)
        *(int64_t *)at = PyLong_AsLongLong(value);
    else if (type == FLAG)
        *(bool *)at = PyObject_IsTrue(value) == 1;
    else {
        long long wide = PyLong_AsLongLong(value);
        if (wide < INT32_MIN || wide > INT32_MAX)
            return core_usage("reference", "%lld is out of range", wide);
        *(int *)at = (int)wide;
    }
    return !PyErr_Occurred();
}

/* Every option of the operator, by name; reference.py has the defaults. */
static bool read_options(run *r, PyObject *dict)
{
    for (int i = 0; i < COUNT_OPTIONS; i++) {
        if (strcmp(options_of[i].op, r->op->name) != 0)
            continue;
        PyObject *value = PyDict_GetItemString(dict, options_of[i].name);
        if (!value)
            return core_usage(r->op->name, "needs the option %s", options_of[i].name);
        if (!set_option(&r->options, options_of[i].offset, options_of[i].type, value))
            return false;
    }
    r->node.attributes = &r->options;
    return true;
}

/* ---- inputs ---- */

static bool dtype_of_code(const char *code, fr_dtype *dtype)
{
    if (strlen(code) != 1 || !strchr("fdi", code[0]))
        return core_usage("reference", "numbers are f, d or i, not '%s'", code);
    *dtype = code[0] == 'f' ? FR_F32 : code[0] == 'd' ? FR_F64 : FR_I32;
    return true;
}

/* A buffer that holds exactly so many numbers; NULL with a Python error. */
static const void *hold(run *r, PyObject *object, const char *name, int64_t elements, fr_dtype dtype)
{
    Py_buffer *buffer = &r->buffers[r->held];
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    r->held++;
    if ((size_t)buffer->len != (size_t)elements * fr_dtype_bytes(dtype)) {
        core_usage(name, "%lld bytes for %lld numbers", (long long)buffer->len, (long long)elements);
        return NULL;
    }
    return buffer->buf;
}

static bool shape_input(run *r, int i, int64_t rows, int64_t columns)
{
    fr_tensor *tensor = &r->in[i];
    bool tokens = r->roles[i] != 'p';
    if (rows < 1 || columns < 1 || rows > (int64_t)1 << 40 || columns > ((int64_t)1 << 40) / rows)
        return core_usage(tensor->name, "has the shape %lld x %lld", (long long)rows, (long long)columns);
    if (tokens && r->call.tokens && r->call.tokens != rows)
        return core_usage(tensor->name, "has %lld rows where others have %lld", (long long)rows,
                          (long long)r->call.tokens);
    if (tokens)
        r->call.tokens = rows;
    tensor->kind = r->roles[i] == 'i' ? FR_KIND_IDS : tokens ? FR_KIND_ACTIVATION : FR_KIND_PARAMETER;
    tensor->rows = tokens ? FR_TOKENS : rows;
    tensor->columns = columns;
    tensor->id = i;
    tensor->parameter = -1;
    return true;
}

/* (name, array, rows, columns, code) */
static bool read_input(run *r, int i, PyObject *item)
{
    PyObject *array;
    Py_ssize_t rows, columns;
    const char *name, *code;
    if (!PyTuple_Check(item))
        return core_usage(r->op->name, "input %d is no tuple", i);
    if (!PyArg_ParseTuple(item, "sOnns", &name, &array, &rows, &columns, &code))
        return false;
    r->in[i].name = name;
    if (!dtype_of_code(code, &r->call.in_dtype[i]) || !shape_input(r, i, rows, columns))
        return false;
    if ((r->call.in_dtype[i] == FR_I32) != (r->roles[i] == 'i'))
        return core_usage(name, r->roles[i] == 'i' ? "takes int32 ids" : "takes floating-point numbers");
    r->node.in[i] = &r->in[i];
    r->call.in[i] = hold(r, array, name, (int64_t)rows * columns, r->call.in_dtype[i]);
    return r->call.in[i] != NULL;
}

static bool read_inputs(run *r, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    if (count < r->op->min_inputs || count > r->op->max_inputs || count > (Py_ssize_t)strlen(r->roles))
        return core_usage(r->op->name, "takes %d to %d arrays", r->op->min_inputs, r->op->max_inputs);
    r->node.op = r->op;
    r->node.inputs = (int)count;
    r->node.outputs = r->op->outputs;
    for (int i = 0; i < (int)count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (item == Py_None ? i < r->op->min_inputs : !read_input(r, i, item))
            return PyErr_Occurred() ? false : core_usage(r->op->name, "input %d is missing", i);
    }
    return true;
}

static bool check_ids(const run *r)
{
    for (int i = 0; i < r->node.inputs; i++) {
        int64_t least = INT32_MIN, most = INT32_MAX;
        if (r->roles[i] != 'i' || !r->op->ids_range)
            continue;
        r->op->ids_range(&r->node, i, &least, &most);
        for (int64_t t = 0; t < r->call.tokens; t++) {
            int32_t id = ((const int32_t *)r->call.in[i])[t];
            if (id < least || id > most)
                return core_usage(r->in[i].name, "%d at %lld is not from %lld to %lld", id, (long long)t,
                                  (long long)least, (long long)most);
        }
    }
    return true;
}

/* ---- results ---- */

static int64_t elements_of(const run *r, const fr_tensor *tensor)
{
    return (tensor->rows == FR_TOKENS ? r->call.tokens : tensor->rows) * tensor->columns;
}

/* A zeroed bytearray for a tensor; its memory in *data. */
static PyObject *bytes_for(const run *r, const fr_tensor *tensor, fr_dtype dtype, void **data)
{
    size_t bytes = (size_t)elements_of(r, tensor) * fr_dtype_bytes(dtype);
    PyObject *array = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    *data = array ? PyByteArray_AsString(array) : NULL;
    if (array)
        memset(*data, 0, bytes);
    return array;
}

static bool infer(run *r, int64_t length)
{
    fr_error error = {0};
    bool wide = false;
    for (int i = 0; i < r->node.inputs; i++)
        wide = wide || r->call.in_dtype[i] == FR_F64;
    for (int i = 0; i < r->op->outputs; i++) {
        r->out[i] = (fr_tensor){.name = r->op->name, .id = FR_MAX_INPUTS + i, .parameter = -1};
        r->out[i].producer = &r->node;
        r->node.out[i] = &r->out[i];
        r->call.out_dtype[i] = wide ? FR_F64 : FR_F32;
    }
    length = length > 0 ? length : r->call.tokens;
    if (length < 1 || r->call.tokens % length)
        return core_usage(r->op->name, "%lld rows are no whole number of sequences of %lld",
                          (long long)r->call.tokens, (long long)length);
    r->call.node = &r->node;
    r->call.extent = (fr_extent){r->call.tokens / length, length};
    fr_status status = r->op->infer(&r->node, &error);
    if (status == FR_OK && r->op->check_extent)
        status = r->op->check_extent(&r->node, r->call.extent, &error);
    return status == FR_OK ? true : fail(status, &error);
}

static bool make_outputs(run *r)
{
    for (int i = 0; i < r->op->outputs; i++) {
        r->outputs[i] = bytes_for(r, &r->out[i], r->call.out_dtype[i], &r->call.out[i]);
        if (!r->outputs[i])
            return false;
    }
    return true;
}

static bool make_constants(run *r)
{
    fr_constants want = {0};
    if (!r->op->constants)
        return true;
    r->op->constants(&r->node, r->call.extent, &want);
    r->constants = fr_allocate(want.bytes + 1);
    if (!r->constants) {
        PyErr_NoMemory();
        return false;
    }
    r->op->fill_constants(&want, r->constants);
    r->call.constants = r->constants;
    return true;
}

/* Room for a gradient of every input that has one, starting from what `into` holds of it. */
static bool want_gradients(run *r, PyObject *into)
{
    for (int i = 0; i < r->node.inputs; i++) {
        if (!r->node.in[i] || r->op->no_gradient >> i & 1)
            continue;
        r->gradients[i] = bytes_for(r, &r->in[i], r->call.in_dtype[i], &r->call.grad_in[i]);
        if (!r->gradients[i])
            return false;
        r->call.wanted |= 1u << i;
        PyObject *start = i < PyList_Size(into) ? PyList_GetItem(into, i) : Py_None;
        if (start == Py_None)
            continue;
        int64_t elements = elements_of(r, &r->in[i]);
        const void *data = hold(r, start, r->in[i].name, elements, r->call.in_dtype[i]);
        if (!data)
            return false;
        memcpy(r->call.grad_in[i], data, (size_t)elements * fr_dtype_bytes(r->call.in_dtype[i]));
        r->call.accumulate[i] = true;
    }
    return true;
}

static bool read_upstream(run *r, PyObject *upstream)
{
    for (int i = 0; i < r->op->outputs; i++) {
        PyObject *array = i < PyList_Size(upstream) ? PyList_GetItem(upstream, i) : Py_None;
        bool passes = !(r->op->detached_outputs >> i & 1);
        if (array == Py_None && !passes)
            continue;
        if (array == Py_None || !passes)
            return core_usage(r->op->name,
                              passes ? "output %d needs its gradient" : "output %d passes no gradient back",
                              i);
        r->call.grad_out[i] =
            hold(r, array, "the gradient", elements_of(r, &r->out[i]), r->call.out_dtype[i]);
        if (!r->call.grad_out[i])
            return false;
    }
    return true;
}

static bool run_pass(run *r, fr_pass pass)
{
    const fr_kernel *kernel = &r->op->reference[pass];
    fr_deallocate(r->scratch);
    r->scratch = fr_allocate((kernel->scratch ? kernel->scratch(&r->call) : 0) + 1);
    r->call.scratch = r->scratch;
    if (!r->scratch) {
        PyErr_NoMemory();
        return false;
    }
    PyThreadState *others = PyEval_SaveThread();
    kernel->run(&r->call);
    PyEval_RestoreThread(others);
    return true;
}

static bool run_backward(run *r, PyObject *upstream, PyObject *into)
{
    if (r->op->backward_in_forward)
        return want_gradients(r, into) && run_pass(r, FR_FORWARD);
    if (r->op->keeps_outputs && !run_pass(r, FR_FORWARD))
        return false;
    return read_upstream(r, upstream) && want_gradients(r, into) && run_pass(r, FR_BACKWARD);
}

/* [(rows, columns, code, bytes) or None, ...] */
static PyObject *results(const run *r, const fr_tensor *tensors, PyObject *const *data,
                         const fr_dtype *dtypes, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        const fr_tensor *t = &tensors[i];
        int64_t rows = t->rows == FR_TOKENS ? r->call.tokens : t->rows;
        PyObject *item = data[i] ? Py_BuildValue("(LLsO)", (long long)rows, (long long)t->columns,
                                                 dtypes[i] == FR_F64 ? "d" : "f", data[i])
                                 : Py_BuildValue("");
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* reference(operator, length, options, inputs, upstream or None, into) */
PyObject *reference_run(PyObject *module, PyObject *args)
{
    const char *name;
    Py_ssize_t length;
    PyObject *options, *inputs, *upstream, *into, *answer = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "snO!O!OO!:reference", &name, &length, &PyDict_Type, &options, &PyList_Type,
                          &inputs, &upstream, &PyList_Type, &into))
        return NULL;
    bool backward = PyList_Check(upstream);
    run r = {0};
    if (find_operator(&r, name) && read_options(&r, options) && read_inputs(&r, inputs) &&
        infer(&r, length) && check_ids(&r) && make_outputs(&r) && make_constants(&r) &&
        (backward ? run_backward(&r, upstream, into) : run_pass(&r, FR_FORWARD)))
        answer = backward ? results(&r, r.in, r.gradients, r.call.in_dtype, r.node.inputs)
                          : results(&r, r.out, r.outputs, r.call.out_dtype, r.op->outputs);
    release(&r);
    return answer;
}

/* {operator: names of its reference kernels} */
PyObject *reference_operators(PyObject *module, PyObject *unused)
{
    int count;
    (void)module;
    (void)unused;
    const fr_op *const *ops = fr_ops(&count);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < count; i++) {
        const fr_kernel *backward = &ops[i]->reference[FR_BACKWARD];
        PyObject *names = Py_BuildValue("(sz)", ops[i]->reference[FR_FORWARD].name, backward->name);
        if (!names || PyDict_SetItemString(dict, ops[i]->name, names) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(names);
    }
    return dict;
}
