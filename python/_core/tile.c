/* python/_core/tile.c: Tile, what a kernel holds: a view of a tensor in SBUF, PSUM or HBM.
 *
 * A Tile is a reference, never a value: slicing makes another view of the same storage. Its shape and
 * strides are those the kernel wrote; tile_view turns them into the fr_neuron_view that an instruction
 * takes. On chip dimension 0 is the partitions. Slicing is in index.c, access patterns and the view methods
 * in pattern.c.
 */
#include "core.h"

#include <string.h>

/* ---- storage ---- */

static void storage_dealloc(PyObject *self)
{
    storage_object *storage = (storage_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (storage->tensor && storage->owner && storage->owner->core)
        fr_neuron_tensor_release(storage->owner->core, storage->tensor);
    Py_XDECREF((PyObject *)storage->owner);
    Py_XDECREF(storage->name);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyType_Slot storage_slots[] = {{Py_tp_dealloc, storage_dealloc}, {0, NULL}};
static PyType_Spec storage_spec = {"frontier_nki._core.Storage", sizeof(storage_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, storage_slots};
PyTypeObject *make_storage_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&storage_spec);
}

/* ---- making tiles ---- */

tile_object *tile_new(storage_object *storage, PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    tile_object *tile = (tile_object *)allocate(type, 0);
    if (tile) {
        Py_INCREF((PyObject *)storage);
        tile->storage = storage;
    }
    return tile;
}

tile_object *tile_copy(const tile_object *tile)
{
    tile_object *copy = tile_new(tile->storage, Py_TYPE((PyObject *)tile));
    if (!copy)
        return NULL;
    copy->dtype = tile->dtype;
    copy->memory = tile->memory;
    copy->dims = tile->dims;
    copy->partition = tile->partition;
    copy->offset = tile->offset;
    memcpy(copy->shape, tile->shape, sizeof tile->shape);
    memcpy(copy->stride, tile->stride, sizeof tile->stride);
    copy->index = tile->index;
    Py_XINCREF(copy->index);
    copy->whole_rows = tile->whole_rows;
    copy->index_stride = tile->index_stride;
    copy->index_limit = tile->index_limit;
    return copy;
}

static storage_object *storage_new(core_object *core, fr_neuron_tensor *tensor, PyObject *name)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(state.storage, Py_tp_alloc);
    storage_object *storage = (storage_object *)allocate(state.storage, 0);
    if (!storage)
        return NULL;
    Py_INCREF((PyObject *)core);
    Py_INCREF(name);
    storage->owner = core;
    storage->tensor = tensor;
    storage->name = name;
    return storage;
}

tile_object *tile_of_tensor(core_object *core, fr_neuron_layout layout, PyObject *name, PyTypeObject *type)
{
    fr_error error = {0};
    fr_neuron_tensor *tensor;
    core_locate(core->core);
    fr_status status = fr_neuron_tensor_create(&tensor, core->core, layout, &error);
    if (status != FR_OK)
        return (tile_object *)core_raise(status, &error);
    storage_object *storage = storage_new(core, tensor, name);
    if (!storage) {
        fr_neuron_tensor_release(core->core, tensor);
        return NULL;
    }
    tile_object *tile = tile_new(storage, type);
    Py_DECREF((PyObject *)storage);
    if (!tile)
        return NULL;
    tile->dtype = layout.dtype;
    tile->memory = layout.memory;
    tile->dims = layout.dims;
    int64_t stride = 1;
    for (int i = layout.dims - 1; i >= 0; i--) {
        tile->shape[i] = layout.shape[i];
        tile->stride[i] = stride; /* on chip the first equals the elements of a partition, and is not used */
        stride *= layout.shape[i];
    }
    return tile;
}

static void tile_dealloc(PyObject *self)
{
    tile_object *tile = (tile_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)tile->storage);
    Py_XDECREF(tile->index);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

/* ---- tiles as arguments ---- */

bool tile_is(PyObject *object)
{
    return PyObject_TypeCheck(object, state.tile);
}

