/* python/_core/core_type.c: Core, one simulated NeuronCore (or two that share an HBM stack).
 *
 * A kernel launch makes a Core, puts its arrays into HBM tensors, makes it the current one, runs the
 * kernel's Python, reads the outputs and asks for the time. Instructions find their core through their
 * tiles.
 */
#include "core.h"

#include "frontier/report.h"

#include <string.h>

static PyObject *core_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"machine", "cores", NULL};
    const char *path;
    int cores = 1;
    fr_error error = {0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|i:Core", names, &path, &cores))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    core_object *self = (core_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->cores = cores;
    fr_status status = fr_neuron_machine_load(&self->machine, path, &error);
    if (status == FR_OK)
        status = fr_neuron_create(&self->core, &self->machine, cores, &error);
    if (status == FR_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return core_raise(status, &error);
}

static void core_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    fr_neuron_free(((core_object *)self)->core);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static fr_neuron_memory memory_named(const char *name)
{
    return strcmp(name, "sbuf") == 0   ? FR_NEURON_SBUF
           : strcmp(name, "psum") == 0 ? FR_NEURON_PSUM
                                       : FR_NEURON_HBM;
}

static bool layout_shape(fr_neuron_layout *layout, PyObject *shape)
{
    Py_ssize_t dims = PySequence_Size(shape);
    if (dims < 1 || dims > FR_NEURON_RANK)
        return PyErr_Occurred()
                   ? false
                   : core_usage("ndarray", "%d dimensions; a tensor has 1 to %d", (int)dims, FR_NEURON_RANK);
    layout->dims = (int)dims;
    for (Py_ssize_t i = 0; i < dims; i++) {
        PyObject *item = PySequence_GetItem(shape, i), *integer = item ? PyNumber_Index(item) : NULL;
        layout->shape[i] = integer ? PyLong_AsLongLong(integer) : 0;
        Py_XDECREF(item);
        Py_XDECREF(integer);
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

/* tensor(memory, dtype, shape, name, address=None, shared=False, type=Tile) */
static PyObject *core_tensor(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"memory", "dtype", "shape", "name", "address", "shared", "type", NULL};
    const char *memory, *dtype;
    PyObject *shape, *name, *address = Py_None, *type = (PyObject *)state.tile;
    int shared = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "ssOO|OpO:tensor", names, &memory, &dtype, &shape, &name,
                                     &address, &shared, &type))
        return NULL;
    fr_neuron_layout layout = {.memory = memory_named(memory),
                               .dtype = fr_neuron_dtype_named(dtype),
                               .shared = shared != 0,
                               .name = PyUnicode_AsUTF8AndSize(name, NULL)};
    if (!layout.dtype) {
        core_usage("ndarray", "unknown dtype '%s'", dtype);
        return NULL;
    }
    if (!layout_shape(&layout, shape))
        return NULL;
    if (address != Py_None) {
        long long offset;
        int partition;
        if (!PyArg_ParseTuple(address, "iL;address is (partition, byte offset)", &partition, &offset))
            return NULL;
        layout.placed = true;
        layout.start_partition = partition;
        layout.byte_offset = offset;
    }
    return (PyObject *)tile_of_tensor((core_object *)self, layout, name, (PyTypeObject *)type);
}

static PyObject *core_activate(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    Py_XDECREF((PyObject *)state.current);
    state.current = (core_object *)self;
    Py_RETURN_NONE;
}

static PyObject *core_select(PyObject *self, PyObject *physical)
{
    int which = (int)PyLong_AsLong(physical);
    core_object *core = (core_object *)self;
    if (PyErr_Occurred())
        return NULL;
    if (which < 0 || which >= core->cores) {
        core_usage("select", "core %d of %d", which, core->cores);
        return NULL;
    }
    fr_neuron_select(core->core, which);
    Py_RETURN_NONE;
}

static PyObject *core_compute(PyObject *self, PyObject *on)
{
    int truth = PyObject_IsTrue(on);
    if (truth < 0)
        return NULL;
    fr_neuron_compute(((core_object *)self)->core, truth != 0);
    Py_RETURN_NONE;
}

