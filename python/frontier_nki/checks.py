"""frontier nki compare A B, and frontier nki check FILE:KERNEL --against FILE:REFERENCE.

compare runs two scripts and puts their kernels side by side, in order. check calls a kernel and a numpy
reference with the same inputs - random ones, and the edges that catch mistakes: zeros, ones, large and
small magnitudes, one hot value - and fails where they differ by more than the dtype explains.
"""

import argparse
import importlib.util
import json
import math
import os
import sys
import traceback

import numpy as np

from . import _core, arrays, finder, session
from .types import dtype_of

TOLERANCE = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 4e-3}
MOST_VALUES = 2**28  # of one argument: 1 GiB in fp32, and several copies are made


def fail(code, where, what, hint, as_json):
    sys.stderr.write(f"frontier: error: {where}: {what}\n  hint: {hint}\n")
    if as_json:
        print(
            json.dumps({"error": {"what": what, "where": where, "hint": hint}, "exit": code}, sort_keys=True)
        )
    return code


def main(arguments):
    finder.install()
    return compare(arguments[1:]) if arguments[0] == "compare" else check(arguments[1:])


# ---- compare ----


def compare(arguments):
    parser = argparse.ArgumentParser(prog="frontier nki compare")
    parser.add_argument("scripts", nargs=2)
    parser.add_argument("--machine")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    session.options.machine = options.machine
    from .__main__ import run_script

    sides, out = [], sys.stdout
    for script in options.scripts:
        if not os.path.isfile(script):
            return fail(3, script, "no such script", "frontier nki compare SCRIPT SCRIPT", options.json)
        del session.results[:]
        sys.stdout = sys.stderr
        code = run_script(script, [])
        sys.stdout = out
        if code:
            return fail(1, script, "the script failed", f"frontier nki run {script}", options.json)
        sides.append(list(session.results))
    rows = [
        {
            "first": a.name,
            "second": b.name,
            "first_us": a.predicted_us,
            "second_us": b.predicted_us,
            "ratio": b.predicted_us / a.predicted_us if a.predicted_us else 0.0,
        }
        for a, b in zip(*sides)
    ]
    people = sys.stderr if options.json else out
    for (a, b), row in zip(zip(*sides), rows):
        _print_pair(a, b, row["ratio"], people)
    if len(sides[0]) != len(sides[1]):
        print(f"{len(sides[0])} launches against {len(sides[1])}: the rest has no partner", file=people)
    if options.json:
        print(json.dumps({"kernels": rows, "exit": 0}, sort_keys=True))
    return 0


def _print_pair(a, b, ratio, out):
    print(f"{a.name} -> {b.name}  (simulated on {a.machine})", file=out)
    print(f"  time          {a.predicted_us:12.2f} us {b.predicted_us:12.2f} us   x {ratio:.3f}", file=out)
    for key, label in (("lower_bound_ns", "lower bound"), ("program_order_ns", "program order")):
        print(f"  {label:<13} {a.time[key] / 1e3:12.2f} us {b.time[key] / 1e3:12.2f} us", file=out)
    for engine in a.time["busy_ns"]:
        x, y = a.shares()[engine], b.shares()[engine]
        if max(x, y) > 0.0005:
            print(f"  {engine:<13} {x:12.1%}    {y:12.1%}", file=out)
    for key, label in (
        ("dma_bytes", "DMA bytes"),
        ("dma_descriptors", "descriptors"),
        ("instructions", "instructions"),
        ("sbuf_peak_bytes", "SBUF peak B"),
    ):
        print(f"  {label:<13} {a.time[key]:12.0f}    {b.time[key]:12.0f}", file=out)


# ---- check ----


def named(text):
    """The function that FILE:NAME means."""
    path, _, name = text.rpartition(":")
    if not path or not os.path.isfile(path):
        raise _core.UsageError(f"{text}: no such file; give FILE:NAME" if path else f"{text}: give FILE:NAME")
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise _core.UsageError(f"{path} has no '{name}'")
    return getattr(module, name)