tile_object *tile_from(PyObject *object, const char *what)
{
    if (tile_is(object)) {
        tile_object *tile = (tile_object *)object;
        if (tile->storage) {
            Py_INCREF(object);
            return tile;
        }
    }
    PyObject *answer = PyObject_CallMethodObjArgs(object, state.tile_method, NULL);
    if (answer && tile_is(answer) && ((tile_object *)answer)->storage)
        return (tile_object *)answer;
    if (!answer && !PyErr_ExceptionMatches(PyExc_AttributeError))
        return NULL;
    PyErr_Clear();
    Py_XDECREF(answer);
    PyObject *text = PyObject_Repr((PyObject *)Py_TYPE(object));
    const char *type = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    core_usage(what, "takes a tensor, not %s", type ? type : "this");
    Py_XDECREF(text);
    return NULL;
}

int64_t tile_free_elements(const tile_object *tile)
{
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(tile->storage->tensor);
    int64_t bytes = fr_neuron_dtype_bytes(layout->dtype);
    for (int i = layout->memory == FR_NEURON_HBM ? 0 : 1; i < layout->dims; i++)
        bytes *= layout->shape[i];
    return bytes / fr_neuron_dtype_bytes(tile->dtype);
}

static bool view_index(const tile_object *tile, fr_neuron_view *view)
{
    view->whole_rows = tile->whole_rows;
    view->index_stride = tile->index_stride;
    view->index_limit = tile->index_limit;
    if (PyObject_TypeCheck(tile->index, state.reg)) {
        view->index = ((register_object *)tile->index)->storage->tensor;
        return true;
    }
    tile_object *index = tile_from(tile->index, "dynamic offset");
    if (!index)
        return false;
    view->index = index->storage->tensor;
    view->index_partition = (int16_t)index->partition;
    view->index_partitions = (int16_t)(tile_on_chip(index) ? index->shape[0] : 1);
    view->index_offset = index->offset;
    Py_DECREF((PyObject *)index); /* tile->index keeps it */
    return true;
}

bool tile_view(const tile_object *tile, fr_neuron_view *view)
{
    memset(view, 0, sizeof *view);
    int first = tile_on_chip(tile) ? 1 : 0;
    view->tensor = tile->storage->tensor;
    view->dtype = tile->dtype;
    view->offset = tile->offset;
    if (first) {
        view->partition = (int16_t)tile->partition;
        view->partitions = (int16_t)tile->shape[0];
    }
    view->dims = (int16_t)(tile->dims - first);
    for (int i = first; i < tile->dims; i++) {
        view->stride[i - first] = tile->stride[i];
        view->size[i - first] = tile->shape[i];
    }
    return tile->index ? view_index(tile, view) : true;
}

fr_neuron_dtype dtype_from(PyObject *object)
{
    PyObject *name = PyUnicode_Check(object) ? NULL : PyObject_GetAttrString(object, "__name__");
    PyErr_Clear();
    PyObject *text = PyObject_Str(name ? name : object);
    const char *word = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const char *plain = word && strncmp(word, "torch.", 6) == 0 ? word + 6 : word;
    fr_neuron_dtype dtype = plain ? fr_neuron_dtype_named(plain) : FR_NEURON_NO_DTYPE;
    if (!dtype && plain && (strcmp(plain, "bool") == 0 || strcmp(plain, "bool_") == 0))
        dtype = FR_NEURON_BOOL;
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(text);
    return dtype;
}

/* ---- attributes ---- */

static PyObject *shape_get(PyObject *self, void *unused)
{
    (void)unused;
    tile_object *tile = (tile_object *)self;
    PyObject *shape = PyTuple_New(tile->dims);
    for (int i = 0; shape && i < tile->dims; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(tile->shape[i]));
    return shape;
}

static PyObject *strides_get(PyObject *self, void *unused)
{
    (void)unused;
    tile_object *tile = (tile_object *)self;
    PyObject *strides = PyTuple_New(tile->dims);
    for (int i = 0; strides && i < tile->dims; i++)
        PyTuple_SetItem(strides, i, PyLong_FromLongLong(tile->stride[i]));
    return strides;
}

