/* python/_core/pattern.c: explicit access patterns and the view methods.
 *
 * tile.ap(pattern, ...) addresses the underlying tensor, whatever the view was: [stride, size] pairs,
 * outermost first. On chip the first pair must be [elements of a partition, partitions], because the
 * hardware walks partitions one by one with the same pattern in each. permute, broadcast, expand_dim,
 * squeeze_dim, reshape, view and the rest compose with the view they are called on and never copy; where no
 * pattern expresses the result they say so.
 */
#include "core.h"

#include <string.h>

bool tile_set_index(tile_object *tile, PyObject *index, int64_t stride, int64_t limit)
{
    if (tile->index)
        return core_usage("index", "a view has one dynamic offset, this would be the second");
    Py_INCREF(index);
    tile->index = index;
    tile->index_stride = stride;
    tile->index_limit = limit;
    return true;
}

static tile_object *give_up(tile_object *tile)
{
    Py_XDECREF((PyObject *)tile);
    return NULL;
}

/* A sequence of integers; -1 on error. */
static int integers(PyObject *sequence, int64_t *out, int most, const char *what)
{
    Py_ssize_t count = PySequence_Size(sequence);
    if (count < 0)
        return -1;
    if (count > most) {
        core_usage(what, "%d entries, at most %d", (int)count, most);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *integer = item ? PyNumber_Index(item) : NULL;
        out[i] = integer ? PyLong_AsLongLong(integer) : 0;
        Py_XDECREF(item);
        Py_XDECREF(integer);
        if (PyErr_Occurred())
            return -1;
    }
    return (int)count;
}

/* ---- ap ---- */

static bool read_pairs(tile_object *tile, PyObject *pattern)
{
    Py_ssize_t count = PySequence_Size(pattern);
    if (count < 1)
        return PyErr_Occurred() ? false : core_usage("ap", "an empty pattern");
    if (count > TILE_RANK)
        return core_usage("ap", "%d pairs, at most %d", (int)count, TILE_RANK);
    for (Py_ssize_t i = 0; i < count; i++) {
        int64_t pair[2];
        PyObject *item = PySequence_GetItem(pattern, i);
        int got = item ? integers(item, pair, 2, "ap") : -1;
        Py_XDECREF(item);
        if (got != 2)
            return got < 0 ? false : core_usage("ap", "pair %d is not [stride, size]", (int)i);
        if (pair[1] < 1)
            return core_usage("ap", "pair %d has size %lld", (int)i, (long long)pair[1]);
        tile->stride[i] = pair[0];
        tile->shape[i] = pair[1];
    }
    tile->dims = (int)count;
    return true;
}

static bool place_offset(tile_object *tile, PyObject *offset)
{
    int64_t row = tile_free_elements(tile);
    if (offset != Py_None) {
        int64_t start = PyLong_AsLongLong(offset);
        if (PyErr_Occurred())
            return false;
        if (start < 0)
            return core_usage("ap", "offset %lld is negative", (long long)start);
        tile->partition = tile_on_chip(tile) ? (int)(start / row) : 0;
        tile->offset = tile_on_chip(tile) ? start % row : start;
    }
    if (tile_on_chip(tile) && tile->shape[0] > 1 && tile->stride[0] != row)
        return core_usage(
            "ap",
            "the first pair walks partitions: its stride must be the %lld elements of a partition, not %lld",
            (long long)row, (long long)tile->stride[0]);
    return true;
}

/* One unit of a dynamic offset moves by a whole entry of dimension `dim` of the tensor ap was called on; it
 * may run on into the dimensions outside (row 40 of blocks of 16 rows is row 8 of block 2), as addresses do. */
static bool dynamic_offset(tile_object *tile, const tile_object *base, PyObject *scalar, PyObject *vector,
                           int dim)
{
    if (scalar != Py_None && vector != Py_None)
        return core_usage("ap", "scalar_offset and vector_offset exclude each other");
    if (dim < 0 || dim >= base->dims)
        return core_usage("ap", "indirect_dim %d of a tensor with %d dimensions", dim, base->dims);
    int64_t stride = 1;
    for (int i = dim + 1; i < base->dims; i++)
        stride *= base->shape[i];
    int64_t limit = 1;
    for (int i = 0; i <= dim; i++)
        limit *= base->shape[i];
    tile->whole_rows = vector != Py_None;
    if (tile->whole_rows && dim != 0)
        return core_usage("ap", "vector_offset replaces dimension 0, not %d", dim);
    return tile_set_index(tile, tile->whole_rows ? vector : scalar, stride, limit);
}

