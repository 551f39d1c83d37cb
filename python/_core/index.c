/* python/_core/index.c: tile[...]: integers, slices with steps, ..., None, and dynamic starts.
 *
 * The result is another view; nothing is copied. On chip an integer index of dimension 0 keeps a partition
 * dimension of size 1, and a result has at least two dimensions; in HBM an indexed dimension is dropped and
 * at least one is kept. Slices may not leave the tensor: Python's silent clamping would hide a kernel's
 * mistake. nl.ds(start, size) with a register as start, and a register as index, become the view's dynamic
 * offset; there can be one.
 */
#include "core.h"

typedef struct walk {
    const tile_object *from;
    tile_object *to;
    int in, out; /* dimensions consumed and produced */
} walk;

static bool out_of_bounds(const walk *w, int64_t start, int64_t stop)
{
    return core_usage("index", "[%lld, %lld) leaves dimension %d of size %lld", (long long)start,
                      (long long)stop, w->in, (long long)w->from->shape[w->in]);
}

static bool too_many(const walk *w)
{
    if (w->in < w->from->dims)
        return false;
    core_usage("index", "more indices than the tensor's %d dimensions", w->from->dims);
    return true;
}

/* Moves the start of the view by `count` steps of the dimension at hand. */
static void advance(walk *w, int64_t count)
{
    if (w->in == 0 && tile_on_chip(w->from))
        w->to->partition += (int)count;
    else
        w->to->offset += count * w->from->stride[w->in];
}

static bool emit(walk *w, int64_t size, int64_t stride)
{
    if (w->out >= TILE_RANK)
        return core_usage("index", "more than %d dimensions", TILE_RANK);
    w->to->shape[w->out] = size;
    w->to->stride[w->out++] = stride;
    return true;
}

static bool take_integer(walk *w, int64_t index)
{
    int64_t size = w->from->shape[w->in];
    if (index < 0)
        index += size;
    if (index < 0 || index >= size)
        return out_of_bounds(w, index, index + 1);
    advance(w, index);
    bool keep = w->in == 0 && tile_on_chip(w->from);
    if (keep && !emit(w, 1, w->from->stride[0]))
        return false;
    w->in++;
    return true;
}

/* An integer attribute of a slice: present, absent (None), or a register. */
typedef struct bound {
    bool given;
    int64_t value;
    PyObject *dynamic; /* borrowed from the slice */
} bound;

static bool bound_of(PyObject *slice, PyObject *name, bound *out)
{
    PyObject *value = PyObject_GetAttr(slice, name);
    *out = (bound){0};
    if (!value)
        return false;
    if (PyObject_TypeCheck(value, state.reg)) {
        out->dynamic = value;
        out->given = true;
    } else if (PyLong_Check(value)) {
        out->given = true;
        out->value = PyLong_AsLongLong(value);
    } else if (value != Py_None) {
        PyObject *integer = PyNumber_Index(value);
        out->given = true;
        out->value = integer ? PyLong_AsLongLong(integer) : -1;
        Py_XDECREF(integer);
    }
    Py_DECREF(value); /* the slice keeps it */
    return !PyErr_Occurred();
}

static bool dynamic_start(walk *w, PyObject *start)
{
    if (w->in == 0 && tile_on_chip(w->from))
        return core_usage("index", "the first partition cannot be dynamic; index HBM or a free dimension");
    return tile_set_index(w->to, start, w->from->stride[w->in], w->from->shape[w->in]);
}

static bool take_slice(walk *w, PyObject *slice)
{
    bound start, stop, step;
    int64_t size = w->from->shape[w->in];
    if (!bound_of(slice, state.start_name, &start) || !bound_of(slice, state.stop_name, &stop) ||
        !bound_of(slice, state.step_name, &step))
        return false;
    if (start.dynamic || stop.dynamic || step.dynamic)
        return core_usage("index", "a slice with a register needs nl.ds(register, size)");
    int64_t by = step.given ? step.value : 1;
    int64_t from = !start.given ? 0 : start.value < 0 ? start.value + size : start.value;
    int64_t to = !stop.given ? size : stop.value < 0 ? stop.value + size : stop.value;
    if (by < 1)
        return core_usage("index", "a step is at least 1, this is %lld", (long long)by);
    if (from < 0 || to > size || from >= to)
        return out_of_bounds(w, from, to);
    if (by != 1 && w->in == 0 && tile_on_chip(w->from))
        return core_usage("index", "partitions are consecutive; a step of %lld is not", (long long)by);
    advance(w, from);
    if (!emit(w, (to - from + by - 1) / by, w->from->stride[w->in] * by))
        return false;
    w->in++;
    return true;
}