def shapes_of(text):
    """The shapes of one call: "128x64,64x512" is two arguments."""
    try:
        shapes = [tuple(int(n) for n in s.split("x")) for s in text.split(",")]
    except ValueError:
        shapes = [()]
    if any(not s or min(s) < 1 or math.prod(s) > MOST_VALUES for s in shapes):
        raise _core.UsageError(
            f"--shape {text}: give sizes from 1 with x between them and , between arguments, as in "
            f"128x512,128x512; at most {MOST_VALUES} values an argument"
        )
    return shapes


def inputs(shapes, dtype, seed):
    """(name, arrays) of every case."""
    random = np.random.default_rng(seed)
    known = arrays.numpy_dtype(dtype)
    makers = (
        ("random", lambda s: random.standard_normal(s)),
        ("zeros", np.zeros),
        ("ones", np.ones),
        ("large", lambda s: random.standard_normal(s) * 1e3),
        ("small", lambda s: random.standard_normal(s) * 1e-3),
        ("one hot", lambda s: np.eye(1, int(np.prod(s)), int(np.prod(s)) // 2).reshape(s)),
    )
    for shape_set in shapes:
        for name, make in makers:
            label = ",".join("x".join(map(str, s)) for s in shape_set)
            yield f"{name} {label}", [np.asarray(make(s)).astype(known) for s in shape_set]


def check(arguments):
    parser = argparse.ArgumentParser(prog="frontier nki check")
    parser.add_argument("kernel")
    parser.add_argument("--against", required=True)
    parser.add_argument("--shape", action="append")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--machine")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    session.options.machine = options.machine
    try:
        kernel, reference = named(options.kernel), named(options.against)
        dtype = dtype_of(options.dtype)
        if arrays.numpy_dtype(dtype) is None:
            raise _core.UsageError(f"numpy has no {dtype} here: install ml_dtypes")
        shapes = [shapes_of(text) for text in options.shape or ["128x512,128x512"]]
    except _core.UsageError as error:
        return fail(2, "nki check", str(error), "frontier nki check --help", options.json)
    except Exception:
        traceback.print_exc()
        return fail(1, "nki check", "a script failed while it was read", "its traceback is above", options.json)
    out = sys.stderr if options.json else sys.stdout
    rows = [
        _case(kernel, reference, name, values, TOLERANCE.get(str(dtype), 1e-4), out)
        for name, values in inputs(shapes, dtype, options.seed)
    ]
    passed = sum(row["passed"] for row in rows)
    print(f"{passed} of {len(rows)} cases agree", file=out)
    code = 0 if passed == len(rows) else 1
    if options.json:
        print(
            json.dumps(
                {"cases": rows, "passed": passed, "failed": len(rows) - passed, "exit": code}, sort_keys=True
            )
        )
    return code


def _case(kernel, reference, name, values, tolerance, out):
    error, worst = "", None
    try:
        from .accept import difference

        wide = [np.asarray(v).astype(np.float32) for v in values]
        got, wanted = kernel(*values), reference(*wide)
        pairs = zip(*((x,) if not isinstance(x, tuple) else x for x in (got, wanted)))
        worst = max(difference(np.asarray(a).astype(np.float32), b) for a, b in pairs)
        error = "" if worst <= tolerance else "differs from the reference"
    except (_core.RuleError, _core.UsageError) as problem:
        error = str(problem).splitlines()[0]
    except Exception as problem:  # the kernel's or the reference's own: that case fails, the next is asked
        frame = traceback.extract_tb(problem.__traceback__)[-1]
        text = (str(problem).splitlines() or [""])[0]
        error = f"{type(problem).__name__} at {os.path.basename(frame.filename)}:{frame.lineno}: {text}"
    shown = "-" if worst is None else f"{worst:.1e}"
    print(f"  {name:<32} {shown:>9} of {tolerance:.0e}  {'ok' if not error else 'FAILED ' + error}", file=out)
    finite = worst if worst is not None and np.isfinite(worst) else None
    return {"name": name, "difference": finite, "tolerance": tolerance, "passed": not error, "error": error}
