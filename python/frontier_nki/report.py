"""What `frontier nki run` prints of each kernel, and its --json object."""

import json
import os
import sys

from . import session

_NAMES = {
    "tensor": "PE",
    "vector": "Vector",
    "scalar": "Scalar",
    "gpsimd": "GpSimd",
    "sync": "Sync",
    "dma": "DMA",
}
json_mode = False
error = None  # what broke a kernel, for --json


def fail(code, where, what, hint, as_json):
    """An error for people, and as an object; the exit code."""
    sys.stderr.write(f"frontier: error: {where}: {what}\n  hint: {hint}\n")
    if as_json:
        said = {"what": what, "where": where, "hint": hint}
        print(json.dumps({"error": said, "exit": code}, sort_keys=True))
    return code


def note(text):
    print(f"frontier nki: {text}", file=sys.stderr)


def _bytes(n):
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.4g} {unit}"
        n /= 1000.0
    return f"{n:.4g} GB"


def _microseconds(ns):
    return f"{ns / 1e3:.2f} us" if ns < 1e6 else f"{ns / 1e6:.3f} ms"


def peak_flops(machine):
    """bf16 multiply-adds of the PE."""
    return 2.0 * 128 * 128 * machine["tensor_ghz"] * 1e9


def summary(result, machine):
    """The numbers of one launch, for --json and for print_result."""
    t = result.time
    seconds = t["predicted_ns"] / 1e9 or 1.0
    hbm = t["hbm_read_bytes"] + t["hbm_write_bytes"]
    descriptors = t["dma_descriptors"]
    stalls = {}
    for engine, reasons in t["stall_ns"].items():
        for reason, ns in reasons.items():
            stalls[f"{engine}: {reason}"] = ns / 1e3
    return {
        "basis": "simulated",
        "machine": result.machine,
        "predicted_us": t["predicted_ns"] / 1e3,
        "lower_bound_us": t["lower_bound_ns"] / 1e3,
        "program_order_us": t["program_order_ns"] / 1e3,
        "launch_us": t["launch_ns"] / 1e3,
        "band_us": [t["band"]["low_ns"] / 1e3, t["band"]["high_ns"] / 1e3],
        "nearest": t["band"]["nearest"],
        "nearest_ratio": t["band"]["nearest_ratio"],
        "nearest_distance": t["band"]["distance"],
        "busy_share": result.shares(),
        "flops": t["flops"],
        "utilisation": t["flops"] / seconds / peak_flops(machine),
        "hbm_read_bytes": t["hbm_read_bytes"],
        "hbm_write_bytes": t["hbm_write_bytes"],
        "dma_bytes": t["dma_bytes"],
        "hbm_bytes_per_s": hbm / seconds,
        "dma_bytes_per_s": t["dma_bytes"] / seconds,
        "dma_descriptors": descriptors,
        "bytes_per_descriptor": t["dma_bytes"] / descriptors if descriptors else 0.0,
        "descriptor_efficiency": _descriptor_efficiency(t, machine),
        "sbuf_peak_bytes": t["sbuf_peak_bytes"],
        "psum_peak_banks": t["psum_peak_banks"],
        "spill_bytes": t["spill_bytes"],
        "instructions": t["instructions"],
        "guessed": t["guessed"],
        "removed": t["removed"],
        "stalls_us": dict(sorted(stalls.items(), key=lambda item: -item[1])),
        "lines": [
            {
                "file": f,
                "line": n,
                "busy_us": busy / 1e3,
                "stall_us": stall / 1e3,
                "instructions": count,
                "stall": reason,
            }
            for f, n, busy, stall, count, reason in result.lines[:32]
        ],
    }


def _descriptor_efficiency(t, machine):
    """Time that the bytes alone would take on the DMA engines, over that with the cost of each descriptor."""
    if not t["dma_descriptors"]:
        return 0.0
    moving = t["dma_bytes"] / machine["dma_bytes_per_ns"]
    return moving / (moving + t["dma_descriptors"] * machine["dma_descriptor_ns"])


