"""Python that runs here and that AWS's compiler refuses: warnings, found in the source of a kernel.

A kernel here is plain Python, so anything works; the compiler reads the source and takes a subset. On the
first launch of a kernel its source, and that of the functions and classes of its module's names that it
uses, is walked once. The texts are the core's table (src/neuron/language_rules.c); one function here
for every rule of it says whether a node breaks it. The older style has a compiler of its own and is left
alone.
"""

import ast
import enum
import inspect
import os
import textwrap
import types

from . import _core

_RANGES = {"range", "affine_range", "sequential_range", "static_range", "dynamic_range"}
_HOST = {"float32", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32", "bool_", "pi", "e", "inf"}


def _name(node):
    """The last part of a.b.c or c; None of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _module_of(node, scope):
    """The module that `np` in np.prod stands for."""
    value = scope.get(node.value.id) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    return value.__name__ if isinstance(value, types.ModuleType) else ""


def _dynamic(node):
    return isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and _name(node.iter.func) == "dynamic_range"


def _class_of(node, scope):
    """The class that a call makes an object of, when it is the kernel's author's."""
    value = scope.get(node.func.id) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    return value if isinstance(value, type) and _is_users(value) else None


def _breaks_class(node, scope):
    if isinstance(node, ast.ClassDef):
        return [_name(b) for b in node.bases] not in (["NKIObject"], ["Enum"], ["IntEnum"])
    made = _class_of(node, scope)
    return (
        made is not None
        and not issubclass(made, enum.Enum)
        and [b.__name__ for b in made.__bases__] != ["NKIObject"]
    )


def _breaks_dictionary_key(node, scope):
    keys = node.keys if isinstance(node, ast.Dict) else [node.key] if isinstance(node, ast.DictComp) else []
    return any(isinstance(k, (ast.Tuple, ast.Constant)) and not isinstance(getattr(k, "value", 0), str) for k in keys)


def _breaks_division(node, scope):
    return (
        isinstance(node, ast.Call)
        and _name(node.func) in ("divide", "mod", "fmod")
        and _module_of(node.func, scope).endswith("language")
    )


def _breaks_loop_index(node, scope):
    return _dynamic(node) and any(
        isinstance(call, ast.Call)
        and _name(call.func) in ("register_move", "register_load")
        and any(
            _name(x) == _name(node.target)
            for x in call.args[:1] + [k.value for k in call.keywords if k.arg == "dst"]
        )
        for call in ast.walk(node)
    )


def _breaks_loop_over(node, scope):
    loops = [node.iter] if isinstance(node, (ast.For, ast.comprehension)) else []
    return any(
        isinstance(x, (ast.Set, ast.SetComp, ast.Dict, ast.DictComp, ast.GeneratorExp, ast.JoinedStr))
        or (isinstance(x, ast.Call) and _name(x.func) in ("iter", "set", "frozenset", "map", "filter"))
        for x in loops
    )


def _breaks_namespace(node, scope):
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(n.startswith("neuronxcc") for n in names) or (
        isinstance(node, ast.Attribute) and _module_of(node, scope).startswith("neuronxcc")
    )


def _breaks_numpy(node, scope):
    return (
        isinstance(node, ast.Call)
        and _module_of(node.func, scope).split(".")[0] in ("numpy", "torch", "jax")
        and _name(node.func) not in _HOST
    )


def _breaks_with(node, scope):
    if not isinstance(node, ast.With):
        return False
    calls = [_name(i.context_expr.func) if isinstance(i.context_expr, ast.Call) else None for i in node.items]
    return calls != ["no_reorder"] or any(_dynamic(inside) for inside in ast.walk(node))


def _is(*kinds):
    return lambda node, scope: isinstance(node, kinds)


CHECKS = {
    "python_class": _breaks_class,
    "python_dictionary_key": _breaks_dictionary_key,
    "python_division": _breaks_division,
    "python_exception": _is(ast.Try, *([ast.TryStar] if hasattr(ast, "TryStar") else [])),
    "python_generator": _is(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef, ast.AsyncFor),
    "python_import": lambda node, scope: isinstance(node, (ast.Import, ast.ImportFrom))
    and not _breaks_namespace(node, scope),
    "python_loop_index": _breaks_loop_index,
    "python_loop_over": _breaks_loop_over,
    "python_namespace": _breaks_namespace,
    "python_numpy": _breaks_numpy,
    "python_scope": _is(ast.Global, ast.Nonlocal, ast.Delete),
    "python_with": _breaks_with,
}
_examined = set()


def _is_users(thing):
    """Whether a function or class is of the kernel's author: not Python's own library, nor this package's."""
    try:
        path = os.path.abspath(inspect.getsourcefile(thing) or "")
    except TypeError:
        return False
    own = os.path.dirname(os.path.abspath(__file__)) + os.sep
    library = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
    return bool(path) and not path.startswith((own, library)) and os.sep + "site-packages" + os.sep not in path


def broken(tree, scope):
    """[(line, rule)] of a kernel's body, in the order of its lines."""
    found = set()
    for node in ast.walk(tree):
        for name, breaks in CHECKS.items():
            if breaks(node, scope):
                found.add((getattr(node, "lineno", 0) or getattr(node.iter, "lineno", 0), name))
    return sorted(found)


def _body(function):
    """The function's statements without its decorators, defaults and annotations, at their own lines."""
    lines, first = inspect.getsourcelines(function)
    definition = ast.parse(textwrap.dedent("".join(lines))).body[0]
    tree = ast.Module(body=definition.body, type_ignores=[])
    for node in ast.walk(tree):
        if isinstance(node, (ast.AnnAssign, ast.arg)):
            node.annotation = ast.Constant(None, lineno=1)
    return ast.increment_lineno(tree, first - 1)


def examine(function):
    """[(file, line, rule)] of a kernel and of the functions it uses, each once in a process."""
    found, waiting = [], [function]
    while waiting:
        function = getattr(waiting[0], "func", waiting[0])
        waiting.pop(0)
        code = getattr(function, "__code__", None)
        if code is None or code in _examined or not _is_users(function):
            continue
        _examined.add(code)
        try:
            tree = _body(function)
        except (OSError, SyntaxError, IndexError, AttributeError):  # no source: made by exec, or a lambda
            continue
        scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        found += [(code.co_filename, line, rule) for line, rule in broken(tree, scope)]
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names -= {*code.co_varnames, *code.co_cellvars}  # a local variable hides the module's function of that name
        waiting += [scope[n] for n in sorted(names) if callable(scope.get(n)) and not isinstance(scope[n], type)]
    return found


def warn(function, say):
    """Says each of a kernel's warnings once; returns how many there were."""
    found = examine(function)
    texts = {rule["name"]: rule for rule in _core.language_rules()} if found else {}
    for path, line, name in found:
        text = texts[name]["text"].removeprefix("Warning. ")
        say(f"warning: {path}:{line}: {name}: {text}\n  fix: {texts[name]['fix']}")
    return len(found)