static PyObject *tile_ap(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"pattern", "offset", "scalar_offset", "vector_offset", "indirect_dim",
                            "dtype",   NULL};
    PyObject *pattern, *offset = Py_None, *scalar = Py_None, *vector = Py_None, *dtype = Py_None;
    const tile_object *base = (tile_object *)self;
    int dim = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OOOiO:ap", names, &pattern, &offset, &scalar, &vector,
                                     &dim, &dtype))
        return NULL;
    tile_object *tile = tile_copy(base);
    if (!tile)
        return NULL;
    Py_CLEAR(tile->index);
    if (dtype != Py_None) {
        fr_neuron_dtype to = dtype_from(dtype);
        if (!to) {
            core_usage("ap", "unknown dtype");
            return (PyObject *)give_up(tile);
        }
        tile->offset = tile->offset * fr_neuron_dtype_bytes(tile->dtype) / fr_neuron_dtype_bytes(to);
        tile->dtype = to;
    }
    bool ok = read_pairs(tile, pattern) && place_offset(tile, offset);
    if (ok && (scalar != Py_None || vector != Py_None))
        ok = dynamic_offset(tile, base, scalar, vector, dim);
    return (PyObject *)(ok ? tile : give_up(tile));
}

/* ---- methods that compose ---- */

static bool dimension(const tile_object *tile, const char *method, int *dim, int least)
{
    if (*dim < 0)
        *dim += tile->dims;
    if (*dim < 0 || *dim >= tile->dims)
        return core_usage(method, "dimension %d of %d", *dim, tile->dims);
    if (tile_on_chip(tile) && *dim < least)
        return core_usage(method, "the partition dimension of an on-chip tensor stays as it is");
    return true;
}

static PyObject *tile_permute(PyObject *self, PyObject *dims)
{
    int64_t order[TILE_RANK];
    const tile_object *from = (tile_object *)self;
    int seen = 0, count = integers(dims, order, TILE_RANK, "permute");
    if (count < 0)
        return NULL;
    for (int i = 0; i < count; i++)
        if (order[i] >= 0 && order[i] < from->dims)
            seen |= 1 << order[i];
    if (count != from->dims || seen != (1 << count) - 1) {
        core_usage("permute", "not a permutation of the %d dimensions", from->dims);
        return NULL;
    }
    if (tile_on_chip(from) && order[0] != 0) {
        core_usage("permute", "the partition dimension of an on-chip tensor stays first");
        return NULL;
    }
    tile_object *tile = tile_copy(from);
    for (int i = 0; tile && i < count; i++) {
        tile->shape[i] = from->shape[order[i]];
        tile->stride[i] = from->stride[order[i]];
    }
    return (PyObject *)tile;
}

static PyObject *tile_broadcast(PyObject *self, PyObject *args)
{
    int dim;
    long long size;
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "iL:broadcast", &dim, &size) || !dimension(from, "broadcast", &dim, 1))
        return NULL;
    if (from->shape[dim] != 1 || size < 1) {
        core_usage("broadcast", "dimension %d has size %lld, it must be 1", dim, (long long)from->shape[dim]);
        return NULL;
    }
    tile_object *tile = tile_copy(from);
    if (tile) {
        tile->shape[dim] = size;
        tile->stride[dim] = 0;
    }
    return (PyObject *)tile;
}

static PyObject *tile_expand(PyObject *self, PyObject *argument)
{
    long dim = PyLong_AsLong(argument);
    const tile_object *from = (tile_object *)self;
    if (PyErr_Occurred())
        return NULL;
    if (dim < 0)
        dim += from->dims + 1;
    if (dim < (tile_on_chip(from) ? 1 : 0) || dim > from->dims || from->dims >= TILE_RANK) {
        core_usage("expand_dim", "no new dimension at %ld of %d", dim, from->dims);
        return NULL;
    }
    tile_object *tile = tile_copy(from);
    if (!tile)
        return NULL;
    for (int i = from->dims; i > dim; i--) {
        tile->shape[i] = from->shape[i - 1];
        tile->stride[i] = from->stride[i - 1];
    }
    tile->shape[dim] = 1;
    tile->stride[dim] = 0;
    tile->dims++;
    return (PyObject *)tile;
}

