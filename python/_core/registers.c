/* python/_core/registers.c: Register, a 32-bit value of an engine's sequencer.
 *
 * Registers hold what is only known while the kernel runs: loop counters of nl.dynamic_range, numbers loaded
 * from tensors. The functional pass runs in program order, so their value is known here too: int(register),
 * comparisons, `while register:` and arithmetic work as on the chip, where the sequencer does them.
 */
#include "core.h"

#include <string.h>

bool register_read(const register_object *reg, int64_t *value)
{
    int32_t bits = 0;
    fr_error error = {0};
    fr_status status = fr_neuron_tensor_read(reg->storage->tensor, &bits, sizeof bits, &error);
    *value = bits;
    if (status == FR_OK)
        return true;
    core_raise(status, &error);
    return false;
}

register_object *register_new(core_object *core, int64_t value)
{
    fr_error error = {0};
    fr_neuron_layout layout = {
        .memory = FR_NEURON_REGISTER, .dtype = FR_NEURON_INT32, .dims = 1, .shape = {1}};
    PyObject *name = PyUnicode_InternFromString("register");
    tile_object *tile = name ? tile_of_tensor(core, layout, name, state.tile) : NULL;
    Py_XDECREF(name);
    if (!tile)
        return NULL;
    if (value < INT32_MIN || value > INT32_MAX) {
        Py_DECREF((PyObject *)tile);
        core_usage("register", "%lld does not fit 32 bits", (long long)value);
        return NULL;
    }
    int32_t bits = (int32_t)value;
    fr_status status = fr_neuron_tensor_write(tile->storage->tensor, &bits, sizeof bits, &error);
    allocfunc allocate = (allocfunc)PyType_GetSlot(state.reg, Py_tp_alloc);
    register_object *reg = status == FR_OK ? (register_object *)allocate(state.reg, 0) : NULL;
    if (reg) {
        Py_INCREF((PyObject *)tile->storage);
        reg->storage = tile->storage;
    }
    Py_DECREF((PyObject *)tile);
    if (status != FR_OK)
        core_raise(status, &error);
    return reg;
}

PyObject *core_register(PyObject *self, PyObject *args)
{
    long long value = 0;
    if (!PyArg_ParseTuple(args, "|L:register", &value))
        return NULL;
    return (PyObject *)register_new((core_object *)self, value);
}

static PyObject *as_integer(PyObject *object)
{
    int64_t value;
    if (!PyObject_TypeCheck(object, state.reg)) {
        Py_INCREF(object);
        return object;
    }
    return register_read((register_object *)object, &value) ? PyLong_FromLongLong(value) : NULL;
}

/* Registers in, a new register out; plain numbers are immediates of the sequencer. */
static PyObject *calculate(PyObject *a, PyObject *b, PyObject *(*function)(PyObject *, PyObject *))
{
    PyObject *x = as_integer(a), *y = as_integer(b);
    PyObject *result = x && y ? function(x, y) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (!result || !PyLong_Check(result))
        return result;
    PyObject *owner = PyObject_TypeCheck(a, state.reg) ? a : b;
    int64_t value = PyLong_AsLongLong(result);
    Py_DECREF(result);
    return PyErr_Occurred() ? NULL
                            : (PyObject *)register_new(((register_object *)owner)->storage->owner, value);
}

static PyObject *register_add(PyObject *a, PyObject *b)
{
    return calculate(a, b, PyNumber_Add);
}

static PyObject *register_subtract(PyObject *a, PyObject *b)
{
    return calculate(a, b, PyNumber_Subtract);
}

static PyObject *register_multiply(PyObject *a, PyObject *b)
{
    return calculate(a, b, PyNumber_Multiply);
}

static PyObject *register_floor_divide(PyObject *a, PyObject *b)
{
    return calculate(a, b, PyNumber_FloorDivide);
}

static PyObject *register_remainder(PyObject *a, PyObject *b)
{
    return calculate(a, b, PyNumber_Remainder);
}

static PyObject *register_compare(PyObject *a, PyObject *b, int op)
{
    if (b == Py_None)
        return PyBool_FromLong(op == Py_NE);
    PyObject *x = as_integer(a), *y = as_integer(b);
    PyObject *result = x && y ? PyObject_RichCompare(x, y, op) : NULL;
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static int register_true(PyObject *self)
{
    int64_t value;
    return register_read((register_object *)self, &value) ? value != 0 : -1;
}

static PyObject *register_repr(PyObject *self)
{
    int64_t value;
    return register_read((register_object *)self, &value)
               ? PyUnicode_FromFormat("register(%lld)", (long long)value)
               : NULL;
}

static void register_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((register_object *)self)->storage);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *register_float(PyObject *self)
{
    int64_t value;
    return register_read((register_object *)self, &value) ? PyFloat_FromDouble((double)value) : NULL;
}

static Py_hash_t register_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)self >> 4);
}

static PyType_Slot register_slots[] = {
    {Py_tp_dealloc, register_dealloc},
    {Py_nb_add, register_add},
    {Py_nb_subtract, register_subtract},
    {Py_nb_multiply, register_multiply},
    {Py_nb_floor_divide, register_floor_divide},
    {Py_nb_remainder, register_remainder},
    {Py_nb_bool, register_true},
    {Py_nb_int, as_integer},
    {Py_nb_index, as_integer},
    {Py_nb_float, register_float},
    {Py_tp_richcompare, register_compare},
    {Py_tp_hash, register_hash},
    {Py_tp_repr, register_repr},
    {Py_tp_doc, "A 32-bit value of an engine's sequencer."},
    {0, NULL},
};
static PyType_Spec register_spec = {"frontier_nki._core.Register", sizeof(register_object), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, register_slots};
PyTypeObject *make_register_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&register_spec);
}
