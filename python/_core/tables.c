/* python/_core/tables.c: the core's tables as Python data: instructions, rules, dtypes, operator names.
 *
 * The Python layer builds nki.isa and nki.language from these, the tests run every example in them.
 */
#include "core.h"

static PyObject *parameters_of(const fr_neuron_instruction *instruction)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < FR_NEURON_PARAMETERS && instruction->parameters[i].name; i++) {
        const fr_neuron_parameter *p = &instruction->parameters[i];
        PyObject *item =
            Py_BuildValue("{s:s,s:i,s:i,s:d,s:z,s:z}", "name", p->name, "kind", (int)p->kind, "required",
                          (int)p->required, "default", p->number, "choices", p->choices, "text", p->text);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *table_instructions(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int count;
    const fr_neuron_instruction *const *table = fr_neuron_instructions(&count);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        PyObject *item = Py_BuildValue("{s:s,s:z,s:i,s:N,s:z}", "name", table[i]->name, "summary",
                                       table[i]->summary, "least_generation", table[i]->least_generation,
                                       "parameters", parameters_of(table[i]), "example", table[i]->example);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *rules_of(const fr_neuron_rule *table, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        PyObject *item = Py_BuildValue("{s:s,s:z,s:z,s:z}", "name", table[i].name, "text", table[i].text,
                                       "fix", table[i].fix, "example", table[i].example);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *table_rules(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int count;
    const fr_neuron_rule *table = fr_neuron_rules(&count);
    return rules_of(table, count);
}

PyObject *table_language_rules(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int count;
    const fr_neuron_rule *table = fr_neuron_language_rules(&count);
    return rules_of(table, count);
}

PyObject *table_collective_rules(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    int count;
    const fr_neuron_rule *table = fr_neuron_collective_rules(&count);
    return rules_of(table, count);
}

PyObject *table_dtypes(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *dict = PyDict_New();
    for (int i = 1; dict && i < FR_NEURON_DTYPES; i++) {
        PyObject *bytes = PyLong_FromLong(fr_neuron_dtype_bytes((fr_neuron_dtype)i));
        if (!bytes || PyDict_SetItemString(dict, fr_neuron_dtype_name((fr_neuron_dtype)i), bytes) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(bytes);
    }
    return dict;
}

static bool add_name(PyObject *set, const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    bool ok = text && PySet_Add(set, text) == 0;
    Py_XDECREF(text);
    return ok;
}

PyObject *table_operators(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *set = PySet_New(NULL);
    bool ok = set != NULL;
    for (int i = 1; ok && i < FR_NEURON_OPERATORS; i++)
        ok = add_name(set, fr_neuron_operator_name((fr_neuron_operator)i));
    for (int i = 1; ok && i < FR_NEURON_FUNCTIONS; i++)
        ok = add_name(set, fr_neuron_function_name((fr_neuron_function)i));
    if (!ok)
        Py_CLEAR(set);
    return set;
}