static PyObject *tile_squeeze(PyObject *self, PyObject *argument)
{
    int dim = (int)PyLong_AsLong(argument);
    const tile_object *from = (tile_object *)self;
    if (PyErr_Occurred() || !dimension(from, "squeeze_dim", &dim, 1))
        return NULL;
    if (from->shape[dim] != 1 || from->dims == 1) {
        core_usage("squeeze_dim", "dimension %d has size %lld, it must be 1", dim,
                   (long long)from->shape[dim]);
        return NULL;
    }
    tile_object *tile = tile_copy(from);
    for (int i = dim; tile && i < from->dims - 1; i++) {
        tile->shape[i] = from->shape[i + 1];
        tile->stride[i] = from->stride[i + 1];
    }
    if (tile)
        tile->dims--;
    return (PyObject *)tile;
}

/* Strides of `shape` over the elements of `tile` from dimension `first` on, or false when no pattern
 * expresses it. */
static bool restride(const tile_object *tile, int first, const int64_t *shape, int dims, int64_t *stride)
{
    int old = tile->dims - 1, at = dims - 1;
    while (at >= 0) {
        while (old > first && tile->shape[old] == 1)
            old--;
        if (old < first)
            break;
        int64_t have = tile->shape[old], want = 1, step = tile->stride[old];
        while (old > first && tile->stride[old - 1] == step * have) /* contiguous with the one outside */
            have *= tile->shape[--old];
        while (at >= 0 && want < have) {
            stride[at] = step * want;
            want *= shape[at--];
        }
        if (want != have)
            return false;
        old--;
    }
    for (; at >= 0; at--) {
        if (shape[at] != 1)
            return false;
        stride[at] = 0;
    }
    return true;
}

static tile_object *reshaped(const tile_object *from, int64_t *shape, int dims)
{
    int first = tile_on_chip(from) ? 1 : 0, hole = -1;
    int64_t have = 1, want = 1;
    for (int i = 0; i < from->dims; i++)
        have *= from->shape[i];
    for (int i = 0; i < dims; i++) {
        if (shape[i] == -1)
            hole = i;
        else
            want *= shape[i];
    }
    if (hole >= 0 && want > 0)
        want *= shape[hole] = have / want;
    if (want != have || (first && (dims < 1 || shape[0] != from->shape[0]))) {
        core_usage("reshape",
                   first ? "the shapes differ in size or partitions" : "the shapes differ in size");
        return NULL;
    }
    tile_object *tile = tile_copy(from);
    if (!tile)
        return NULL;
    tile->dims = dims;
    memcpy(tile->shape, shape, (size_t)dims * sizeof *shape);
    if (restride(from, first, shape + first, dims - first, tile->stride + first))
        return tile;
    core_usage("reshape", "no access pattern expresses this shape over a view that is not contiguous");
    return give_up(tile);
}

static PyObject *tile_reshape(PyObject *self, PyObject *args)
{
    int64_t shape[TILE_RANK];
    PyObject *sizes = args;
    if (PyTuple_Size(args) == 1 && PySequence_Check(PyTuple_GetItem(args, 0)))
        sizes = PyTuple_GetItem(args, 0);
    int dims = integers(sizes, shape, TILE_RANK, "reshape");
    return dims < 0 ? NULL : (PyObject *)reshaped((tile_object *)self, shape, dims);
}

static PyObject *tile_reshape_dim(PyObject *self, PyObject *args)
{
    int dim;
    PyObject *sizes;
    int64_t split[TILE_RANK], shape[2 * TILE_RANK];
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "iO:reshape_dim", &dim, &sizes) || !dimension(from, "reshape_dim", &dim, 1))
        return NULL;
    int parts = integers(sizes, split, TILE_RANK, "reshape_dim"), dims = 0;
    if (parts < 0)
        return NULL;
    int64_t product = 1;
    for (int i = 0; i < parts; i++)
        product *= split[i] == -1 ? 1 : split[i];
    for (int i = 0; i < from->dims; i++)
        for (int j = 0; j < (i == dim ? parts : 1); j++)
            shape[dims++] = i != dim                    ? from->shape[i]
                            : split[j] == -1 && product ? from->shape[dim] / product
                                                        : split[j];
    if (dims > TILE_RANK) {
        core_usage("reshape_dim", "more than %d dimensions", TILE_RANK);
        return NULL;
    }
    return (PyObject *)reshaped(from, shape, dims);
}

