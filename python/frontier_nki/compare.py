"""frontier nki compare A B: the kernels of two scripts side by side, in order."""

import argparse
import json
import os
import sys

from . import finder, session
from .report import fail


def main(arguments):
    parser = argparse.ArgumentParser(prog="frontier nki compare")
    parser.add_argument("scripts", nargs=2)
    parser.add_argument("--machine")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    finder.install()
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
