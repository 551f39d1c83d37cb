/* python/_core/operators.c: Operator, what nl.add and nl.exp are.
 *
 * A kernel uses the same name as an instruction's `op=` and as a function of tiles: nl.add(x, y). So an
 * Operator carries the codes of both tables (ALU operator, activation function) and, given by the Python
 * layer, the function to call.
 */
#include "core.h"

static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const char *name;
    PyObject *function = Py_None;
    static char *names[] = {"name", "function", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|O:Operator", names, &name, &function))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    operator_object *object = (operator_object *)allocate(type, 0);
    if (!object)
        return NULL;
    object->name = PyUnicode_InternFromString(name);
    object->op = fr_neuron_operator_named(name);
    object->activation = fr_neuron_function_named(name);
    Py_INCREF(function);
    object->function = function;
    return (PyObject *)object;
}

static void operator_dealloc(PyObject *self)
{
    operator_object *object = (operator_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(object->name);
    Py_XDECREF(object->function);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *operator_call(PyObject *self, PyObject *args, PyObject *keywords)
{
    operator_object *object = (operator_object *)self;
    if (object->function != Py_None)
        return PyObject_Call(object->function, args, keywords);
    core_usage("call", "this operator is for op= arguments only");
    return NULL;
}

static PyObject *operator_repr(PyObject *self)
{
    return PyUnicode_FromFormat("nl.%U", ((operator_object *)self)->name);
}

static PyObject *operator_name(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *name = ((operator_object *)self)->name;
    Py_INCREF(name);
    return name;
}

static PyObject *operator_is_alu(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((operator_object *)self)->op != FR_NEURON_NO_OPERATOR);
}

static PyObject *operator_is_activation(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((operator_object *)self)->activation != FR_NEURON_NO_FUNCTION);
}

static PyGetSetDef operator_attributes[] = {
    {"__name__", operator_name, NULL, NULL, NULL},
    {"name", operator_name, NULL, NULL, NULL},
    {"is_alu", operator_is_alu, NULL, NULL, NULL},
    {"is_activation", operator_is_activation, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot operator_slots[] = {
    {Py_tp_new, operator_new},
    {Py_tp_dealloc, operator_dealloc},
    {Py_tp_call, operator_call},
    {Py_tp_repr, operator_repr},
    {Py_tp_getset, operator_attributes},
    {Py_tp_doc, "An ALU operator or activation function, callable on tiles."},
    {0, NULL},
};
static PyType_Spec operator_spec = {"frontier_nki._core.Operator", sizeof(operator_object), 0,
                                    Py_TPFLAGS_DEFAULT, operator_slots};
PyTypeObject *make_operator_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&operator_spec);
}
