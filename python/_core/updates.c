/* python/_core/updates.c: the trainer's optimizer steps, norms and loss, called from Python.
 *
 * They are functions of include/frontier/train.h, cpu.h and graph.h over flat vectors that change in place;
 * frontier_nki/reference.py gives them copies. Orthogonalisation alone is a Muon step of a weight of zeros with
 * everything around it switched off: no momentum, no decay, a rate of 1 and a second moment that stays 1, which
 * leaves minus the orthogonal factor, to the bit.
 */
#include "core.h"

#include "frontier/cpu.h"
#include "frontier/graph.h"
#include "frontier/train.h"

enum { MOST = 4 };

typedef struct vectors {
    Py_buffer buffers[MOST];
    int held;
    int64_t count[MOST]; /* numbers in each */
} vectors;

static void release(vectors *v)
{
    while (v->held > 0)
        PyBuffer_Release(&v->buffers[--v->held]);
}

/* Writable memory of an array of so many numbers (-1: any) of so many bytes, or NULL with a Python error. */
static void *hold_wide(vectors *v, PyObject *array, const char *name, int64_t count, int bytes)
{
    Py_buffer *buffer = &v->buffers[v->held];
    if (PyObject_GetBuffer(array, buffer, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0)
        return NULL;
    int64_t found = buffer->len / bytes;
    v->count[v->held++] = found;
    if (buffer->len == found * bytes && (count < 0 || found == count))
        return buffer->buf;
    core_usage(name, "%lld bytes, not %lld numbers of %d", (long long)buffer->len, (long long)count, bytes);
    return NULL;
}

static float *hold(vectors *v, PyObject *array, const char *name, int64_t count)
{
    return hold_wide(v, array, name, count, (int)sizeof(float));
}

/* adamw(weight, gradient, first, second, lr, decay, beta1, beta2, eps, step): in place */
PyObject *update_adamw(PyObject *module, PyObject *args)
{
    PyObject *arrays[4];
    long long step;
    fr_adamw_options o = {0};
    vectors v = {.held = 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOdddddL:adamw", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &o.lr,
                          &o.decay, &o.beta1, &o.beta2, &o.eps, &step))
        return NULL;
    o.step = step;
    if (step < 1) {
        core_usage("step", "%lld: steps count from 1", step);
        return NULL;
    }
    float *weight = hold(&v, arrays[0], "weight", -1);
    int64_t count = v.count[0];
    float *gradient = weight ? hold(&v, arrays[1], "gradient", count) : NULL;
    float *first = gradient ? hold(&v, arrays[2], "first moment", count) : NULL;
    float *second = first ? hold(&v, arrays[3], "second moment", count) : NULL;
    if (second)
        fr_adamw_update(weight, gradient, first, second, count, &o);
    release(&v);
    return second ? Py_BuildValue("") : NULL;
}

static bool muon_shape(long long rows, long long columns)
{
    const long long most = 1 << 24;
    return (rows > 0 && columns > 0 && rows <= most && columns <= most) ||
           core_usage("muon", "a matrix of %lld x %lld", rows, columns);
}

static PyObject *run_muon(float *const data[4], int64_t rows, int64_t columns, const fr_muon_options *options)
{
    void *scratch = fr_allocate(fr_muon_scratch_bytes(rows, columns));
    if (!scratch)
        return PyErr_NoMemory();
    PyThreadState *others = PyEval_SaveThread();
    fr_muon_update(data[0], data[1], data[2], data[3], rows, columns, options, scratch);
    PyEval_RestoreThread(others);
    fr_deallocate(scratch);
    return Py_BuildValue("");
}

/* muon(weight, gradient, momentum buffer, second moment, rows, columns, lr, decay, momentum, beta2, equalize, plus,
 * bf16): in place */
PyObject *update_muon(PyObject *module, PyObject *args)
{
    static const char *const names[4] = {"weight", "gradient", "momentum buffer", "second moment"};
    PyObject *arrays[4], *answer = NULL;
    long long rows, columns;
    int equalize, plus, bf16, i = 0;
    fr_muon_options o = {0};
    float *data[4];
    vectors v = {.held = 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOLLddddppp:muon", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &rows,
                          &columns, &o.lr, &o.decay, &o.momentum, &o.beta2, &equalize, &plus, &bf16) ||
        !muon_shape(rows, columns))
        return NULL;
    o.equalize = equalize;
    o.plus = plus;
    o.bf16 = bf16;
    for (; i < 4; i++) {
        data[i] = hold(&v, arrays[i], names[i], i < 3 ? rows * columns : rows >= columns ? rows : columns);
        if (!data[i])
            break;
    }
    if (i == 4)
        answer = run_muon(data, rows, columns, &o);
    release(&v);
    return answer;
}

/* sum_squares(values): of a flat float32 vector, in double */
PyObject *update_sum_squares(PyObject *module, PyObject *array)
{
    vectors v = {.held = 0};
    (void)module;
    const float *values = hold(&v, array, "values", -1);
    double sum = values ? fr_vector_sum_squares(values, v.count[0], NULL) : 0;
    release(&v);
    return values ? PyFloat_FromDouble(sum) : NULL;
}

static bool targets_fit(const int32_t *targets, int64_t count, int64_t vocab)
{
    for (int64_t t = 0; t < count; t++)
        if (targets[t] < -1 || targets[t] >= vocab)
            return core_usage("targets", "%d at %lld is not from -1 to %lld", targets[t], (long long)t,
                              (long long)vocab - 1);
    return true;
}

/* cross_entropy(logits float64, targets int32, vocab, softcap): nats of every row as a list; the logits become
 * d nats / d logits */
PyObject *update_cross_entropy(PyObject *module, PyObject *args)
{
    PyObject *arrays[2], *answer = NULL;
    long long vocab;
    double softcap;
    vectors v = {.held = 0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOLd:cross_entropy", &arrays[0], &arrays[1], &vocab, &softcap))
        return NULL;
    int32_t *targets = hold_wide(&v, arrays[1], "targets", -1, (int)sizeof(int32_t));
    int64_t rows = targets ? v.count[0] : 0;
    bool fits = targets && vocab > 0 && vocab < INT32_MAX && targets_fit(targets, rows, vocab);
    double *logits = fits ? hold_wide(&v, arrays[0], "logits", rows * vocab, (int)sizeof(double)) : NULL;
    answer = logits ? PyList_New(0) : NULL;
    for (int64_t t = 0; answer && t < rows; t++) {
        double *row = logits + t * vocab;
        for (int64_t i = 0; i < vocab; i++)
            row[i] = fr_softcap(row[i], softcap);
        PyObject *nats = PyFloat_FromDouble(fr_cross_entropy_row(row, vocab, targets[t], softcap, 1));
        if (!nats || PyList_Append(answer, nats) < 0)
            Py_CLEAR(answer);
        Py_XDECREF(nats);
    }
    release(&v);
    if (!answer && !PyErr_Occurred())
        core_usage("logits", "%lld columns", vocab);
    return answer;
}