static PyObject *offset_get(PyObject *self, void *unused)
{
    (void)unused;
    tile_object *tile = (tile_object *)self;
    int64_t row = tile_on_chip(tile) ? tile->partition * tile_free_elements(tile) : 0;
    return PyLong_FromLongLong(row + tile->offset);
}

static PyObject *ndim_get(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((tile_object *)self)->dims);
}

static PyObject *size_get(PyObject *self, void *unused)
{
    (void)unused;
    tile_object *tile = (tile_object *)self;
    int64_t size = 1;
    for (int i = 0; i < tile->dims; i++)
        size *= tile->shape[i];
    return PyLong_FromLongLong(size);
}

static PyObject *dtype_name_get(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_InternFromString(fr_neuron_dtype_name(((tile_object *)self)->dtype));
}

static PyObject *dtype_get(PyObject *self, void *unused)
{
    PyObject *object = state.dtypes[((tile_object *)self)->dtype];
    if (!object)
        return dtype_name_get(self, unused);
    Py_INCREF(object);
    return object;
}

static PyObject *written_get(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((tile_object *)self)->storage->written);
}

/* A view that no register moves, as collectives need. */
static bool fixed_view(tile_object *tile, fr_neuron_view *view)
{
    if (!tile->index)
        return tile_view(tile, view);
    return core_usage("a collective", "takes no tensor with a dynamic offset");
}

static PyObject *filled_get(PyObject *self, void *unused)
{
    fr_neuron_view view;
    tile_object *tile = (tile_object *)self;
    (void)unused;
    if (!fixed_view(tile, &view))
        return NULL;
    return PyBool_FromLong(fr_neuron_written(tile->storage->owner->core, &view));
}

static PyObject *memory_get(PyObject *self, void *unused)
{
    (void)unused;
    static const char *const names[] = {"hbm", "sbuf", "psum", "register"};
    return PyUnicode_InternFromString(names[((tile_object *)self)->memory]);
}

static PyObject *buffer_get(PyObject *self, void *unused)
{
    PyObject *name = memory_get(self, unused);
    PyObject *object = name && state.buffers ? PyDict_GetItem(state.buffers, name) : NULL;
    if (!object)
        return name;
    Py_DECREF(name);
    Py_INCREF(object);
    return object;
}

static PyObject *partition_get(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((tile_object *)self)->partition);
}

static PyObject *name_get(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *name = ((tile_object *)self)->storage->name;
    Py_INCREF(name);
    return name;
}

static PyObject *storage_get(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *storage = (PyObject *)((tile_object *)self)->storage;
    Py_INCREF(storage);
    return storage;
}

static PyObject *base_shape_get(PyObject *self, void *unused)
{
    (void)unused;
    const fr_neuron_layout *layout = fr_neuron_tensor_layout(((tile_object *)self)->storage->tensor);
    PyObject *shape = PyTuple_New(layout->dims);
    for (int i = 0; shape && i < layout->dims; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(layout->shape[i]));
    return shape;
}

static PyObject *base_dtype_get(PyObject *self, void *unused)
{
    (void)unused;
    fr_neuron_tensor *tensor = ((tile_object *)self)->storage->tensor;
    return PyUnicode_InternFromString(fr_neuron_dtype_name(fr_neuron_tensor_layout(tensor)->dtype));
}

