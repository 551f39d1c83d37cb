/* python/_core/source.c: which line of the kernel is running.
 *
 * Every instruction's record names its source line. The line is that of the innermost Python frame that is
 * not part of this package. Asking Python costs more than the rest of a call when done naively, so the
 * answer for a code object - ours or a kernel's, and its file name - is remembered in a small table; the
 * code objects in it are kept alive.
 */
#include "core.h"

#include <stdio.h>
#include <string.h>

typedef struct known_code {
    PyObject *code;
    bool ours;
    char file[512];
} known_code;

enum { KNOWN = 256 };
static known_code known[KNOWN];

static const known_code *know(PyObject *code)
{
    known_code *entry = &known[((uintptr_t)code >> 5) % KNOWN];
    if (entry->code == code)
        return entry;
    PyObject *file = PyObject_GetAttrString(code, "co_filename");
    const char *text = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    if (!text) {
        PyErr_Clear();
        text = "?";
    }
    Py_XDECREF(entry->code);
    Py_INCREF(code);
    entry->code = code;
    snprintf(entry->file, sizeof entry->file, "%s", text);
    const char *package = state.package ? PyUnicode_AsUTF8AndSize(state.package, NULL) : NULL;
    entry->ours = package && strncmp(text, package, strlen(package)) == 0;
    Py_XDECREF(file);
    return entry;
}

/* The kernel's frame as a new reference, with what is known of its code. */
static PyFrameObject *kernel_frame(const known_code **out)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF((PyObject *)frame);
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        *out = know((PyObject *)code);
        Py_DECREF((PyObject *)code);
        if (!(*out)->ours)
            return frame;
        PyObject *back = PyObject_GetAttrString((PyObject *)frame, "f_back");
        Py_DECREF((PyObject *)frame);
        if (!back || back == Py_None) {
            PyErr_Clear();
            Py_XDECREF(back);
            return NULL;
        }
        frame = (PyFrameObject *)back;
    }
    return NULL;
}

void core_locate(fr_neuron *core)
{
    const known_code *code;
    if (state.override) {
        PyObject *file = PyTuple_GetItem(state.override, 0), *line = PyTuple_GetItem(state.override, 1);
        const char *text = file ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
        fr_neuron_at(core, text ? text : "?", line ? (int)PyLong_AsLong(line) : 0);
        return;
    }
    PyFrameObject *frame = kernel_frame(&code);
    if (!frame)
        return;
    fr_neuron_at(core, code->file, PyFrame_GetLineNumber(frame));
    Py_DECREF((PyObject *)frame);
}

PyObject *core_here(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const known_code *code;
    PyFrameObject *frame = kernel_frame(&code);
    if (!frame)
        return Py_BuildValue("(si)", "?", 0);
    PyObject *answer = Py_BuildValue("(si)", code->file, PyFrame_GetLineNumber(frame));
    Py_DECREF((PyObject *)frame);
    return answer;
}