static PyObject *tile_flatten(PyObject *self, PyObject *args)
{
    int start, end, dims = 0;
    int64_t shape[TILE_RANK];
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "ii:flatten_dims", &start, &end) ||
        !dimension(from, "flatten_dims", &start, 1) || !dimension(from, "flatten_dims", &end, 1))
        return NULL;
    for (int i = 0; i < from->dims; i++) {
        if (i > start && i <= end)
            shape[dims - 1] *= from->shape[i];
        else
            shape[dims++] = from->shape[i];
    }
    return (PyObject *)reshaped(from, shape, dims);
}

static PyObject *tile_select(PyObject *self, PyObject *args)
{
    int dim;
    PyObject *index;
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "iO:select", &dim, &index) || !dimension(from, "select", &dim, 1))
        return NULL;
    tile_object *tile = tile_copy(from);
    if (!tile)
        return NULL;
    if (PyIndex_Check(index) && !PyObject_TypeCheck(index, state.reg)) {
        int64_t value = PyLong_AsLongLong(index);
        if (value < 0)
            value += from->shape[dim];
        if (value < 0 || value >= from->shape[dim]) {
            core_usage("select", "index %lld of %lld", (long long)value, (long long)from->shape[dim]);
            return (PyObject *)give_up(tile);
        }
        tile->offset += value * from->stride[dim];
    } else if (!tile_set_index(tile, index, from->stride[dim], from->shape[dim])) {
        return (PyObject *)give_up(tile);
    }
    if (from->dims == (tile_on_chip(from) ? 2 : 1)) { /* the last one stays, with size 1 */
        tile->shape[dim] = 1;
        return (PyObject *)tile;
    }
    for (int i = dim; i < from->dims - 1; i++) {
        tile->shape[i] = from->shape[i + 1];
        tile->stride[i] = from->stride[i + 1];
    }
    tile->dims--;
    return (PyObject *)tile;
}

static PyObject *tile_vector_select(PyObject *self, PyObject *args)
{
    int dim;
    PyObject *index;
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "iO:vector_select", &dim, &index))
        return NULL;
    if (dim != 0 || tile_on_chip(from)) {
        core_usage("vector_select", "selects rows (dimension 0) of a tensor in HBM");
        return NULL;
    }
    tile_object *rows = tile_from(index, "vector_select"), *tile = rows ? tile_copy(from) : NULL;
    if (tile && !tile_set_index(tile, index, from->stride[0], from->shape[0]))
        tile = give_up(tile);
    if (tile) {
        tile->whole_rows = true;
        tile->shape[0] = rows->shape[0];
    }
    Py_XDECREF((PyObject *)rows);
    return (PyObject *)tile;
}

static PyObject *tile_view_dtype(PyObject *self, PyObject *dtype)
{
    const tile_object *from = (tile_object *)self;
    fr_neuron_dtype to = dtype_from(dtype);
    if (!to)
        core_usage("view", "unknown dtype");
    tile_object *tile = to ? tile_copy(from) : NULL;
    if (!tile)
        return NULL;
    int last = tile->dims - 1;
    int64_t old = fr_neuron_dtype_bytes(from->dtype), new = fr_neuron_dtype_bytes(to);
    tile->dtype = to;
    if (old == new)
        return (PyObject *)tile;
    bool whole =
        tile->shape[last] * old % new == 0 && tile->offset *old % new == 0 && tile->stride[last] == 1;
    for (int i = tile_on_chip(tile) ? 1 : 0; i < last; i++) {
        whole = whole && tile->stride[i] * old % new == 0;
        tile->stride[i] = tile->stride[i] * old / new;
    }
    if (!whole || (last == 0 && tile_on_chip(tile))) {
        core_usage("view", "the last dimension must be contiguous and a whole number of %s",
                   fr_neuron_dtype_name(to));
        return (PyObject *)give_up(tile);
    }
    tile->shape[last] = tile->shape[last] * old / new;
    tile->offset = tile->offset * old / new;
    if (tile_on_chip(tile))
        tile->stride[0] = tile->stride[0] * old / new;
    return (PyObject *)tile;
}

