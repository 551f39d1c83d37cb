"""kernels/report.py [--check] [NAME ...]: runs every workload row of kernels/tests and writes the table of README.md.

--check compares instead of writing, without computing: the rows must be there and times within 5 % of what the
table says. NAMEs limit the run to test files of these kernels, and print instead of writing.
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

BEGIN, END = "<!-- table: kernels/report.py -->", "<!-- end of the table -->"
HEAD = (
    "| kernel | shape | dtype | predicted us | perfect overlap | program order | bound by | roofline us | of roofline | difference |",
    "|---|---|---|---|---|---|---|---|---|---|",
)
NAMES = {
    "tensor": "PE",
    "vector": "Vector",
    "scalar": "Scalar",
    "gpsimd": "GpSimd",
    "sync": "Sync",
    "dma": "DMA",
}


def rows(only):
    """Every Row of the test files, in order of their names."""
    folder = os.path.join(HERE, "tests")
    for file in sorted(os.listdir(folder)):
        name = file.removeprefix("test_").removesuffix(".py")
        if file.startswith("test_") and file.endswith(".py") and (not only or name in only):
            yield from getattr(importlib.import_module(f"kernels.tests.test_{name}"), "ROWS", ())


def roofline_us(row, values, outputs, machine):
    """Time of the bytes or the products alone, whichever is longer."""
    moved = row.bytes or sum(a.nbytes for a in (*values, *outputs) if hasattr(a, "nbytes"))
    rate = machine["dma_engines"] * machine["dma_bytes_per_ns"]
    passes = machine["tensor_passes_fp32"] if row.dtype == "float32" else 1
    peak = 2.0 * 128 * 128 * machine["tensor_ghz"] / passes
    return max(moved / rate, row.flops / peak) / 1e3


def cells(row, machine, compare):
    result, values, outputs, difference = row.run(compare)
    time, shares = result.time, result.shares()
    busiest = max(shares, key=shares.get)
    ideal = roofline_us(row, values, outputs, machine)
    return [
        row.name,
        row.shape,
        row.dtype,
        f"{result.predicted_us:.1f}",
        f"{time['lower_bound_ns'] / 1e3:.1f}",
        f"{time['program_order_ns'] / 1e3:.1f}",
        f"{NAMES[busiest]} {shares[busiest]:.0%}",
        f"{ideal:.1f}",
        f"{ideal / result.predicted_us:.0%}",
        f"{difference:.1e}",
    ]


def table(only, out=None, compare=True):
    from frontier_nki import _core, session

    machine = _core.Core(session.machine_named("trn2")[1]).machine
    lines = list(HEAD)
    for row in rows(only):
        lines.append("| " + " | ".join(cells(row, machine, compare)) + " |")
        if out:
            print(lines[-1], file=out, flush=True)
    return lines


def parse(lines):
    """{(kernel, shape, dtype): cells} of a table."""
    found = {}
    for line in lines[2:]:
        parts = [c.strip() for c in line.strip().strip("|").split("|")]
        found[tuple(parts[:3])] = parts
    return found


def stale(old, new):
    """What the table says that is no longer so."""
    problems = [f"{' '.join(key)}: not in the table" for key in new if key not in old]
    problems += [f"{' '.join(key)}: in the table, but there is no such row" for key in old if key not in new]
    for key in new:
        if key not in old:
            continue
        for column, name in ((3, "predicted"), (4, "perfect overlap"), (5, "program order")):
            was, now = float(old[key][column]), float(new[key][column])
            if abs(now - was) > 0.05 * was + 0.1:
                problems.append(f"{' '.join(key)}: {name} {now} us, the table says {was}")
    return problems


def main(arguments):
    only = [a for a in arguments if not a.startswith("--")]
    check = "--check" in arguments
    if only:
        table(only, sys.stdout)
        return 0
    path = os.path.join(HERE, "README.md")
    with open(path) as f:
        text = f.read()
    before, rest = text.split(BEGIN + "\n", 1)
    old, after = rest.split(END, 1)
    new = table(only, None if check else sys.stdout, not check)
    if check:
        problems = stale(parse(old.strip().splitlines()), parse(new))
        print("\n".join(problems) or "kernels/README.md says what the simulator says")
        if problems:
            print("  hint: PYTHONPATH=build/python python3 kernels/report.py writes the table anew")
        return 1 if problems else 0
    with open(path, "w") as f:
        f.write(before + BEGIN + "\n" + "\n".join(new) + "\n" + END + after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
