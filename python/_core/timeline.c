/* python/_core/timeline.c: how busy each engine is over the time of a kernel, in a row of equal pieces.
 *
 * The page and the trace show every instruction; a terminal has some seventy columns. core.timeline(columns)
 * replays the records and spreads the busy time of each over the pieces it touches. A transfer occupies its
 * DMA engines by an amount that the event does not tell, so transfers are spread by what they carry, bytes and
 * descriptors, and scaled until the whole row is the busy time that the clock reports for the DMA engines.
 * Starting a transfer is not drawn: Sync, which does nothing else, has no row.
 */
#include "core.h"

#include <stdlib.h>

enum { MOST_COLUMNS = 4096 };

typedef struct timeline {
    double *busy; /* [engine][column], in ns */
    int columns;
    double column_ns;
    double descriptor_bytes; /* what a descriptor costs, as bytes */
    int cores;
} timeline;

/* The part of [start, end) that falls into each column, times `weight`. */
static void spread(timeline *t, int engine, double start, double end, double weight)
{
    double *row = t->busy + engine * t->columns;
    int column = (int)(start / t->column_ns);
    for (; column < t->columns && column * t->column_ns < end; column++) {
        double from = column * t->column_ns, to = from + t->column_ns;
        double part = (end < to ? end : to) - (start > from ? start : from);
        row[column] += part > 0 ? part * weight : 0;
    }
}

static void add_event(void *user, const fr_neuron_event *event, const fr_neuron_record *record)
{
    timeline *t = user;
    if (event->engine != FR_NEURON_DMA) {
        spread(t, event->engine, event->start_ns, event->end_ns, 1.0 / t->cores);
        return;
    }
    double time = event->end_ns - event->transfer_ns;
    if (time > 0)
        spread(t, FR_NEURON_DMA, event->transfer_ns, event->end_ns,
               ((double)record->bytes + (double)record->descriptors * t->descriptor_bytes) / time);
}

static void scale_transfers(timeline *t, double busy_ns)
{
    double *row = t->busy + FR_NEURON_DMA * t->columns, sum = 0;
    for (int i = 0; i < t->columns; i++)
        sum += row[i];
    for (int i = 0; i < t->columns && sum > 0; i++)
        row[i] *= busy_ns / sum;
}

/* Shares of one engine's columns; no time is no share. */
static PyObject *row_list(const timeline *t, int engine)
{
    PyObject *list = PyList_New(t->columns);
    for (int i = 0; list && i < t->columns; i++) {
        double share = t->column_ns > 0 ? t->busy[engine * t->columns + i] / t->column_ns : 0;
        PyObject *value = PyFloat_FromDouble(share > 1 ? 1 : share);
        if (!value || PyList_SetItem(list, i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *as_dict(const timeline *t)
{
    PyObject *dict = PyDict_New();
    for (int e = FR_NEURON_TENSOR; dict && e < FR_NEURON_ENGINES; e++) {
        if (e == FR_NEURON_SYNC)
            continue;
        PyObject *row = row_list(t, e);
        if (!row || PyDict_SetItemString(dict, fr_neuron_engine_name((fr_neuron_engine)e), row) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(row);
    }
    return dict;
}

static PyObject *replay(core_object *self, timeline *t)
{
    fr_neuron_timing timing;
    fr_error error = {0};
    fr_status status = fr_neuron_time(self->core, &timing, NULL, &error);
    if (status == FR_OK) {
        t->column_ns = timing.predicted_ns / t->columns;
        t->descriptor_bytes = self->machine.dma_descriptor_ns * self->machine.dma_bytes_per_ns;
        fr_neuron_time_options options = {.event = add_event, .user = t};
        status = t->column_ns > 0 ? fr_neuron_time(self->core, &timing, &options, &error) : FR_OK;
    }
    if (status != FR_OK)
        return core_raise(status, &error);
    scale_transfers(t, timing.busy_ns[FR_NEURON_DMA]);
    return as_dict(t);
}

PyObject *core_timeline(PyObject *self, PyObject *columns)
{
    long count = PyLong_AsLong(columns);
    if (PyErr_Occurred())
        return NULL;
    if (count < 1 || count > MOST_COLUMNS)
        return PyErr_Format(PyExc_ValueError, "1 to %d columns", MOST_COLUMNS);
    timeline t = {.columns = (int)count, .cores = ((core_object *)self)->cores};
    t.busy = calloc((size_t)count * FR_NEURON_ENGINES, sizeof *t.busy);
    if (!t.busy)
        return PyErr_NoMemory();
    PyObject *dict = replay((core_object *)self, &t);
    free(t.busy);
    return dict;
}
