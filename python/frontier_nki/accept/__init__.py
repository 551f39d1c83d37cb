"""frontier nki accept DIR: the public kernels of a checkout, unmodified, against numpy.

An adapter says which file, which function, which inputs and what numpy makes of them; the kernel's file
itself is loaded as it is. Modules that a file imports for other purposes and that are not installed here
(torch, torch_xla, jax, ...) are stood in for while it loads, so that a kernel needing none of them runs.
DIR may hold several repositories.
"""

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
import types

import numpy as np

from .. import _core, arrays, finder, report, session

ADAPTERS = ("moe", "samples", "samples_mx", "nkipy", "accelopt", "autocomp", "autocomp_more", "library", "library_more", "library_route", "library_attention", "library_project", "library_mlp", "library_ranks", "library_transformer", "autotune")


class Case:
    """One kernel: `run(module)` yields (name, what the kernel returned, what numpy says)."""

    def __init__(self, row, path, run, tolerance=1e-5, package=None, prelude=False, script=False, unwritten="error"):
        self.row, self.path, self.run, self.tolerance = row, path, run, tolerance
        self.package, self.prelude, self.script = package, prelude, script
        self.unwritten = unwritten


class StandIn(types.ModuleType):
    """A module that is not installed: every name is a class that does nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(
            name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, *a, **k: None}
        )


class StandIns:
    """The last finder: stands in for what kernels' files import beside nki."""

    NAMES = {
        "torch",
        "torch_xla",
        "torch_neuronx",
        "jax",
        "nkipy",
        "neuronpy",
        "pytest",
        "tqdm",
        "spike",
        "matplotlib",
        "libneuronxla",
        "neuron_dtypes",
        "scipy",
        "ml_dtypes",
        "typing_extensions",
    }

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] in cls.NAMES:
            return importlib.util.spec_from_loader(name, cls, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return StandIn(spec.name)

    @staticmethod
    def exec_module(module):
        pass


def load(path, case):
    """The kernel's file as a module."""
    folder = os.path.dirname(path)
    if case.package:  # a file of a package: its root is the folder that holds the package
        root = path[: path.rindex(os.sep + case.package.split(".")[0] + os.sep)]
        sys.path.insert(0, root)
        return importlib.import_module(case.package)
    sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]
    if case.prelude:  # a harness gives these names to files that do not import them
        import math

        import nki
        import nki.isa as nisa
        import nki.language as nl

        module = types.ModuleType(name)
        module.__dict__.update(nki=nki, nisa=nisa, nl=nl, np=np, math=math, __file__=path)
        with open(path) as f:
            exec(compile(f.read(), path, "exec"), module.__dict__)
        return module
    if case.script:  # what follows the last definition is the file's own script, which is not wanted
        with open(path) as f:
            tree = ast.parse(f.read(), path)
        last = max(i for i, n in enumerate(tree.body) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
        tree.body = tree.body[: last + 1]
        module = types.ModuleType(name)
        module.__file__ = path
        exec(compile(tree, path, "exec"), module.__dict__)
        return module
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def difference(actual, wanted):
    """Largest difference over the largest magnitude of what is wanted."""
    actual, wanted = np.asarray(actual, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    if actual.shape != wanted.shape:
        return float("inf")
    if not np.isfinite(actual).all():
        return float("inf")
    return float(np.abs(actual - wanted).max() / max(1e-30, np.abs(wanted).max()))


def rounded(x):
    """x in float32, rounded to what bf16 holds (to the nearest, halves to the even one)."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def bf16(x):
    """x as a bf16 array that kernels take, whether or not ml_dtypes is installed."""
    return as_bf16((rounded(x).view(np.uint32) >> 16).astype(np.uint16))


def as_bf16(halves):
    """The bits of bf16 numbers, as such an array."""
    known = arrays.numpy_dtype("bfloat16")
    if known is not None:
        return halves.view(known)
    tagged = halves.view(arrays.Tagged)
    tagged.nki_dtype = "bfloat16"
    return tagged


def locate(top):
    """{path suffix: full path} of every Python file below the folder."""
    found = []
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if not f.startswith(".")]
        found += [os.path.join(folder, f) for f in files if f.endswith(".py")]
    return found


def try_case(case, path):
    """[(name, difference, predicted us)] and an error text."""
    rows, modules, paths = [], set(sys.modules), list(sys.path)
    session.options.unwritten = case.unwritten
    try:
        module = load(path, case)
        for name, actual, wanted in case.run(module):
            results = actual if isinstance(actual, (tuple, list)) else (actual,)
            wants = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
            worst = max(difference(a, w) for a, w in zip(results, wants))
            rows.append((name, worst, session.results[-1].predicted_us if session.results else 0.0))
        return rows, None
    except (Exception, SystemExit) as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        where = f"line {frames[-1].lineno}: " if frames else ""
        return rows, f"{where}{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    finally:
        sys.path[:] = paths
        for name in set(sys.modules) - modules:  # two repositories may use one module name
            if not name.startswith(("nki", "neuronxcc", "frontier_nki", "numpy")) or name.startswith(
                "nkilib"
            ):
                sys.modules.pop(name, None)


def cases():
    for name in ADAPTERS:
        yield from importlib.import_module(f"{__name__}.{name}").CASES


def line(row, path, name, worst, microseconds, status):
    shown = f"{worst:.1e}" if worst is not None else "-"
    timed = f"{microseconds:12.1f} us" if microseconds else f"{'-':>15}"
    return f"{row:>3}  {path:<64}  {name:<28}  {shown:>8}  {timed}  {status}"


def main(arguments):
    import argparse

    parser = argparse.ArgumentParser(prog="frontier nki accept")
    parser.add_argument("dir")
    parser.add_argument("--only")
    parser.add_argument("--machine")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    session.options.machine, session.options.warnings = options.machine, False
    if not os.path.isdir(options.dir):
        sys.stderr.write(
            f"frontier: error: {options.dir}: no such folder\n  hint: a checkout with NKI kernels\n"
        )
        return 3
    finder.install()
    sys.meta_path.append(StandIns)
    out = sys.stderr if options.json else sys.stdout
    files, table = locate(options.dir), []
    with contextlib.redirect_stdout(sys.stderr):  # what kernels print is not the answer
        for case in sorted(cases(), key=lambda c: c.row):
            path = next((f for f in files if f.endswith(os.sep + case.path)), None)
            if path and (not options.only or options.only in case.path):
                table += report_case(case, path, out)
    return finish(table, options, out)


def report_case(case, path, out):
    rows, started = [], time.monotonic()
    del session.results[:]
    results, error = try_case(case, path)
    for name, worst, microseconds in results:
        good = worst <= case.tolerance
        rows.append(
            {
                "row": case.row,
                "path": case.path,
                "kernel": name,
                "difference": worst if worst < 1e300 else None,
                "predicted_us": microseconds,
                "passed": good,
                "error": "" if good else "differs from numpy",
            }
        )
    if error:
        rows.append(
            {
                "row": case.row,
                "path": case.path,
                "kernel": "-",
                "difference": None,
                "predicted_us": 0.0,
                "passed": False,
                "error": error,
            }
        )
    for r in rows:
        print(
            line(
                r["row"],
                r["path"],
                r["kernel"],
                r["difference"],
                r["predicted_us"],
                "ok" if r["passed"] else "FAILED " + r["error"],
            ),
            file=out,
            flush=True,
        )
    elapsed = time.monotonic() - started
    for r in rows:
        r["seconds"] = elapsed
    return rows


def finish(table, options, out):
    passed = sum(1 for r in table if r["passed"])
    code = 0 if table and passed == len(table) else 1
    print(f"{passed} of {len(table)} kernels agree with numpy", file=out)
    if not table:
        print(f"frontier nki: no kernel that the adapters know is under {options.dir}", file=sys.stderr)
    if options.json:
        print(
            json.dumps(
                {"kernels": table, "passed": passed, "failed": len(table) - passed, "exit": code},
                sort_keys=True,
            )
        )
    return code


__all__ = ["Case", "main", "_core", "report"]
