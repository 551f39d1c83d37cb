"""What a launch has (machine, grid, program ids) and what it leaves behind (results of each kernel).

One process runs one kernel at a time; `launch` is the running one. `options` come from the command line,
once.
"""

import os

from . import _core

MACHINES = {
    "trn1": "trn1",
    "inf2": "trn1",
    "gen2": "trn1",
    "trn2": "trn2",
    "gen3": "trn2",
    "trn3": "trn3",
    "gen4": "trn3",
}


TIMELINE_COLUMNS = 72


class OutputError(Exception):
    """A file that --trace or --html names cannot be written: nothing the kernel did."""


class Options:
    machine = None  # --machine
    timing_only = False  # --timing-only
    trace = html = None  # --trace FILE, --html FILE
    timeline = False  # --timeline
    source_lines = 8
    unwritten = "error"  # --unwritten: or "nan", what SBUF holds before it is written
    warnings = True  # of Python that AWS's compiler refuses
    time = "all"  # --time: which launches the clock replays


options = Options()
results = []  # one Result a timed launch, in order
seen = set()  # kernels and shapes of which "first" has timed a launch


class time_launches:
    """Which launches the clock replays: "all", "first" (one of each kernel and its shapes) or "none".

        with frontier_nki.time_launches("first"):
            train(steps=1000)

    The numbers are the same; a launch that is not timed leaves no result behind. Holds from the call on, or
    to the end of the `with`.
    """

    CHOICES = ("all", "first", "none")

    def __init__(self, which):
        if which not in self.CHOICES:
            raise _core.UsageError(f"time_launches({which!r}): one of {', '.join(self.CHOICES)}")
        self.before, options.time = options.time, which

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        options.time = self.before


def timed(name, shapes):
    """Whether the launch that ends now is to be timed."""
    if options.time != "first":
        return options.time == "all"
    key = (name, *shapes)
    if key in seen:
        return False
    seen.add(key)
    return True


class Result:
    """One launch: its name, time, and where the time went."""

    def __init__(self, name, machine, time, lines, shapes, timeline=None):
        self.name, self.machine, self.time, self.lines, self.shapes = name, machine, time, lines, shapes
        self.timeline = timeline  # {engine: busy share of each column}, when asked for

    @property
    def predicted_us(self):
        return self.time["predicted_ns"] / 1e3

    def shares(self):
        total = self.time["predicted_ns"] or 1.0
        return {engine: ns / total for engine, ns in self.time["busy_ns"].items()}


class Launch:
    """The running kernel: which program of which grid."""

    def __init__(self, core, grid, old):
        self.core, self.grid, self.old = core, tuple(grid), old
        self.program = (0,) * len(self.grid)
        self.names = 0
        self.pending = None  # a value of the older style that no instruction has made yet
        self.pair = None  # of two programs that meet
        self.position, self.outputs = 0, {}

    def fresh_name(self):
        self.names += 1
        return f"t{self.names}"


launch = None
world = None  # the ranks.World that runs, where several ranks do


def running():
    if launch is None:
        raise _core.UsageError("no kernel is running: call this inside a function with @nki.jit")
    return launch


def machine_named(name):
    """(name, path of its file)."""
    short = MACHINES.get(name)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machines")
    path = os.path.join(folder, f"{short}.toml") if short else name
    if not os.path.exists(path):
        raise _core.UsageError(
            f"no machine '{name}'; there are trn1, trn2, trn3, or the path of a machine file"
        )
    return short or name, path


def target(asked=None):
    """--machine, then the environment, then what the kernel asks for, then trn2."""
    return machine_named(
        options.machine or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE") or asked or "trn2"
    )
