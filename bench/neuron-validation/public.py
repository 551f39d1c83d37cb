#!/usr/bin/env python3
"""Predicted times of the public NKIBench kernels themselves, beside the published ones.

    python3 bench/neuron-validation/public.py CHECKOUT [TEXT]      from the root, after `make nki`

CHECKOUT is a clone of zhang677/AccelOpt (its NKIBench/kernels are read, nothing is copied); TEXT picks kernels by name.
Each kernel runs unmodified with --timing-only on trn1 through `frontier nki run`. The published numbers are the
baseline column of the same kernels. Last columns: error, whether the bounds enclose the published time.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

# kernel file, shapes of its fp32 arrays (a number: a Python float), published us of the baseline on trn1
KERNELS = [
    ("adamw_M10944_N2048_0", ["10944x2048"] * 4, 2000),
    ("add_rmsnorm_matmul_M4096_N2048_K1024_0", ["4096x1024", "1024x2048", 1e-5, "4096x1024", "1024"], 1222),
    ("bmm_B16_M4096_K64_N4096_0", ["16x4096x64", "16x64x4096"], 4611),
    ("bmm_softmax_B16_K64_M4096_N4096_0", ["16x4096x64", "16x64x4096"], 12000),
    ("gqa_full_B1_N4096_QH16_KH8_D128_0", ["8x128x32x128", "1x8x2x128x32x128", "1x32x128x1024"], 19111),
    ("lora_M4096_N12288_K5120_R128_0", ["8x4x128x40x128", "40x128x12288", "40x128x128", "128x12288"], 30166),
    ("mamba_M7168_C256_S16_0", ["256x7168", "256x7168", "256x16", "16x7168", "16x7168"], 2889),
    ("matmul_M4096_N12288_K5120_0", ["32x128x40x128", "40x128x12288"], 35200),
    ("matmul_add_rmsnorm_M4096_N2048_K2048_0", ["4096x2048", "2048x2048", 1e-5, "4096x2048", "2048"], 2667),
    ("rmsnorm_matmul_M4096_N2048_K1024_0", ["32x128x1024", "8x128x2048"], 1056),
    ("rope_single_freq_apply_B1_H64_N4096_D128_0", ["128x262144", "64x262144", "64x262144"], 4333),
    ("silu_M4096_N7168_0", ["128x32x7168"], 1333),
    ("swiglu_M4096_N3072_K1024_0", ["8x4x128x8x128", "8x128x3072", "24x128x1024", "8x128x3072"], 4222),
    ("transpose_matmul_M4096_K2048_N10944_0", ["128x16x4096", "128x16x10944"], 9610),
]

RUNNER = """
import importlib.util, json, sys
import numpy as np
spec = importlib.util.spec_from_file_location("public_kernel", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.kernel(*[np.zeros([int(n) for n in a.split("x")], np.float32) if isinstance(a, str) else a
                for a in json.loads(sys.argv[2])])
"""


def run(path, shapes, runner):
    command = ["build/frontier", "nki", "run", runner, "--machine", "trn1", "--timing-only", "--json", "--", str(path),
               json.dumps(shapes)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    if not answer.get("kernels"):
        return None, answer.get("error", {}).get("what", done.stderr.strip()[-200:])
    return next(iter(answer["kernels"].values())), None


def main():
    checkout = pathlib.Path(sys.argv[1])
    text = sys.argv[2] if len(sys.argv) > 2 else ""
    errors, enclosed = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        runner = pathlib.Path(scratch) / "runner.py"
        runner.write_text(RUNNER)
        print(f"{'kernel':44} {'published':>9} {'predicted':>9} {'lower':>9} {'order':>9} {'error':>8}  in")
        for name, shapes, published in KERNELS:
            if text not in name:
                continue
            result, why = run(checkout / "NKIBench" / "kernels" / f"{name}.py", shapes, str(runner))
            if result is None:
                print(f"{name:44} {published:9.0f} does not run: {why}", flush=True)
                continue
            predicted, low, high = result["predicted_us"], result["lower_bound_us"], result["program_order_us"]
            inside = low <= published <= high
            errors.append(abs(predicted / published - 1))
            enclosed += inside
            print(f"{name:44} {published:9.0f} {predicted:9.1f} {low:9.1f} {high:9.1f} {predicted / published - 1:+8.1%}  "
                  f"{'yes' if inside else 'no'}", flush=True)
    if errors:
        print(f"{len(errors)} kernels: median error {statistics.median(errors):.1%}, bounds enclose {enclosed}")


if __name__ == "__main__":
    main()