static PyGetSetDef tile_attributes[] = {
    {"shape", shape_get, NULL, "sizes, outermost first; on chip the first is the partitions", NULL},
    {"strides", strides_get, NULL, "in elements", NULL},
    {"offset", offset_get, NULL, "first element, counted from the tensor's start", NULL},
    {"partition", partition_get, NULL, "first partition, counted from the tensor's", NULL},
    {"ndim", ndim_get, NULL, NULL, NULL},
    {"size", size_get, NULL, "elements", NULL},
    {"dtype_name", dtype_name_get, NULL, NULL, NULL},
    {"dtype", dtype_get, NULL, NULL, NULL},
    {"buffer", buffer_get, NULL, "the memory, as nl.sbuf, nl.psum or nl.hbm", NULL},
    {"written", written_get, NULL, "an instruction wrote the tensor", NULL},
    {"filled", filled_get, NULL, "everything the view shows was written, by whomever", NULL},
    {"memory", memory_get, NULL, "hbm, sbuf or psum", NULL},
    {"name", name_get, NULL, NULL, NULL},
    {"storage", storage_get, NULL, "the same object for all views of one tensor", NULL},
    {"base_shape", base_shape_get, NULL, "of the whole tensor", NULL},
    {"base_dtype_name", base_dtype_get, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static Py_ssize_t tile_length(PyObject *self)
{
    return (Py_ssize_t)((tile_object *)self)->shape[0];
}

/* Whole tensors only: a view is read on the host by picking from them. */
static PyObject *tile_transfer(PyObject *self, PyObject *array, bool write)
{
    Py_buffer buffer;
    fr_error error = {0};
    tile_object *tile = (tile_object *)self;
    if (PyObject_GetBuffer(array, &buffer, write ? PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) <
        0)
        return NULL;
    fr_status status =
        write ? fr_neuron_tensor_write(tile->storage->tensor, buffer.buf, (size_t)buffer.len, &error)
              : fr_neuron_tensor_read(tile->storage->tensor, buffer.buf, (size_t)buffer.len, &error);
    PyBuffer_Release(&buffer);
    if (status != FR_OK)
        return core_raise(status, &error);
    Py_RETURN_NONE;
}

static PyObject *tile_write(PyObject *self, PyObject *array)
{
    return tile_transfer(self, array, true);
}

static PyObject *tile_read(PyObject *self, PyObject *array)
{
    return tile_transfer(self, array, false);
}

static PyObject *tile_receive(PyObject *self, PyObject *array)
{
    Py_buffer buffer;
    fr_error error = {0};
    fr_neuron_view view;
    tile_object *tile = (tile_object *)self;
    if (!fixed_view(tile, &view) || PyObject_GetBuffer(array, &buffer, PyBUF_C_CONTIGUOUS) < 0)
        return NULL;
    fr_status status =
        fr_neuron_receive(tile->storage->owner->core, &view, buffer.buf, (size_t)buffer.len, &error);
    PyBuffer_Release(&buffer);
    if (status != FR_OK)
        return core_raise(status, &error);
    tile->storage->written = true;
    Py_RETURN_NONE;
}

static PyMethodDef tile_methods[] = {
    {"write_tensor", tile_write, METH_O, "write_tensor(buffer): the whole tensor from a C-contiguous buffer"},
    {"read_tensor", tile_read, METH_O, "read_tensor(buffer): the whole tensor into a C-contiguous buffer"},
    {"receive", tile_receive, METH_O,
     "receive(buffer): the whole tensor's contents, of which the view's are new, as from another rank"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tile_slots[] = {
    {Py_tp_dealloc, tile_dealloc},
    {Py_tp_getset, tile_attributes},
    {Py_tp_methods, tile_view_methods},
    {Py_mp_subscript, tile_subscript},
    {Py_mp_length, tile_length},
    {Py_tp_doc, "A view of a tensor: shape, dtype, slicing, .ap(...)."},
    {0, NULL},
};
static PyType_Spec tile_spec = {"frontier_nki._core.Tile", sizeof(tile_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, tile_slots};

PyTypeObject *make_tile_type(PyObject *module)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&tile_spec);
    for (PyMethodDef *method = tile_methods; type && method->ml_name; method++) {
        PyObject *descriptor = PyDescr_NewMethod(type, method);
        if (!descriptor || PyObject_SetAttrString((PyObject *)type, method->ml_name, descriptor) < 0)
            return NULL;
        Py_DECREF(descriptor);
    }
    (void)module;
    return type;
}
