"""frontier nki check FILE:KERNEL --against REFERENCE: is it the same function?

Kernel and reference are called with the same values, forward and, where both have a gradient, backward: on the
given shapes with every kind of value, then on edge and hidden shapes, in each dtype (check_cases.py). The seed of
values and hidden shapes is drawn afresh for each run, so that nothing can be fitted to it, and printed so that a
run can be repeated. Beside numbers it is held against a kernel if it runs nothing on the core, writes to its
arguments, or answers the first question differently when it is asked again at the end.

What the kernel refuses - a rule, an assertion - is told apart from what it gets wrong: on the given shapes in the
first dtype, or in dtypes that were asked for, it counts as a failure, elsewhere only with --strict.
"""

import argparse
import dataclasses
import importlib.util
import inspect
import json
import os
import secrets
import sys
import traceback

import numpy as np

from . import _core, finder, session
from .arrays import narrow
from .check_cases import (
    TOLERANCE,
    VALUES,
    Argument,
    directions,
    dtype_name,
    edge_shapes,
    hidden_shapes,
    judge,
    label,
    many,
    nudged,
    required_dtype,
    shapes_of,
    slopes,
    value,
    wide,
)
from .report import fail

SMOOTH = ("random", "small", "large")  # values whose gradients may be had from differences


# ---- functions ----


def module_of(path):
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    for folder in (os.path.dirname(os.path.abspath(path)), os.getcwd()):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    spec.loader.exec_module(module)
    return module


def named(text):
    """(function, what else is called NAME_backward) of FILE:NAME or reference:NAME."""
    path, _, name = text.rpartition(":")
    if path == "reference":
        from . import reference as module
    elif path and os.path.isfile(path):
        module = module_of(path)
    else:
        raise _core.UsageError(
            f"{text}: no such file; give FILE:NAME or reference:NAME" if path else f"{text}: give FILE:NAME"
        )
    if not name or not hasattr(module, name) or (path == "reference" and name not in module.__all__):
        hint = f"; there are {', '.join(sorted(module.__all__))}" if path == "reference" else ""
        raise _core.UsageError(f"{path} has no '{name}'{hint}")
    return getattr(module, name), getattr(module, f"{name}_backward", None)


def parameters_of(function):
    """(names, how many must be given by place), or None where Python cannot tell."""
    try:
        signature = inspect.signature(getattr(function, "function", function))
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in signature.parameters.values()):
        return None
    required = [p.name for p in signature.parameters.values() if p.kind in kinds and p.default is p.empty]
    return list(signature.parameters), required


class Settings:
    """--set NAME=VALUE: given to whoever has a parameter of that name; @N is the size N, as it varies."""

    def __init__(self, texts):
        self.values = {}
        for text in texts:
            name, equals, shown = text.partition("=")
            if not equals or not name.isidentifier():
                raise _core.UsageError(f"--set {text}: give NAME=VALUE, as in heads=4 or T=@128")
            self.values[name] = self.parse(shown)
        self.used = set()

    @staticmethod
    def parse(text):
        if text.startswith("@") and text[1:].isdigit():
            return ("size", int(text[1:]))
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return {"True": True, "true": True, "False": False, "false": False, "None": None}.get(text, text)

    def of(self, function, sizes):
        known = parameters_of(function)
        given = {n: v for n, v in self.values.items() if known and n in known[0]}
        self.used.update(given)
        return {n: sizes.get(v[1], v[1]) if isinstance(v, tuple) else v for n, v in given.items()}

    def places(self, function):
        """How many arguments a function needs beside the settings, or None."""
        known = parameters_of(function)
        return known and sum(1 for name in known[1] if name not in self.values)


# ---- one case ----


@dataclasses.dataclass
class Case:
    way: str  # forward, backward
    source: str  # given, edge, hidden, again
    dtype: str
    shape: str
    values: str
    tolerance: float
    status: str = "agree"  # or differ, refused
    difference: float = 0.0
    text: str = ""


def first_line(problem):
    """What an exception says, and where it was raised unless that was here."""
    text = (str(problem).splitlines() or [""])[0]
    if isinstance(problem, (_core.RuleError, _core.UsageError)):
        return text
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} at {os.path.basename(frame.filename)}:{frame.lineno}: {text}"


class Refused(Exception):
    """The kernel or the reference does not take these arguments."""


class Wrong(Exception):
    """The kernel did what no values excuse."""


