"""bench/bench_nki_calls.py: instructions a second from Python, on tiles of 128 x 64.

    PYTHONPATH=build/python python3 bench/bench_nki_calls.py

Processor time, so that a busy machine does not blur it. What a call costs beside its arithmetic: finding
the kernel's line, parsing by the descriptor table, rules, the record.
"""

import time

import numpy as np

import frontier_nki

frontier_nki.install()

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

CALLS = 100_000


@nki.jit
def loop(x, seconds):
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    for name, call in (
        ("tensor_tensor", lambda: nisa.tensor_tensor(dst=b, data1=a, data2=a, op=nl.add)),
        ("tensor_copy", lambda: nisa.tensor_copy(dst=b, src=a)),
        ("tensor_scalar", lambda: nisa.tensor_scalar(dst=b, data=a, op0=nl.multiply, operand0=2.0)),
        ("two slices and tensor_copy", lambda: nisa.tensor_copy(dst=b[:, 0:32], src=a[:, 32:64])),
        ("a new tile", lambda: nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)),
    ):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        seconds[name] = time.process_time() - start


if __name__ == "__main__":
    for on in (True, False):
        frontier_nki.session.options.timing_only = not on
        seconds = {}
        loop(np.ones((128, 64), np.float32), seconds)
        for name, taken in seconds.items():
            print(f"{'computed' if on else 'timing only':<12} {name:<28} {CALLS / taken:10,.0f} calls/s")