def print_result(result, machine, out):
    s = summary(result, machine)
    print(
        f"{result.name}  on {result.machine}  (simulated; {s['instructions']} instructions, "
        f"{s['guessed']} of guessed cost"
        + (f", repeats left out: {s['removed']}" if s["removed"] else "")
        + ")",
        file=out,
    )
    print(
        f"  time        {_microseconds(s['predicted_us'] * 1e3)}   between {_microseconds(s['lower_bound_us'] * 1e3)} "
        f"(perfect overlap) and {_microseconds(s['program_order_us'] * 1e3)} (program order); a launch adds about "
        f"{s['launch_us']:.0f} us",
        file=out,
    )
    print(
        f"  band        {_microseconds(s['band_us'][0] * 1e3)} to {_microseconds(s['band_us'][1] * 1e3)}, by published "
        f"kernels that load the engines alike; nearest {s['nearest']} (took x {s['nearest_ratio']:.2f} of its "
        f"prediction, distance {s['nearest_distance']:.2f})",
        file=out,
    )
    shares = "  ".join(
        f"{_NAMES.get(e, e)} {share:.1%}" for e, share in s["busy_share"].items() if share > 0.0005
    )
    print(f"  busy        {shares or 'nothing'}", file=out)
    print(f"  work        {s['flops']:.4g} FLOPs, {s['utilisation']:.1%} of the PE's bf16 peak", file=out)
    print(
        f"  HBM         {_bytes(s['hbm_read_bytes'])} read, {_bytes(s['hbm_write_bytes'])} written, "
        f"{_bytes(s['hbm_bytes_per_s'])}/s of {_bytes(machine['hbm_stack_bytes_per_ns'] * 1e9)}/s",
        file=out,
    )
    print(
        f"  DMA         {_bytes(s['dma_bytes'])} in {s['dma_descriptors']:.0f} descriptors of "
        f"{s['bytes_per_descriptor']:.0f} B, {_bytes(s['dma_bytes_per_s'])}/s, descriptor efficiency "
        f"{s['descriptor_efficiency']:.0%}",
        file=out,
    )
    print(
        f"  memory      SBUF {s['sbuf_peak_bytes']} of {machine['sbuf_usable_bytes']} B a partition, PSUM "
        f"{s['psum_peak_banks']} of {machine['psum_banks']} banks"
        + (f", {_bytes(s['spill_bytes'])} spilled" if s["spill_bytes"] else ""),
        file=out,
    )
    if result.timeline:
        _print_timeline(result, s, out)
    _print_top(s, out)


_SHADES = " ░▒▓█"
_PLAIN_SHADES = " .-+#"


def _shade(share, shades):
    """Blank for nothing at all, then quarters."""
    return shades[0] if share < 0.005 else shades[min(4, 1 + int(share * 4))]


def _print_timeline(result, s, out):
    columns = result.timeline
    try:
        _SHADES.encode(getattr(out, "encoding", None) or "ascii")
        shades = _SHADES
    except UnicodeEncodeError:
        shades = _PLAIN_SHADES
    step = _microseconds(s["predicted_us"] * 1e3 / session.TIMELINE_COLUMNS)
    print(f"  timeline    a column is {step}; busy under 25, 50, 75, 100 %: {' '.join(shades[1:])}", file=out)
    for engine, row in columns.items():
        if any(share >= 0.005 for share in row):
            name = _NAMES.get(engine, engine)
            print(f"    {name:<8}|{''.join(_shade(share, shades) for share in row)}|", file=out)


def _print_top(s, out):
    stalls = [f"{name} {us:.2f} us" for name, us in list(s["stalls_us"].items())[:4] if us > 0.005]
    print(f"  stalls      {'; '.join(stalls) or 'none'}", file=out)
    print("  costly lines (engine time + waiting)", file=out)
    for line in s["lines"][:5]:
        name = os.path.basename(line["file"])
        why = f", waits: {line['stall']}" if line["stall_us"] > 0.005 and line["stall"] != "none" else ""
        print(
            f"    {name}:{line['line']}  {line['busy_us']:.2f} + {line['stall_us']:.2f} us in "
            f"{line['instructions']} instructions{why}",
            file=out,
        )


def as_json(results, machines):
    return {"kernels": {r.name: summary(r, machines[r.machine]) for r in results}}