class Checker:
    def __init__(self, kernel, reference, settings, options):
        self.kernel, self.reference, self.settings, self.options = kernel, reference, settings, options
        self.backward = self.reference_backward = None
        self.cases = []
        self.first = None  # (values, settings, outputs) of the first case that agreed

    # -- calling --

    def run_kernel(self, function, inputs, sizes):
        """Its outputs; the inputs go in as copies, and are compared with them afterwards."""
        copies = [np.array(a, copy=True, subok=True) for a in inputs]
        del session.results[:]
        try:
            outputs = many(function(*copies, **self.settings.of(function, sizes)))
        except Exception as problem:
            raise Refused(first_line(problem)) from problem
        if not session.results:
            raise Wrong("runs nothing on the core: it launches no kernel")
        for i, (a, b) in enumerate(zip(inputs, copies)):
            if not self.options.in_place and np.asarray(a).tobytes() != np.asarray(b).tobytes():
                raise Wrong(f"writes to argument {i}; --in-place allows that")
        return outputs

    def run_reference(self, function, inputs, sizes):
        try:
            return many(function(*[np.array(a) for a in inputs], **self.settings.of(function, sizes)))
        except Exception as problem:
            raise Refused(f"the reference: {first_line(problem)}") from problem

    # -- asking --

    def ask(self, way, source, shapes, given, dtype, name, random):
        tolerance = self.options.tolerance or TOLERANCE[dtype]
        case = Case(way, source, dtype, label(shapes), name, tolerance)
        sizes = {}
        for old, new in zip(given, shapes):
            sizes.update(zip((*old.sizes, old.ids), (*new.sizes, new.ids)))
        inputs = [value(a, name, dtype, random) for a in shapes]
        try:
            compare = self.compare_forward if way == "forward" else self.compare_backward
            verdict = compare(inputs, sizes, dtype, name, tolerance, random)
            case.difference, case.text = verdict.difference, verdict.text
            case.status = "differ" if verdict.text else "agree"
        except Refused as refusal:
            case.status, case.text, case.difference = "refused", str(refusal), np.inf
        except Wrong as wrong:
            case.status, case.text, case.difference = "differ", str(wrong), np.inf
        self.cases.append(case)
        return case

    def compare_forward(self, inputs, sizes, dtype, name, tolerance, random):
        doubles = [wide(a) for a in inputs]
        wanted = self.run_reference(self.reference, doubles, sizes)
        got = self.run_kernel(self.kernel, inputs, sizes)
        again = self.run_reference(self.reference, [nudged(a, dtype, random) for a in doubles], sizes)
        if self.options.outputs is not None:
            if max(self.options.outputs) >= len(got):
                raise Wrong(f"returns {len(got)} arrays: --outputs counts them from 0")
            got = [got[i] for i in self.options.outputs]
        verdict = judge(got, wanted, again, tolerance)
        if not verdict.text and self.first is None:
            places = self.options.outputs or range(len(got))
            self.first = (inputs, sizes, [(i, np.asarray(g).tobytes()) for i, g in zip(places, got)])
        return verdict

    def upstream(self, outputs, wanted, random):
        """(for the kernel, for the reference): a gradient for each output that has one, the first ones; it has
        the shape and dtype of the output."""
        count = len(wanted)
        if self.reference_backward:
            places = self.settings.places(self.reference_backward)
            count = count if places is None else max(1, min(count, places - self.inputs))
        mine = []
        for output, like in zip(outputs[:count], wanted):
            if np.size(output) != np.size(like):
                raise Wrong(f"an output has the shape {np.shape(output)}, the reference's {np.shape(like)}")
            mine.append(narrow(random.standard_normal(np.shape(output)), dtype_name(output)))
        return mine, [wide(u).reshape(np.shape(like)) for u, like in zip(mine, wanted)]

    def saved(self, outputs, upstream):
        """The outputs that the backward kernel has room for between arguments and gradients: the last ones."""
        places = self.settings.places(self.backward)
        room = 0 if places is None else places - self.inputs - len(upstream)
        if not 0 <= room <= len(outputs):
            raise Refused(
                f"the backward kernel takes {places} arguments: not the {self.inputs} of the kernel, up to "
                f"{len(outputs)} of its outputs and {len(upstream)} gradients; see --set"
            )
        return outputs[len(outputs) - room :]

    def compare_backward(self, inputs, sizes, dtype, name, tolerance, random):
        doubles = [wide(a) for a in inputs]
        wanted = self.run_reference(self.reference, doubles, sizes)
        outputs = self.run_kernel(self.kernel, inputs, sizes)
        mine, upstream = self.upstream(outputs, wanted, random)
        got = self.run_kernel(self.backward, [*inputs, *self.saved(outputs, mine), *mine], sizes)
        if self.reference_backward is None:
            return self.compare_slopes(got, doubles, upstream, sizes, tolerance, random)
        whole = [*doubles, *upstream]
        wanted = self.run_reference(self.reference_backward, whole, sizes)
        nudges = [nudged(a, dtype, random) for a in whole]
        again = self.run_reference(self.reference_backward, nudges, sizes)
        return judge(got, wanted, again, tolerance, "gradient", upstream)

    def compare_slopes(self, got, inputs, upstream, sizes, tolerance, random):
        floats = [i for i, a in enumerate(inputs) if a.dtype.kind == "f"]
        if len(got) != len(floats):
            raise Wrong(f"returns {len(got)} gradients for {len(floats)} floating-point arguments")

        def function(*arguments):
            return self.run_reference(self.reference, arguments, sizes)

        mine, theirs = [], []
        for gradient, i in zip(got, floats):
            if np.shape(gradient) != inputs[i].shape:
                raise Wrong(
                    f"the gradient of argument {i} has the shape {np.shape(gradient)}, not {inputs[i].shape}"
                )
            along = directions(inputs[i].shape, random)
            theirs.append(slopes(function, inputs, i, upstream, along))
            mine.append((wide(gradient)[None] * along).reshape(len(along), -1).sum(1))
        return judge(mine, theirs, theirs, tolerance, "slope along direction")

    # -- everything --

    def ways(self):
        return ("forward", "backward") if self.backward else ("forward",)

    def names(self, way):
        known = SMOOTH if way == "backward" and self.reference_backward is None else tuple(VALUES)
        return [name for name in known if name in self.options.values]

    def run(self, shape_sets, seed):
        random = np.random.default_rng(seed)
        for given in shape_sets:
            self.inputs = len(given)
            asked = [("given", given)]
            asked += [("edge", s) for s in edge_shapes(given, self.options.fixed)]
            hidden = hidden_shapes(given, self.options.fixed, random, self.options.hidden)
            asked += [("hidden", s) for s in hidden]
            for dtype in self.options.dtypes:
                for source, shapes in asked:
                    for way in self.ways():
                        self.group(way, source, shapes, given, dtype, random)
        self.ask_again()

    def group(self, way, source, shapes, given, dtype, random):
        """Every kind of value on the given shapes; elsewhere random ones and one more kind."""
        names = self.names(way)
        if source != "given" and len(names) > 2:
            names = names[:1] + [str(random.choice(names[1:]))]
        for name in names:
            case = self.ask(way, source, shapes, given, dtype, name, random)
            if case.status == "refused" and name == names[0]:
                return  # it will refuse the other values too

    def ask_again(self):
        """The first question once more: what a kernel keeps between calls must not show."""
        if not self.first:
            return
        inputs, sizes, outputs = self.first
        shape = label([Argument(np.shape(a)) for a in inputs])
        case = Case("forward", "again", self.options.dtypes[0], shape, "the first", 0.0)
        try:
            got = self.run_kernel(self.kernel, inputs, sizes)
            if any(np.asarray(got[i]).tobytes() != bits for i, bits in outputs):
                case.status, case.text = "differ", "the same arguments give other bits than at first"
        except (Refused, Wrong) as problem:
            case.status, case.text = "differ", str(problem)
        self.cases.append(case)