static PyObject *tile_slice(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"dim", "start", "end", "step", NULL};
    int dim;
    PyObject *start, *end, *step = Py_None;
    const tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "iOO|O:slice", names, &dim, &start, &end, &step) ||
        !dimension(from, "slice", &dim, 0))
        return NULL;
    PyObject *key = PyTuple_New(dim + 1);
    for (int i = 0; key && i <= dim; i++)
        PyTuple_SetItem(key, i, i < dim ? PySlice_New(NULL, NULL, NULL) : PySlice_New(start, end, step));
    PyObject *answer = key ? tile_subscript(self, key) : NULL;
    Py_XDECREF(key);
    return answer;
}

/* The general view, for the older style's index tiles: partition, partitions (0 in HBM), offset, [(stride,
 * size)]. */
static PyObject *tile_pattern(PyObject *self, PyObject *args)
{
    int partition;
    long long offset, partitions;
    PyObject *pairs;
    tile_object *from = (tile_object *)self;
    if (!PyArg_ParseTuple(args, "iLLO:pattern_view", &partition, &partitions, &offset, &pairs))
        return NULL;
    tile_object *tile = tile_copy(from);
    if (!tile || !read_pairs(tile, pairs))
        return (PyObject *)give_up(tile);
    tile->offset = offset;
    if (!tile_on_chip(tile))
        return (PyObject *)tile;
    if (tile->dims >= TILE_RANK) {
        core_usage("index", "more than %d dimensions", TILE_RANK);
        return (PyObject *)give_up(tile);
    }
    memmove(tile->shape + 1, tile->shape, (size_t)tile->dims * sizeof *tile->shape);
    memmove(tile->stride + 1, tile->stride, (size_t)tile->dims * sizeof *tile->stride);
    tile->dims++;
    tile->partition = partition;
    tile->shape[0] = partitions;
    tile->stride[0] = tile_free_elements(tile);
    return (PyObject *)tile;
}

static PyObject *tile_get_pattern(PyObject *self, PyObject *unused)
{
    (void)unused;
    const tile_object *tile = (tile_object *)self;
    PyObject *list = PyList_New(tile->dims);
    for (int i = 0; list && i < tile->dims; i++)
        PyList_SetItem(list, i, Py_BuildValue("[LL]", (long long)tile->stride[i], (long long)tile->shape[i]));
    return list;
}

static PyObject *tile_is_contiguous(PyObject *self, PyObject *unused)
{
    (void)unused;
    const tile_object *tile = (tile_object *)self;
    int64_t expected = 1;
    for (int i = tile->dims - 1; i >= (tile_on_chip(tile) ? 1 : 0); i--) {
        if (tile->shape[i] != 1 && tile->stride[i] != expected)
            Py_RETURN_FALSE;
        expected *= tile->shape[i];
    }
    Py_RETURN_TRUE;
}

static PyObject *tile_is_indirect(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((tile_object *)self)->index != NULL);
}

#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))
PyMethodDef tile_view_methods[] = {
    {"ap", WITH_KEYWORDS(tile_ap), METH_VARARGS | METH_KEYWORDS, "explicit access pattern over the tensor"},
    {"slice", WITH_KEYWORDS(tile_slice), METH_VARARGS | METH_KEYWORDS, "slice(dim, start, end, step=1)"},
    {"permute", tile_permute, METH_O, "permute(dims)"},
    {"broadcast", tile_broadcast, METH_VARARGS, "broadcast(dim, size)"},
    {"expand_dim", tile_expand, METH_O, "expand_dim(dim)"},
    {"squeeze_dim", tile_squeeze, METH_O, "squeeze_dim(dim)"},
    {"reshape", tile_reshape, METH_VARARGS, "reshape(shape)"},
    {"reshape_dim", tile_reshape_dim, METH_VARARGS, "reshape_dim(dim, shape)"},
    {"flatten_dims", tile_flatten, METH_VARARGS, "flatten_dims(first, last)"},
    {"select", tile_select, METH_VARARGS, "select(dim, index)"},
    {"vector_select", tile_vector_select, METH_VARARGS, "vector_select(0, rows)"},
    {"view", tile_view_dtype, METH_O, "view(dtype): the same bytes as another type"},
    {"reinterpret_cast", tile_view_dtype, METH_O, "view(dtype)"},
    {"pattern_view", tile_pattern, METH_VARARGS, "pattern_view(partition, partitions, offset, pairs)"},
    {"get_pattern", tile_get_pattern, METH_NOARGS, "[[stride, size], ...]"},
    {"is_contiguous", tile_is_contiguous, METH_NOARGS, NULL},
    {"is_indirect", tile_is_indirect, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
