/* python/_core/arguments.c: one Python argument as the kind its descriptor declares.
 *
 * This is the whole of what the extension knows about instructions: a parser per fr_neuron_kind, chosen from
 * a table. Lists live in the call's scratch space; tiles that stand for others (deferred values of the older
 * style) are held until the call is over.
 */
#include "core.h"

#include <string.h>

typedef struct parsing {
    const fr_neuron_parameter *parameter;
    PyObject *value;
    fr_neuron_argument *out;
    call_scratch *scratch;
    const char *instruction;
} parsing;

static bool wrong(const parsing *p, const char *wanted)
{
    PyErr_Clear();
    PyObject *text = PyObject_Repr(p->value);
    const char *shown = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    core_usage(p->instruction, "%s takes %s, not %.200s", p->parameter->name, wanted, shown ? shown : "this");
    Py_XDECREF(text);
    return false;
}

/* Tiles live as long as Python holds them; a launch computes with its own. */
static bool of_this_launch(const parsing *p, storage_object *storage)
{
    if (storage->owner == state.current) {
        p->scratch->core = storage->owner;
        return true;
    }
    if (!state.current)
        return core_usage(p->instruction, "instructions run inside a kernel (a function with @nki.jit)");
    return core_usage(p->instruction, "%s is a tensor of another launch: pass arrays between kernels",
                      p->parameter->name);
}

static bool hold_view(const parsing *p, PyObject *value, fr_neuron_view *view)
{
    call_scratch *scratch = p->scratch;
    char where[160];
    if (scratch->held_count >= (int)(sizeof scratch->held / sizeof *scratch->held))
        return core_usage(p->instruction, "too many tensors");
    if (PyObject_TypeCheck(value, state.reg)) {
        storage_object *storage = ((register_object *)value)->storage;
        *view = fr_neuron_view_of(storage->tensor);
        return of_this_launch(p, storage);
    }
    tile_object *tile;
    if (tile_is(value) && ((tile_object *)value)->storage) {
        tile = (tile_object *)value;
        Py_INCREF(value);
    } else {
        snprintf(where, sizeof where, "%s: %s", p->instruction, p->parameter->name);
        tile = tile_from(value, where);
    }
    if (!tile)
        return false;
    scratch->held[scratch->held_count++] = tile;
    return of_this_launch(p, tile->storage) && tile_view(tile, view);
}

static bool parse_view(parsing *p)
{
    p->out->is_view = true;
    if (!hold_view(p, p->value, &p->out->view))
        return false;
    if (p->parameter->kind != FR_NEURON_READ && p->scratch->held_count > 0 && tile_is(p->value))
        ((tile_object *)p->value)->storage->written = true;
    return true;
}

static bool parse_views(parsing *p)
{
    enum { MOST = 16 };
    Py_ssize_t count = PySequence_Size(p->value);
    if (count < 0 || count > MOST)
        return wrong(p, "a list of at most 16 tensors");
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(p->value, i);
        bool ok = item && hold_view(p, item, &p->scratch->views[i]);
        Py_XDECREF(item);
        if (!ok)
            return false;
    }
    p->out->views = p->scratch->views;
    p->out->count = (int)count;
    return true;
}

static bool parse_number(parsing *p)
{
    p->out->number = PyFloat_AsDouble(p->value);
    return !(p->out->number == -1.0 && PyErr_Occurred()) || wrong(p, "a number");
}

static bool parse_view_or_number(parsing *p)
{
    if (PyFloat_Check(p->value) || PyLong_Check(p->value))
        return parse_number(p);
    if (tile_is(p->value) || PyObject_TypeCheck(p->value, state.reg) ||
        PyObject_HasAttrString(p->value, "__nki_tile__"))
        return parse_view(p);
    return parse_number(p) || wrong(p, "a tensor, a register or a number");
}

static bool parse_integer(parsing *p)
{
    PyObject *integer = PyNumber_Index(p->value);
    if (!integer) {
        PyErr_Clear();
        integer = PyObject_GetAttr(p->value, state.code_method);
    }
    p->out->number = integer ? (double)PyLong_AsLongLong(integer) : 0;
    Py_XDECREF(integer);
    return !PyErr_Occurred() || wrong(p, "an integer");
}

static bool parse_flag(parsing *p)
{
    int truth = PyObject_IsTrue(p->value);
    p->out->number = truth;
    return truth >= 0;
}

static bool list_item(PyObject *item, double *out)
{
    *out = item ? PyFloat_AsDouble(item) : 0;
    return !(item == NULL || PyErr_Occurred());
}

/* Numbers of a sequence into scratch; a lone number counts as a list of one. */
static bool parse_list(parsing *p)
{
    call_scratch *scratch = p->scratch;
    if (scratch->lists_used == (int)(sizeof scratch->lists / sizeof *scratch->lists))
        return core_usage(p->instruction, "too many lists");
    double *list = scratch->lists[scratch->lists_used++];
    Py_ssize_t count = 1;
    if (PySequence_Check(p->value)) {
        count = PySequence_Size(p->value);
        if (count < 0 || count > 2 * FR_NEURON_LIST)
            return wrong(p, "a short list of numbers");
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *item = PySequence_GetItem(p->value, i);
            bool ok = list_item(item, &list[i]);
            Py_XDECREF(item);
            if (!ok)
                return wrong(p, "a list of numbers");
        }
    } else if (!list_item(p->value, &list[0])) {
        return wrong(p, "a list of numbers");
    }
    p->out->numbers = list;
    p->out->count = (int)count;
    p->out->given = count > 0; /* an empty tuple is the documented way to leave a list out */
    return true;
}