# ---- the answer ----


def failed(case, options):
    """Wrong, or a refusal of what was asked for by name."""
    if case.status != "refused":
        return case.status == "differ"
    required = options.dtype is not None or case.dtype == options.dtypes[0]
    return options.strict or (case.source == "given" and required)


def print_groups(cases, options, out):
    groups = {}
    for case in cases:
        groups.setdefault((case.way, case.dtype, case.source, case.shape), []).append(case)
    print(f"  {'':<8}  {'dtype':<8}  {'shapes':<6}  {'agree':>5}  {'worst':>7} of {'most':<6}", file=out)
    for (way, dtype, source, shape), group in groups.items():
        agree = [c for c in group if c.status == "agree"]
        worst = max((c.difference for c in group if c.status != "refused"), default=np.inf)
        shown = f"{worst:7.1e}" if np.isfinite(worst) else f"{'-':>7}"
        line = f"  {way:<8}  {dtype:<8}  {source:<6}  {len(agree):>2}/{len(group):<2}  {shown} of {group[0].tolerance:<6.0e}"
        print(f"{line}  {shape}", file=out)
        for case in group:
            if case.status != "agree":
                word = (
                    "WRONG" if case.status == "differ" else "FAILED" if failed(case, options) else "refused"
                )
                print(f"    {word} {case.values}: {case.text}", file=out)