static PyObject *core_trace(PyObject *self, PyObject *path)
{
    fr_error error = {0};
    const char *text = PyUnicode_AsUTF8AndSize(path, NULL);
    if (!text)
        return NULL;
    fr_status status = fr_neuron_write_trace(((core_object *)self)->core, text, &error);
    if (status != FR_OK)
        return core_raise(status, &error);
    Py_RETURN_NONE;
}

static PyObject *core_page(PyObject *self, PyObject *args)
{
    const char *title, *path;
    fr_error error = {0};
    if (!PyArg_ParseTuple(args, "ss:write_page", &title, &path))
        return NULL;
    fr_status status = fr_neuron_page_write(((core_object *)self)->core, title, path, &error);
    if (status != FR_OK)
        return core_raise(status, &error);
    Py_RETURN_NONE;
}

static PyObject *core_generation(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((core_object *)self)->machine.generation);
}

static PyObject *core_machine(PyObject *self, void *unused)
{
    (void)unused;
    const fr_neuron_machine *m = &((core_object *)self)->machine;
    return Py_BuildValue(
        "{s:s,s:i,s:L,s:L,s:L,s:L,s:d,s:d,s:d,s:i,s:d,s:d,s:s}", "name", m->name, "generation", m->generation,
        "sbuf_partition_bytes", (long long)m->sbuf_partition_bytes, "sbuf_usable_bytes",
        (long long)m->sbuf_usable_bytes, "psum_bank_bytes", (long long)m->psum_bank_bytes, "psum_banks",
        (long long)m->psum_banks, "hbm_stack_bytes_per_ns", m->hbm_stack_bytes_per_ns, "dma_bytes_per_ns",
        m->dma_bytes_per_ns, "dma_descriptor_ns", m->dma_descriptor_ns, "dma_engines", m->dma_engines,
        "tensor_ghz", m->clock_ghz[FR_NEURON_TENSOR], "tensor_passes_fp32", m->tensor_passes_fp32, "guesses",
        m->guesses);
}

static PyObject *core_count(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(fr_neuron_record_count(((core_object *)self)->core));
}

static PyGetSetDef core_attributes[] = {
    {"generation", core_generation, NULL, NULL, NULL},
    {"machine", core_machine, NULL, "geometry and clocks as a dict", NULL},
    {"records", core_count, NULL, "instructions recorded so far", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef core_methods[] = {
    {"tensor", (PyCFunction)(void (*)(void))core_tensor, METH_VARARGS | METH_KEYWORDS,
     "tensor(memory, dtype, shape, name, address=None, shared=False): a new tensor's Tile"},
    {"register", core_register, METH_VARARGS, "register(value=0)"},
    {"activate", core_activate, METH_NOARGS, "the core that instructions without tensors go to"},
    {"select", core_select, METH_O, "which physical core issues next"},
    {"compute", core_compute, METH_O, "compute(False): rules and time only"},
    {"time", core_time, METH_NOARGS, "replay the trace: a dict of fr_neuron_timing"},
    {"segment", core_segment, METH_O,
     "segment(first): (predicted ns, program-order ns, records) of the trace from a record on"},
    {"timeline", core_timeline, METH_O, "timeline(columns): busy share of each engine in equal pieces of the time"},
    {"lines", core_lines, METH_NOARGS, "[(file, line, busy ns, stall ns, instructions)], costly first"},
    {"write_page", core_page, METH_VARARGS, "write_page(title, path): the timeline as one HTML file"},
    {"write_trace", core_trace, METH_O, "write_trace(path): Chrome trace events"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot core_slots[] = {
    {Py_tp_new, core_new},
    {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, core_methods},
    {Py_tp_getset, core_attributes},
    {Py_tp_doc, "Core(machine file, cores=1)"},
    {0, NULL},
};
static PyType_Spec core_spec = {"frontier_nki._core.Core", sizeof(core_object), 0, Py_TPFLAGS_DEFAULT,
                                core_slots};
PyTypeObject *make_core_type(PyObject *module)
{
    (void)module;
    return (PyTypeObject *)PyType_FromSpec(&core_spec);
}
