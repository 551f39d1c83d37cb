#!/usr/bin/env python3
"""Predicted times of public kernels themselves, beside the published ones.

    python3 bench/neuron-validation/public.py FOLDER [TEXT]      from the root, after `make nki`

FOLDER holds clones named as their repositories (zhang677/AccelOpt, aws-neuron/nki-samples, ucb-bar/autocomp); nothing in
them is copied, and what is missing is skipped by name. TEXT picks kernels. Each runs unmodified with --timing-only
through `frontier nki run`. Last columns: error, whether the bounds enclose the published time. A published time that
includes the launch is compared with the prediction plus launch.
"""
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCH = "AccelOpt/NKIBench/kernels/"
MAMBA = "nki-samples/src/nki_samples/tutorials/fused_mamba/mamba_nki_kernels.py"
ATTENTION = "nki-samples/src/nki_samples/tutorials/attention_fwd_performance/attention_kernels.py"


@dataclasses.dataclass
class Point:
    name: str
    path: str  # below FOLDER
    arguments: list  # "4096x128" an fp32 array, "bf16:4096x128" one of bf16, a number itself, {} by keyword
    published: float  # us
    machine: str = "trn1"
    function: str = "kernel"
    launch: bool = False  # the published time includes it


def bench(name, arguments, published):
    return Point(name.rsplit("_", 1)[0], BENCH + name + ".py", arguments, published)


def mamba(version, channels, length, published):
    shapes = [f"1x{channels}x{length}"] * 2 + [f"{channels}x16"] + [f"1x16x{length}"] * 2
    return Point(f"mamba_{version} {channels} channels, {length}", MAMBA, shapes, published, "trn1", f"mamba_{version}", True)


def attention(version, length, published):
    return Point(f"attn_fwd_{version} {length}", ATTENTION, [f"bf16:128x{length}"] * 3, published, "trn2",
                 f"attn_fwd_{version}", True)


# Sources: NKIBench's baselines (AccelOpt, profile_results.csv); the fused Mamba tutorial; junjietang.dev (flash
# attention on Trainium, version 7 of the tutorial's kernels); Autocomp's post on conv1d.
POINTS = [
    bench("adamw_M10944_N2048_0", ["10944x2048"] * 4, 2000),
    bench("add_rmsnorm_matmul_M4096_N2048_K1024_0", ["4096x1024", "1024x2048", 1e-5, "4096x1024", "1024"], 1222),
    bench("bmm_B16_M4096_K64_N4096_0", ["16x4096x64", "16x64x4096"], 4611),
    bench("bmm_softmax_B16_K64_M4096_N4096_0", ["16x4096x64", "16x64x4096"], 12000),
    bench("gqa_full_B1_N4096_QH16_KH8_D128_0", ["32x128x16x128", "1x8x4x128x8x128", "1x32x128x1024"], 19111),
    bench("lora_M4096_N12288_K5120_R128_0", ["8x4x128x40x128", "40x128x12288", "40x128x128", "128x12288"], 30166),
    bench("mamba_M7168_C256_S16_0", ["256x7168", "256x7168", "256x16", "16x7168", "16x7168"], 2889),
    bench("matmul_M4096_N12288_K5120_0", ["32x128x40x128", "40x128x12288"], 35200),
    bench("matmul_add_rmsnorm_M4096_N2048_K2048_0", ["4096x2048", "2048x2048", 1e-5, "4096x2048", "2048"], 2667),
    bench("rmsnorm_matmul_M4096_N2048_K1024_0", ["32x128x1024", "8x128x2048"], 1056),
    bench("rope_single_freq_apply_B1_H64_N4096_D128_0", ["128x262144", "64x262144", "64x262144"], 4333),
    bench("silu_M4096_N7168_0", ["128x32x7168"], 1333),
    bench("swiglu_M4096_N3072_K1024_0", ["8x4x128x8x128", "8x128x3072", "24x128x1024", "8x128x3072"], 4222),
    bench("transpose_matmul_M4096_K2048_N10944_0", ["128x16x4096", "128x16x10944"], 9610),
    mamba("v1", 256, 512, 172.93),
    mamba("v1", 4096, 512, 2340),
    mamba("v2", 4096, 512, 1610),
    mamba("v2", 4096, 8192, 53330),
    mamba("v3", 4096, 8192, 27800),
    attention("v7", 4096, 400),
    attention("v7", 16384, 6236),
    Point("conv1d_depthwise_default", "autocomp/sols/trn-advanced-nki1/4_conv1d_ref.py",
          ["8x512x1x2048", "512x1x1x3", {"padding": [[0, 0], [1, 1]]}], 8007, "trn1", "solution", True),
]

# Some files expect the usual names in place.
RUNNER = """
import json, pathlib, sys
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
path = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(path.parent))
names = {"__name__": "public_kernel", "__file__": str(path), "np": np, "nki": nki, "nisa": nisa, "nl": nl}
exec(compile(path.read_text(), str(path), "exec"), names)

def array(text):
    dtype, _, shape = text.rpartition(":")
    zeros = np.zeros([int(n) for n in shape.split("x")], np.float32)
    if dtype != "bf16":
        return zeros
    import ml_dtypes
    return zeros.astype(ml_dtypes.bfloat16)

given = json.loads(sys.argv[3])
keywords = given.pop() if isinstance(given[-1], dict) else {}
names[sys.argv[2]](*[array(a) if isinstance(a, str) else a for a in given], **keywords)
"""


def run(point, folder, runner):
    command = ["build/frontier", "nki", "run", runner, "--machine", point.machine, "--timing-only", "--json", "--",
               str(folder / point.path), point.function, json.dumps(point.arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    if not answer.get("kernels"):
        return None, answer.get("error", {}).get("what", done.stderr.strip()[-200:])
    return next(iter(answer["kernels"].values())), None


def judge(point, result):
    """Prints a line; the error and whether the bounds enclose the published time."""
    launch = result["launch_us"] if point.launch else 0
    predicted, low, high = (result[key] + launch for key in ("predicted_us", "lower_bound_us", "program_order_us"))
    error, inside = predicted / point.published - 1, low <= point.published <= high
    print(f"{point.name:44} {point.machine} {point.published:9.0f} {predicted:9.1f} {low:9.1f} {high:9.1f} {error:+8.1%}  "
          f"{'yes' if inside else 'no'}", flush=True)
    return abs(error), inside


def main():
    folder = pathlib.Path(sys.argv[1])
    text = sys.argv[2] if len(sys.argv) > 2 else ""
    judged = []
    with tempfile.TemporaryDirectory() as scratch:
        runner = pathlib.Path(scratch) / "runner.py"
        runner.write_text(RUNNER)
        print(f"{'kernel':44} {'chip':4} {'published':>9} {'predicted':>9} {'lower':>9} {'order':>9} {'error':>8}  in")
        for point in POINTS:
            if text not in point.name:
                continue
            if not (folder / point.path).exists():
                print(f"{point.name:44} needs {point.path}")
                continue
            result, why = run(point, folder, str(runner))
            if result is None:
                print(f"{point.name:44} {point.machine} {point.published:9.0f} does not run: {why}", flush=True)
                continue
            judged.append(judge(point, result))
    if judged:
        print(f"{len(judged)} kernels: median error {statistics.median(e for e, _ in judged):.1%}, "
              f"bounds enclose {sum(i for _, i in judged)}")


if __name__ == "__main__":
    main()