def notes(checker, options):
    if checker.backward is None:
        yield f"backward not checked: there is no {options.kernel}_backward; name it with --backward"
    elif checker.reference_backward is None:
        yield "backward held to central differences of the reference, which has no gradient of its own"
    unused = sorted(set(checker.settings.values) - checker.settings.used)
    if unused:
        yield f"--set {', '.join(unused)}: nobody has a parameter of that name"


def answer(checker, options, seed, out):
    cases = checker.cases
    wrong = [c for c in cases if failed(c, options)]
    refused = [c for c in cases if c.status == "refused" and c not in wrong]
    agree = len(cases) - len(wrong) - len(refused)
    print(f"{options.kernel} against {options.against}", file=out)
    print_groups(cases, options, out)
    for note in notes(checker, options):
        print(f"  note: {note}", file=out)
    print(
        f"{len(cases)} cases: {agree} agree, {len(wrong)} fail, {len(refused)} refused by the kernel or the "
        f"reference (--seed {seed} repeats them)",
        file=out,
    )
    code = 1 if wrong or not agree else 0
    if options.json:
        rows = [
            {
                "pass": c.way,
                "shapes": c.source,
                "dtype": c.dtype,
                "shape": c.shape,
                "values": c.values,
                "difference": float(c.difference) if np.isfinite(c.difference) else None,
                "tolerance": c.tolerance,
                "status": "failed" if c in wrong else c.status,
                "error": c.text,
            }
            for c in cases
        ]
        found = {"cases": rows, "agree": agree, "failed": len(wrong), "refused": len(refused)}
        print(json.dumps({**found, "seed": seed, "exit": code}, sort_keys=True))
    return code


def parser():
    p = argparse.ArgumentParser(prog="frontier nki check", allow_abbrev=False)
    p.add_argument("kernel")
    p.add_argument("--against", required=True)
    p.add_argument("--backward")
    p.add_argument("--backward-against")
    p.add_argument("--shape", action="append")
    p.add_argument("--fixed", default="")
    p.add_argument("--outputs")
    p.add_argument("--dtype")
    p.add_argument("--tolerance", type=float)
    p.add_argument("--values", default=",".join(VALUES))
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--hidden", type=int, default=4)
    p.add_argument("--in-place", action="store_true")
    p.add_argument("--strict", action="store_true")
    p.add_argument("--machine")
    p.add_argument("--seed", type=int)
    p.add_argument("--json", action="store_true")
    return p


def numbers(option, text):
    if not all(n.isdigit() for n in text.split(",")) and text:
        raise _core.UsageError(f"{option} {text}: give numbers with , between them")
    return [int(n) for n in text.split(",") if n]


def default_shapes(kernel):
    known = parameters_of(kernel)
    return ["128x512" + ",128x512" * (max(1, len(known[1])) - 1 if known else 0)]


def prepare(options):
    """A Checker and the shapes to ask for; UsageError where the options make no sense."""
    kernel, kernel_backward = named(options.kernel)
    reference, reference_backward = named(options.against)
    checker = Checker(kernel, reference, Settings(options.set), options)
    if options.backward:
        kernel_backward = named(options.backward)[0]
    if options.backward_against:
        reference_backward = named(options.backward_against)[0]
    if kernel_backward is not None:
        checker.backward, checker.reference_backward = kernel_backward, reference_backward
    options.fixed = set(numbers("--fixed", options.fixed))
    options.outputs = numbers("--outputs", options.outputs) if options.outputs else None
    options.values = [name.strip() for name in options.values.split(",")]
    if not set(options.values) <= set(VALUES):
        raise _core.UsageError(f"--values {','.join(options.values)}: some of {', '.join(VALUES)}")
    if options.hidden < 0 or (options.tolerance is not None and not options.tolerance > 0):
        raise _core.UsageError("--hidden counts from 0 and --tolerance is above 0")
    options.dtypes = [
        required_dtype(name) for name in (options.dtype or "float32,bfloat16,float16").split(",")
    ]
    return checker, [shapes_of(text) for text in options.shape or default_shapes(kernel)]


def main(arguments):
    options = parser().parse_args(arguments)
    session.options.machine = options.machine
    finder.install()
    try:
        session.target()
        checker, shape_sets = prepare(options)
    except _core.UsageError as error:
        return fail(2, "nki check", str(error), "frontier nki check --help", options.json)
    except Exception:
        traceback.print_exc()
        return fail(
            1, "nki check", "a script failed while it was read", "its traceback is above", options.json
        )
    seed = secrets.randbits(31) if options.seed is None else options.seed
    out, kept = (sys.stderr if options.json else sys.stdout), sys.stdout
    sys.stdout = sys.stderr  # what kernels print
    try:
        checker.run(shape_sets, seed)
    finally:
        sys.stdout = kept
    return answer(checker, options, seed, out)