static bool parse_pattern(parsing *p)
{
    call_scratch *scratch = p->scratch;
    if (scratch->lists_used == (int)(sizeof scratch->lists / sizeof *scratch->lists))
        return core_usage(p->instruction, "too many lists");
    double *list = scratch->lists[scratch->lists_used++];
    Py_ssize_t count = PySequence_Size(p->value);
    if (count < 0 || count > FR_NEURON_LIST / 2)
        return wrong(p, "a list of [step, count] pairs");
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PySequence_GetItem(p->value, i);
        bool ok = pair && PySequence_Check(pair) && PySequence_Size(pair) == 2;
        for (int j = 0; ok && j < 2; j++) {
            PyObject *item = PySequence_GetItem(pair, j);
            ok = list_item(item, &list[2 * i + j]);
            Py_XDECREF(item);
        }
        Py_XDECREF(pair);
        if (!ok)
            return wrong(p, "a list of [step, count] pairs");
    }
    p->out->numbers = list;
    p->out->count = 2 * (int)count;
    return true;
}

/* The name of an operator or function given as something else: numpy's ufuncs, a word. */
static bool name_of(parsing *p, char *out, size_t size)
{
    PyObject *name = PyUnicode_Check(p->value) ? NULL : PyObject_GetAttrString(p->value, "__name__");
    const char *text = PyUnicode_AsUTF8AndSize(name ? name : p->value, NULL);
    if (text)
        snprintf(out, size, "%s", text);
    PyErr_Clear();
    Py_XDECREF(name);
    return text != NULL;
}

static bool parse_operator(parsing *p)
{
    char name[80];
    fr_neuron_operator op = FR_NEURON_NO_OPERATOR;
    if (PyObject_TypeCheck(p->value, state.op))
        op = ((operator_object *)p->value)->op;
    else if (name_of(p, name, sizeof name))
        op = fr_neuron_operator_named(name);
    p->out->number = op;
    return op || wrong(p, "an ALU operator (nl.add, nl.maximum, ...)");
}

static bool parse_function(parsing *p)
{
    char name[80];
    fr_neuron_function function = FR_NEURON_NO_FUNCTION;
    if (PyObject_TypeCheck(p->value, state.op))
        function = ((operator_object *)p->value)->activation;
    else if (name_of(p, name, sizeof name))
        function = fr_neuron_function_named(name);
    p->out->number = function;
    return function || wrong(p, "an activation function (nl.exp, nl.copy, ...)");
}

/* Enumerations of the Python layer carry the core's number in `nki_code`. */
static bool parse_code(parsing *p)
{
    PyObject *code = PyObject_GetAttr(p->value, state.code_method);
    if (!code)
        return wrong(p, "a value of the matching nisa enumeration");
    p->out->number = (double)PyLong_AsLong(code);
    Py_DECREF(code);
    return true;
}

static int choices_of(const fr_neuron_parameter *parameter)
{
    int count = parameter->choices && *parameter->choices;
    for (const char *c = parameter->choices; c && *c; c++)
        count += *c == ' ';
    return count;
}

static bool parse_choice(parsing *p)
{
    char word[80];
    if (PyLong_Check(p->value) && !PyBool_Check(p->value)) { /* AWS's number of the choice */
        long number = PyLong_AsLong(p->value);
        PyErr_Clear();
        if (number >= 0 && number < choices_of(p->parameter)) {
            p->out->number = (double)number;
            return true;
        }
    }
    PyObject *name = PyUnicode_Check(p->value) ? NULL : PyObject_GetAttr(p->value, state.name_method);
    const char *text = PyUnicode_AsUTF8AndSize(name ? name : p->value, NULL);
    snprintf(word, sizeof word, "%s", text ? text : "");
    PyErr_Clear();
    Py_XDECREF(name);
    int position = 0;
    for (const char *choice = p->parameter->choices; choice && *choice; position++) {
        size_t length = strcspn(choice, " ");
        if (strlen(word) == length && strncmp(choice, word, length) == 0) {
            p->out->number = position;
            return true;
        }
        choice += length + strspn(choice + length, " ");
    }
    char wanted[300];
    snprintf(wanted, sizeof wanted, "one of: %s", p->parameter->choices ? p->parameter->choices : "");
    return wrong(p, wanted);
}

static bool (*const parsers[])(parsing *p) = {
    [FR_NEURON_READ] = parse_view,
    [FR_NEURON_WRITE] = parse_view,
    [FR_NEURON_UPDATE] = parse_view,
    [FR_NEURON_READ_LIST] = parse_views,
    [FR_NEURON_READ_OR_NUMBER] = parse_view_or_number,
    [FR_NEURON_NUMBER] = parse_number,
    [FR_NEURON_NUMBER_LIST] = parse_list,
    [FR_NEURON_INTEGER] = parse_integer,
    [FR_NEURON_INTEGER_LIST] = parse_list,
    [FR_NEURON_FLAG] = parse_flag,
    [FR_NEURON_OPERATOR] = parse_operator,
    [FR_NEURON_FUNCTION] = parse_function,
    [FR_NEURON_ENGINE] = parse_code,
    [FR_NEURON_REDUCE_COMMAND] = parse_code,
    [FR_NEURON_CHOICE] = parse_choice,
    [FR_NEURON_PATTERN] = parse_pattern,
};

bool argument_parse(const fr_neuron_parameter *parameter, PyObject *value, fr_neuron_argument *out,
                    call_scratch *scratch, const char *instruction)
{
    if (value == Py_None) /* left out: the default stays */
        return true;
    out->given = true;
    parsing p = {parameter, value, out, scratch, instruction};
    return parsers[parameter->kind](&p);
}
