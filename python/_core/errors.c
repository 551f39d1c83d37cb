/* python/_core/errors.c: fr_error as Python exceptions.
 *
 * RuleError: the kernel broke a rule of the machine. UsageError: a call that means nothing (an unknown
 * argument, a wrong kind of value). Both carry where, what, hint and status, the command's exit code; their text
 * is the first three together, so a kernel's traceback alone says the line, the instruction, the values and
 * the usual fix.
 */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void attach(PyObject *exception, const char *key, PyObject *value)
{
    if (value && PyObject_SetAttrString(exception, key, value) < 0)
        PyErr_Clear();
    Py_XDECREF(value);
}

static PyObject *as_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *core_raise(fr_status status, const fr_error *error)
{
    char text[1400];
    snprintf(text, sizeof text, "%s%s%s%s%s", error->where, error->where[0] ? ": " : "", error->what,
             error->hint[0] ? "\n  fix: " : "", error->hint);
    PyObject *type = status == FR_ANSWER_NO ? state.rule_error : state.usage_error;
    PyObject *exception = PyObject_CallFunction(type, "s", text);
    if (!exception)
        return NULL;
    attach(exception, "where", as_text(error->where));
    attach(exception, "what", as_text(error->what));
    attach(exception, "hint", as_text(error->hint));
    attach(exception, "status", PyLong_FromLong((long)status));
    PyErr_SetObject(type, exception);
    Py_DECREF(exception);
    return NULL;
}

bool core_usage(const char *where, const char *format, ...)
{
    char what[600], text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", where, what);
    PyErr_SetString(state.usage_error, text);
    return false;
}