/* nl.ds(register, size): a tuple subclass of the Python layer with these two attributes. */
static bool take_dynamic(walk *w, PyObject *item)
{
    PyObject *start = PyObject_GetAttrString(item, "start"), *size = PyObject_GetAttrString(item, "size");
    int64_t count = size ? PyLong_AsLongLong(size) : -1;
    bool ok = start && size && !PyErr_Occurred();
    if (!ok) {
        PyErr_Clear();
        core_usage("index", "an index is an integer, a slice, nl.ds, ..., None or a register");
    } else if (count < 1 || count > w->from->shape[w->in]) {
        ok = out_of_bounds(w, 0, count);
    } else if (PyLong_Check(start)) { /* a range of the loop constructs, used as an index */
        int64_t first = PyLong_AsLongLong(start);
        ok = first >= 0 && first + count <= w->from->shape[w->in] ? true
                                                                  : out_of_bounds(w, first, first + count);
        if (ok)
            advance(w, first);
        ok = ok && emit(w, count, w->from->stride[w->in]);
        w->in++;
    } else {
        ok = dynamic_start(w, start) && emit(w, count, w->from->stride[w->in]);
        w->to->index_limit -= count - 1;
        w->in++;
    }
    Py_XDECREF(start);
    Py_XDECREF(size);
    return ok;
}

static bool take_register(walk *w, PyObject *item)
{
    if (!dynamic_start(w, item))
        return false;
    w->in++;
    return true;
}

static bool take_rest(walk *w, int remaining)
{
    while (w->from->dims - w->in > remaining) {
        if (!emit(w, w->from->shape[w->in], w->from->stride[w->in]))
            return false;
        w->in++;
    }
    return true;
}

static int consuming(PyObject *const *items, Py_ssize_t count)
{
    int used = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        used += items[i] != Py_None && items[i] != Py_Ellipsis;
    return used;
}

static bool take(walk *w, PyObject *item, int remaining)
{
    if (item == Py_None)
        return w->out == 0 && tile_on_chip(w->from)
                   ? core_usage("index", "the partition dimension stays first; None goes after it")
                   : emit(w, 1, 0);
    if (item == Py_Ellipsis)
        return take_rest(w, remaining);
    if (too_many(w))
        return false;
    if (PySlice_Check(item))
        return take_slice(w, item);
    if (PyObject_TypeCheck(item, state.reg))
        return take_register(w, item);
    if (PyIndex_Check(item)) {
        PyObject *integer = PyNumber_Index(item);
        int64_t index = integer ? PyLong_AsLongLong(integer) : -1;
        Py_XDECREF(integer);
        return PyErr_Occurred() ? false : take_integer(w, index);
    }
    return take_dynamic(w, item);
}

static bool finish(walk *w)
{
    if (!take_rest(w, 0))
        return false;
    int least = tile_on_chip(w->from) ? 2 : 1;
    while (w->out < least && w->from->dims >= least)
        if (!emit(w, 1, 1))
            return false;
    w->to->dims = w->out;
    return true;
}

PyObject *tile_subscript(PyObject *self, PyObject *key)
{
    PyObject *items[TILE_RANK * 2 + 2];
    Py_ssize_t count = 1;
    items[0] = key;
    if (PyTuple_Check(key)) {
        count = PyTuple_Size(key);
        if (count > TILE_RANK * 2) {
            core_usage("index", "%d indices are more than any tensor has", (int)count);
            return NULL;
        }
        for (Py_ssize_t i = 0; i < count; i++)
            items[i] = PyTuple_GetItem(key, i);
    }
    for (Py_ssize_t i = 0, rests = 0; i < count; i++)
        if (items[i] == Py_Ellipsis && rests++) {
            core_usage("index", "one ... stands for all dimensions that are left; this has two");
            return NULL;
        }
    walk w = {.from = (tile_object *)self, .to = tile_copy((tile_object *)self)};
    bool ok = w.to != NULL;
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok = take(&w, items[i], consuming(items + i + 1, count - i - 1));
    if (ok && finish(&w))
        return (PyObject *)w.to;
    Py_XDECREF((PyObject *)w.to);
    return NULL;
}
