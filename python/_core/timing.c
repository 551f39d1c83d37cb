/* python/_core/timing.c: the clock's answer as Python data.
 *
 * core.time() is fr_neuron_timing field by field; engines and stalls become dicts by name. core.lines()
 * replays once more with an event callback and sums busy and stalled nanoseconds by the kernel's source
 * line.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static const char *const stall_names[FR_NEURON_STALLS] = {
    [FR_NEURON_STALL_NONE] = "none",
    [FR_NEURON_STALL_DATA] = "data",
    [FR_NEURON_STALL_REUSE] = "buffer reuse",
    [FR_NEURON_STALL_DMA] = "DMA",
    [FR_NEURON_STALL_BANK] = "PSUM bank or port",
    [FR_NEURON_STALL_TABLE] = "activation table",
    [FR_NEURON_STALL_THROTTLE] = "PE warm-up",
    [FR_NEURON_STALL_QUEUE] = "DMA queue or HBM",
};

static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool ok = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return ok;
}

static bool put_number(PyObject *dict, const char *key, double value)
{
    return put(dict, key, PyFloat_FromDouble(value));
}

static PyObject *engine_dict(const double *values)
{
    PyObject *dict = PyDict_New();
    for (int e = FR_NEURON_TENSOR; dict && e < FR_NEURON_ENGINES; e++)
        if (!put_number(dict, fr_neuron_engine_name((fr_neuron_engine)e), values[e]))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *stall_dict(const fr_neuron_timing *timing)
{
    PyObject *dict = PyDict_New();
    for (int e = FR_NEURON_TENSOR; dict && e < FR_NEURON_ENGINES; e++) {
        PyObject *row = PyDict_New();
        for (int s = 1; row && s < FR_NEURON_STALLS; s++)
            if (timing->stall_ns[e][s] > 0 && !put_number(row, stall_names[s], timing->stall_ns[e][s]))
                Py_CLEAR(row);
        if (!put(dict, fr_neuron_engine_name((fr_neuron_engine)e), row))
            Py_CLEAR(dict);
    }
    return dict;
}

/* How far the truth may be off, and the published kernel most alike. */
static PyObject *band_dict(const fr_neuron_machine *machine, const fr_neuron_timing *timing)
{
    fr_neuron_band band = fr_neuron_band_of(machine, timing);
    return Py_BuildValue("{s:d,s:d,s:s,s:d,s:d}", "low_ns", band.low_ns, "high_ns", band.high_ns, "nearest",
                         band.nearest, "nearest_ratio", band.nearest_ratio, "distance", band.distance);
}

PyObject *core_segment(PyObject *self, PyObject *first)
{
    fr_neuron_timing t;
    fr_error error = {0};
    const fr_neuron *core = ((core_object *)self)->core;
    long long from = PyLong_AsLongLong(first), records = (long long)fr_neuron_record_count(core);
    if (from == -1 && PyErr_Occurred())
        return NULL;
    if (from == records)
        return Py_BuildValue("ddL", 0.0, 0.0, records);
    fr_status status = fr_neuron_time_since(core, from, &t, &error);
    if (status != FR_OK)
        return core_raise(status, &error);
    return Py_BuildValue("ddL", t.predicted_ns, t.program_order_ns, records);
}

PyObject *core_time(PyObject *self, PyObject *unused)
{
    (void)unused;
    fr_neuron_timing t;
    fr_error error = {0};
    fr_status status = fr_neuron_time(((core_object *)self)->core, &t, NULL, &error);
    if (status != FR_OK)
        return core_raise(status, &error);
    PyObject *dict = Py_BuildValue(
        "{s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:L,s:L,s:d,s:L,s:L,s:L}", "predicted_ns", t.predicted_ns,
        "lower_bound_ns", t.lower_bound_ns, "program_order_ns", t.program_order_ns, "launch_ns", t.launch_ns,
        "flops", t.flops, "hbm_read_bytes", t.hbm_read_bytes, "hbm_write_bytes", t.hbm_write_bytes,
        "dma_bytes", t.dma_bytes, "dma_descriptors", t.dma_descriptors, "sbuf_peak_bytes",
        (long long)t.sbuf_peak_bytes, "psum_peak_banks", (long long)t.psum_peak_banks, "spill_bytes",
        t.spill_bytes, "instructions", (long long)t.instructions, "guessed", (long long)t.guessed,
        "removed", (long long)t.removed);
    if (dict && (!put(dict, "busy_ns", engine_dict(t.busy_ns)) || !put(dict, "stall_ns", stall_dict(&t)) ||
                 !put(dict, "band", band_dict(&((core_object *)self)->machine, &t))))
        Py_CLEAR(dict);
    return dict;
}

/* ---- by source line ---- */

typedef struct line_cost {
    double busy, stall;
    int64_t count;
    fr_neuron_stall worst;
    double worst_ns;
} line_cost;

typedef struct line_table {
    line_cost *lines;
    uint32_t count;
    bool failed;
} line_table;

static void add_event(void *user, const fr_neuron_event *event, const fr_neuron_record *record)
{
    line_table *table = user;
    if (record->source >= table->count) {
        uint32_t more = record->source * 2 + 64;
        line_cost *grown = realloc(table->lines, more * sizeof *grown);
        if (!grown) {
            table->failed = true;
            return;
        }
        memset(grown + table->count, 0, (more - table->count) * sizeof *grown);
        table->lines = grown;
        table->count = more;
    }
    line_cost *line = &table->lines[record->source];
    double stalled = event->start_ns > event->ready_ns ? event->start_ns - event->ready_ns : 0;
    line->busy += event->end_ns - event->start_ns;
    line->stall += stalled;
    line->count++;
    if (stalled > line->worst_ns) {
        line->worst_ns = stalled;
        line->worst = event->stall;
    }
}

static PyObject *line_list(const fr_neuron *core, const line_table *table)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < table->count; i++) {
        const line_cost *line = &table->lines[i];
        if (!line->count)
            continue;
        int number = 0;
        const char *file = fr_neuron_source_file(core, i, &number);
        PyObject *item = Py_BuildValue("(siddLs)", file ? file : "?", number, line->busy, line->stall,
                                       (long long)line->count, stall_names[line->worst]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *core_lines(PyObject *self, PyObject *unused)
{
    (void)unused;
    fr_neuron_timing timing;
    fr_error error = {0};
    line_table table = {0};
    fr_neuron *core = ((core_object *)self)->core;
    fr_status status =
        fr_neuron_time(core, &timing, &(fr_neuron_time_options){.event = add_event, .user = &table}, &error);
    PyObject *list = status != FR_OK ? core_raise(status, &error)
                     : table.failed  ? PyErr_NoMemory()
                                     : line_list(core, &table);
    free(table.lines);
    return list;
}
