/* python/_core/module.c: the module frontier_nki._core: its types, exceptions and functions.
 *
 * The state is one per process, as the simulator's use is: a script that runs kernels. It is filled once,
 * when the module is imported, and afterwards only `current` and `override` change.
 */
#include "core.h"

core_state state;

/* package(path): frames of files under it are not lines of a kernel. */
static PyObject *set_package(PyObject *module, PyObject *path)
{
    (void)module;
    Py_INCREF(path);
    Py_XDECREF(state.package);
    state.package = path;
    Py_RETURN_NONE;
}

/* at((file, line) or None): the source of what is issued until further notice; for deferred instructions. */
static PyObject *set_override(PyObject *module, PyObject *place)
{
    (void)module;
    Py_CLEAR(state.override);
    if (place != Py_None) {
        if (!PyTuple_Check(place) || PyTuple_Size(place) != 2) {
            core_usage("at", "takes (file, line) or None");
            return NULL;
        }
        Py_INCREF(place);
        state.override = place;
    }
    Py_RETURN_NONE;
}

static PyObject *get_current(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (state.current) {
        Py_INCREF((PyObject *)state.current);
        return (PyObject *)state.current;
    }
    core_usage("kernel", "no kernel is running: call this inside a function with @nki.jit");
    return NULL;
}

static PyObject *deactivate(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_XDECREF((PyObject *)state.current);
    state.current = NULL;
    Py_RETURN_NONE;
}

static PyObject *running(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(state.current != NULL);
}

/* objects(dtypes {name: object}, buffers {memory: object}): what tile.dtype and tile.buffer return. */
static PyObject *set_objects(PyObject *module, PyObject *args)
{
    PyObject *dtypes, *buffers;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:objects", &dtypes, &buffers))
        return NULL;
    for (int i = 1; i < FR_NEURON_DTYPES; i++) {
        PyObject *object = PyDict_GetItemString(dtypes, fr_neuron_dtype_name((fr_neuron_dtype)i));
        Py_XINCREF(object);
        Py_XDECREF(state.dtypes[i]);
        state.dtypes[i] = object;
    }
    Py_INCREF(buffers);
    Py_XDECREF(state.buffers);
    state.buffers = buffers;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"objects", set_objects, METH_VARARGS, "objects(dtypes, buffers)"},
    {"package", set_package, METH_O, "package(path prefix)"},
    {"at", set_override, METH_O, "at((file, line) or None)"},
    {"here", core_here, METH_NOARGS, "(file, line) of the kernel's line that runs"},
    {"current", get_current, METH_NOARGS, "the Core of the running kernel"},
    {"deactivate", deactivate, METH_NOARGS, "no kernel is running"},
    {"running", running, METH_NOARGS, "whether a kernel is running"},
    {"functions", instruction_functions, METH_NOARGS, "{name: callable} of every instruction"},
    {"instructions", table_instructions, METH_NOARGS, "the descriptor table"},
    {"rules", table_rules, METH_NOARGS, "the rules"},
    {"language_rules", table_language_rules, METH_NOARGS, "what Python the compiler takes"},
    {"collective_rules", table_collective_rules, METH_NOARGS, "what ranks that meet must keep"},
    {"dtypes", table_dtypes, METH_NOARGS, "{name: bytes}"},
    {"operators", table_operators, METH_NOARGS, "names of ALU operators and activation functions"},
    {"reference", reference_run, METH_VARARGS, "one pass of an operator of the trainer"},
    {"reference_operators", reference_operators, METH_NOARGS, "{operator: names of its reference kernels}"},
    {"adamw", update_adamw, METH_VARARGS, "the trainer's AdamW step, in place"},
    {"muon", update_muon, METH_VARARGS, "the trainer's Muon step, in place"},
    {"sum_squares", update_sum_squares, METH_O, "of a flat float32 vector"},
    {"cross_entropy", update_cross_entropy, METH_VARARGS, "nats and gradients of rows of logits, in place"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "frontier_nki._core",
                                        "The NeuronCore simulator, as include/frontier/neuron.h has it.",
                                        -1,
                                        functions,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

static bool add_type(PyObject *module, PyTypeObject **slot, PyTypeObject *(*make)(PyObject *),
                     const char *name)
{
    *slot = make(module);
    return *slot && PyModule_AddObjectRef(module, name, (PyObject *)*slot) == 0;
}

static bool add_types(PyObject *module)
{
    return add_type(module, &state.storage, make_storage_type, "Storage") &&
           add_type(module, &state.tile, make_tile_type, "Tile") &&
           add_type(module, &state.reg, make_register_type, "Register") &&
           add_type(module, &state.core, make_core_type, "Core") &&
           add_type(module, &state.op, make_operator_type, "Operator") &&
           add_type(module, &state.instruction, make_instruction_type, "Instruction") &&
           add_type(module, &state.handle, make_handle_type, "Issued");
}

static bool add_exceptions(PyObject *module)
{
    state.rule_error = PyErr_NewExceptionWithDoc("frontier_nki.RuleError",
                                                 "The kernel breaks a rule of the machine.", NULL, NULL);
    state.usage_error = PyErr_NewExceptionWithDoc("frontier_nki.UsageError", "A call that means nothing.",
                                                  PyExc_TypeError, NULL);
    return state.rule_error && state.usage_error &&
           PyModule_AddObjectRef(module, "RuleError", state.rule_error) == 0 &&
           PyModule_AddObjectRef(module, "UsageError", state.usage_error) == 0;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    state.tile_method = PyUnicode_InternFromString("__nki_tile__");
    state.code_method = PyUnicode_InternFromString("nki_code");
    state.name_method = PyUnicode_InternFromString("name");
    state.start_name = PyUnicode_InternFromString("start");
    state.stop_name = PyUnicode_InternFromString("stop");
    state.step_name = PyUnicode_InternFromString("step");
    if (!state.tile_method || !state.code_method || !state.name_method || !state.start_name ||
        !state.stop_name || !state.step_name || !add_types(module) || !add_exceptions(module)) {
        Py_DECREF(module);
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(state.handle, Py_tp_alloc);
    state.handle_instance = allocate(state.handle, 0);
    return state.handle_instance ? module : NULL;
}
