/* python/_core/call.c: the instructions as callables, all from the descriptor table.
 *
 * nisa.NAME is a builtin whose `self` holds the descriptor, a call with its defaults filled in and the
 * interned names of its parameters. A call copies the blank, parses each argument by its kind and issues.
 * Keywords are interned by the compiler, so finding a parameter is a few pointer comparisons. `name=` labels
 * an instruction in AWS's profiler and changes nothing here; `dtype=` of older kernels must agree with dst.
 */
#include "core.h"

#include <string.h>

static int parameter_named(const instruction_object *self, PyObject *name)
{
    for (int i = 0; i < self->parameters; i++)
        if (self->names[i] == name)
            return i;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    for (int i = 0; text && i < self->parameters; i++)
        if (strcmp(self->descriptor->parameters[i].name, text) == 0)
            return i;
    PyErr_Clear();
    return -1;
}

/* What is not a parameter and may still be there. */
static bool tolerated(const char *name, PyObject *value)
{
    return strcmp(name, "name") == 0 || strcmp(name, "dtype") == 0 ||
           (strcmp(name, "mask") == 0 && value == Py_None);
}

static bool unknown_keyword(const instruction_object *self, const char *name)
{
    const char *names[FR_NEURON_PARAMETERS];
    for (int i = 0; i < self->parameters; i++)
        names[i] = self->descriptor->parameters[i].name;
    const char *nearest = fr_nearest(name, names, (size_t)self->parameters);
    return core_usage(self->descriptor->name, "no argument '%s'%s%s%s", name,
                      nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static bool check_dtype(const fr_neuron_call *call, const instruction_object *self, PyObject *dtype)
{
    if (dtype == Py_None || !call->argument[0].is_view)
        return true;
    fr_neuron_dtype given = dtype_from(dtype), have = call->argument[0].view.dtype;
    return !given || given == have ||
           core_usage(self->descriptor->name, "dtype=%s but dst is %s", fr_neuron_dtype_name(given),
                      fr_neuron_dtype_name(have));
}

static bool parse_keywords(const instruction_object *self, PyObject *const *values, PyObject *names,
                           fr_neuron_call *call, call_scratch *scratch)
{
    PyObject *dtype = Py_None;
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int at = parameter_named(self, name);
        if (at < 0) {
            const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
            if (!text || !tolerated(text, values[i]))
                return unknown_keyword(self, text ? text : "?");
            if (strcmp(text, "dtype") == 0)
                dtype = values[i];
            continue;
        }
        if (!argument_parse(&self->descriptor->parameters[at], values[i], &call->argument[at], scratch,
                            self->descriptor->name))
            return false;
    }
    return check_dtype(call, self, dtype);
}

static bool parse_call(const instruction_object *self, PyObject *const *args, Py_ssize_t count,
                       PyObject *names, fr_neuron_call *call, call_scratch *scratch)
{
    if (count > self->parameters)
        return core_usage(self->descriptor->name, "takes %d arguments, %d given", self->parameters,
                          (int)count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!argument_parse(&self->descriptor->parameters[i], args[i], &call->argument[i], scratch,
                            self->descriptor->name))
            return false;
    return parse_keywords(self, args + count, names, call, scratch);
}

static PyObject *instruction_call(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    instruction_object *self = (instruction_object *)object;
    fr_error error = {0};
    fr_status status = FR_OK;
    call_scratch scratch;
    scratch.lists_used = scratch.held_count = 0;
    scratch.core = NULL;
    fr_neuron_call call = self->blank;
    bool ok = parse_call(self, args, count, names, &call, &scratch);
    core_object *core = scratch.core ? scratch.core : state.current;
    if (ok && !core)
        ok =
            core_usage(self->descriptor->name, "instructions run inside a kernel (a function with @nki.jit)");
    if (ok) {
        core_locate(core->core);
        status = fr_neuron_issue(core->core, &call, &error);
    }
    for (int i = 0; i < scratch.held_count; i++)
        Py_DECREF((PyObject *)scratch.held[i]);
    if (!ok)
        return NULL;
    if (status != FR_OK)
        return core_raise(status, &error);
    Py_INCREF(state.handle_instance);
    return state.handle_instance;
}

/* ---- the handle an instruction returns ---- */

static PyObject *handle_depends(PyObject *self, PyObject *args)
{
    (void)args;
    Py_INCREF(self);
    return self;
}

static PyMethodDef handle_methods[] = {
    {"depends_on", handle_depends, METH_VARARGS,
     "depends_on(...): order is kept anyway: the functional pass runs in program order"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot handle_slots[] = {
    {Py_tp_methods, handle_methods}, {Py_tp_doc, "An issued instruction."}, {0, NULL}};
static PyType_Spec handle_spec = {"frontier_nki._core.Issued", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT,
                                  handle_slots};
PyTypeObject *make_handle_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&handle_spec);
}

/* ---- making them ---- */

static PyType_Slot instruction_slots[] = {{Py_tp_doc, "The descriptor behind nisa.NAME."}, {0, NULL}};
static PyType_Spec instruction_spec = {"frontier_nki._core.Instruction", sizeof(instruction_object), 0,
                                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                       instruction_slots};
PyTypeObject *make_instruction_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&instruction_spec);
}

static PyObject *make_function(const fr_neuron_instruction *descriptor)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(state.instruction, Py_tp_alloc);
    instruction_object *self = (instruction_object *)allocate(state.instruction, 0);
    if (!self)
        return NULL;
    self->descriptor = descriptor;
    self->blank = fr_neuron_call_of(descriptor->name);
    while (self->parameters < FR_NEURON_PARAMETERS && descriptor->parameters[self->parameters].name) {
        self->names[self->parameters] =
            PyUnicode_InternFromString(descriptor->parameters[self->parameters].name);
        self->parameters++;
    }
    self->method = (PyMethodDef){.ml_name = descriptor->name,
                                 .ml_meth = (PyCFunction)(void (*)(void))instruction_call,
                                 .ml_flags = METH_FASTCALL | METH_KEYWORDS,
                                 .ml_doc = descriptor->summary};
    PyObject *function = PyCFunction_New(&self->method, (PyObject *)self);
    Py_DECREF((PyObject *)self); /* the function keeps it, and its method table */
    return function;
}

PyObject *instruction_functions(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int count;
    const fr_neuron_instruction *const *table = fr_neuron_instructions(&count);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < count; i++) {
        PyObject *function = make_function(table[i]);
        if (!function || PyDict_SetItemString(dict, table[i]->name, function) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(function);
    }
    return dict;
}
