"""neuronxcc.nki: the older style: return values, masks, index tiles; and its ways of running a kernel."""

from frontier_nki import _core, session
from frontier_nki.launch import Kernel

from . import compiler, isa, language, typing  # noqa: F401

tensor = typing.tensor


def _wrap(function):
    if isinstance(function, Kernel):
        return Kernel(function.function, True, function.grid, **function.options)
    return Kernel(function, True)


def jit(function=None, **options):
    """Runs on the simulated core; the compiler's options are accepted and change nothing."""
    return (lambda f: _wrap(f)) if function is None else _wrap(function)


baremetal = trace = jit


def simulate_kernel(kernel, *args, **kwargs):
    """The kernel's outputs for these arrays."""
    return _wrap(kernel)(*args, **kwargs)


class _Latency:
    """What nki.benchmark measures, from the prediction: without jitter, so every percentile is the same."""

    def __init__(self, microseconds):
        self.microseconds = microseconds

    def get_latency_percentile(self, percentile):
        return round(self.microseconds)


class _Benchmark(Kernel):
    """A kernel whose last call's predicted latency is in .benchmark_result, as after a run on hardware."""

    def __call__(self, *args, **kwargs):
        with session.time_launches("all"):
            result = super().__call__(*args, **kwargs)
        time = session.results[-1].time
        latency = _Latency((time["predicted_ns"] + time["launch_ns"]) / 1e3)
        self.benchmark_result = type("Result", (), {"nc_latency": latency, "device_latency": latency})()
        return result


def benchmark(function=None, **options):
    def wrap(f):
        return _Benchmark(f.function if isinstance(f, Kernel) else f, True)

    return wrap if function is None else wrap(function)


profile = benchmark
RuleError = _core.RuleError
