"""What `frontier nki check` asks a kernel: shapes, values, and how far an answer may be off.

Shapes. Every number in the given shapes is a size of its own kind: where it occurs again, it means the same thing
and changes along. From them come edge shapes (each size one more, one less, all as small as can be) and hidden
ones, drawn from the seed up to twice the size. Sizes that the kernel fixes are left alone.

Values. Random ones, and those that catch mistakes: zeros, ones, small, large and huge magnitudes, magnitudes mixed
in one row, one hot value.

Closeness. An element may be off by the dtype's tolerance times the largest magnitude of its row - or a twentieth of
the output's largest, where that is more - and by what the inputs' own rounding explains: the reference is asked again
with every input off by a unit in the last place, and four times the change of a row is allowed. So a difference of
large scores is not held against a kernel, and a small row beside a large one is still looked at. An output that
should be all zeros is measured by the others and by the gradient that came in. Two steps between
float16's smallest numbers are always allowed.
"""

import dataclasses
import math

import numpy as np

from . import _core, arrays
from .types import dtype_of

TOLERANCE = {"float32": 1e-4, "bfloat16": 2e-2, "float16": 4e-3}
ULP = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}
LARGEST = {"float16": 65504.0}
STEP = {"float16": 2.0**-24}  # between numbers near zero, where it matters
MOST_VALUES = 2**28  # of one argument: 1 GiB in fp32, and several copies are made
KINDS = ("given", "edge", "hidden")


# ---- shapes ----


@dataclasses.dataclass(frozen=True)
class Argument:
    """Sizes of one argument; `ids` is the number the integers stay below, for ids."""

    sizes: tuple
    positive: bool = False
    ids: int = 0

    def __str__(self):
        more = f":ids{self.ids}" if self.ids else ":positive" if self.positive else ""
        return "x".join(map(str, self.sizes)) + more

    def mapped(self, sizes):
        new = tuple(sizes.get(s, s) for s in self.sizes)
        return Argument(new, self.positive, sizes.get(self.ids, self.ids))


def _argument(text):
    sizes, _, kind = text.partition(":")
    ids = int(kind.removeprefix("ids")) if kind.startswith("ids") else 0
    if kind not in ("", "positive") and ids < 1:
        raise ValueError(kind)
    return Argument(tuple(int(n) for n in sizes.split("x")), kind == "positive", ids)


def shapes_of(text):
    """The arguments of one call: "128x64,64x512" is two."""
    try:
        shapes = [_argument(s) for s in text.split(",")]
    except ValueError:
        shapes = [Argument(())]
    if any(not a.sizes or min(a.sizes) < 1 or math.prod(a.sizes) > MOST_VALUES for a in shapes):
        raise _core.UsageError(
            f"--shape {text}: give sizes from 1 with x between them and , between arguments, as in "
            f"128x512,128x512 or 512x64,128:ids512; at most {MOST_VALUES} values an argument"
        )
    return tuple(shapes)


def label(arguments):
    return ",".join(map(str, arguments))


def free_sizes(arguments, fixed):
    """{size that may change: the least it may be}; a last dimension of 1 makes norms of a single number."""
    found = {}
    for argument in arguments:
        for place, size in enumerate(argument.sizes):
            last = place == len(argument.sizes) - 1 and not argument.ids
            found[size] = max(found.get(size, 1), 2 if last else 1)
        if argument.ids:
            found[argument.ids] = max(found.get(argument.ids, 1), 1)
    return {size: least for size, least in sorted(found.items()) if size not in fixed}


def _fits(arguments, given):
    most = max(2**21, 2 * max(math.prod(a.sizes) for a in given))
    return all(math.prod(a.sizes) <= most for a in arguments)


def edge_shapes(given, fixed):
    free = free_sizes(given, fixed)
    changes = [{s: n} for s, least in free.items() for n in (s - 1, s + 1) if n >= least]
    changes.append({s: least for s, least in free.items()})
    return _distinct(given, changes)


def hidden_shapes(given, fixed, random, count):
    """Sizes up to twice the given ones; half of them beside a multiple of 32, where tiles end."""
    free = free_sizes(given, fixed)
    changes = []
    for _ in range(count):
        change = {}
        for size, least in free.items():
            drawn = int(random.integers(least, 2 * size + 1))
            if random.integers(2):
                drawn = max(least, drawn // 32 * 32 + int(random.integers(-1, 2)))
            change[size] = drawn
        changes.append(change)
    return _distinct(given, changes)


def _distinct(given, changes):
    found = []
    for change in changes:
        shapes = tuple(a.mapped(change) for a in given)
        if shapes != given and shapes not in found and _fits(shapes, given):
            found.append(shapes)
    return found


# ---- values ----


def _hot(random, shape):
    flat = np.zeros(math.prod(shape))
    flat[random.integers(flat.size)] = 1
    return flat.reshape(shape)


VALUES = {
    "random": lambda random, shape: random.standard_normal(shape),
    "zeros": lambda random, shape: np.zeros(shape),
    "ones": lambda random, shape: np.ones(shape),
    "small": lambda random, shape: random.standard_normal(shape) * 1e-3,
    "large": lambda random, shape: random.standard_normal(shape) * 1e3,
    "huge": lambda random, shape: random.uniform(-3e4, 3e4, shape),
    "mixed": lambda random, shape: random.choice([-1.0, 1.0], shape) * 10 ** random.uniform(-3, 3, shape),
    "one hot": _hot,
}


def value(argument, name, dtype, random):
    """An array for an argument, in the dtype; ids are int32 and mostly ignore the name."""
    if argument.ids:
        fixed = {"zeros": 0, "ones": argument.ids - 1}.get(name)
        ids = random.integers(0, argument.ids, argument.sizes) if fixed is None else fixed
        return np.broadcast_to(ids, argument.sizes).astype(np.int32)
    numbers = VALUES[name](random, argument.sizes)
    return arrays.narrow(np.abs(numbers) if argument.positive else numbers, dtype)


def wide(array):
    """What the reference is given: float64 of exactly these values; integers as they are."""
    if getattr(array, "nki_dtype", None) is None and np.asarray(array).dtype.kind in "iu":
        return np.array(array)
    return array.astype(np.float32).astype(np.float64)


def nudged(array, dtype, random):
    """Every value off by a unit in the last place, up or down."""
    if array.dtype.kind != "f":
        return array
    return array * (1 + ULP[str(dtype)] * random.choice([-1.0, 1.0], array.shape))


# ---- closeness ----


@dataclasses.dataclass
class Verdict:
    difference: float  # in units the tolerance is in; inf where there is no number
    text: str = ""  # what is wrong


def dtype_name(array):
    return getattr(array, "nki_dtype", None) or str(getattr(array, "dtype", ""))


def many(answer):
    return tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)


SHARE = 0.05  # of the largest magnitude, by which rows of smaller numbers are measured


def largest(values):
    values = np.abs(np.asarray(values, dtype=np.float64))
    return float(values.max(initial=0, where=np.isfinite(values)))


def _rows(values):
    """The largest magnitude of each row, for rows of more than one number; else of all."""
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    whole = values.ndim < 2 or values.shape[-1] < 2
    return np.broadcast_to(finite.max(axis=None if whole else -1, keepdims=True, initial=0), values.shape)


def _stored(wanted, dtype):
    """What the dtype makes of values beyond its range."""
    most = LARGEST.get(dtype, np.inf)
    return np.where(wanted >= most, np.inf, np.where(wanted <= -most, -np.inf, wanted))


def _off(got, wanted, change, tolerance, floor):
    """Of each element, in units of tolerance; 0 where both are the same infinity or NaN, and where a unit in the last
    place of the inputs decides whether the reference is finite."""
    scale = np.maximum(_rows(wanted), floor) + 4 * _rows(change) / tolerance
    with np.errstate(invalid="ignore"):
        off = np.abs(got - wanted) / scale
    edge = (np.isfinite(wanted) & ~np.isfinite(change)) | (np.isinf(wanted) & np.isinf(change))
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted)) | edge
    return np.where(same, 0, np.where(np.isfinite(off), off, np.inf))


def judge_one(got, wanted, again, tolerance, name, elsewhere):
    dtype = dtype_name(got)
    got = wide(got) if dtype in ULP or dtype == "float64" else np.asarray(got)
    wanted, again = np.asarray(wanted), np.asarray(again)
    if got.shape == (*wanted.shape, 1):  # a column, as kernels keep numbers of tokens
        got = got[..., 0]
    if got.shape != wanted.shape:
        return Verdict(np.inf, f"{name} has the shape {got.shape}, the reference's {wanted.shape}")
    if not got.size:
        return Verdict(0.0)
    if got.dtype.kind in "iub":
        off = np.where(got == wanted, 0, np.inf)
    else:
        wanted = _stored(wanted.astype(np.float64), dtype)
        with np.errstate(invalid="ignore"):
            change = _stored(again, dtype) - wanted
        least = max(2 * STEP.get(dtype, 0) / tolerance, 1e-30)
        off = _off(got, wanted, change, tolerance, max(least, SHARE * (largest(wanted) or elsewhere)))
    place = np.unravel_index(int(np.argmax(off)), off.shape)
    worst = float(off[place])
    if worst <= tolerance:
        return Verdict(worst)
    at = ", ".join(str(int(i)) for i in place)
    return Verdict(worst, f"{name}[{at}] is {got[place]:.6g}, the reference's {wanted[place]:.6g}")


def judge(got, wanted, again, tolerance, name="output", upstream=()):
    """The worst of several outputs."""
    got, wanted, again = many(got), many(wanted), many(again)
    if len(got) != len(wanted):
        return Verdict(np.inf, f"returns {len(got)} arrays, the reference {len(wanted)}")
    elsewhere = max(largest(a) for a in (*wanted, *upstream))
    verdicts = [
        judge_one(g, w, a, tolerance, f"{name} {i}" if len(got) > 1 else name, elsewhere)
        for i, (g, w, a) in enumerate(zip(got, wanted, again))
    ]
    return max(verdicts, key=lambda v: (bool(v.text), v.difference))


# ---- gradients without a backward reference ----


def directions(shape, random):
    """Unit by unit for small arrays, else 32 short stretches of random signs."""
    size = math.prod(shape)
    if size <= 256:
        return np.eye(size).reshape(size, *shape)
    found = np.zeros((32, size))
    for row in found:
        start = random.integers(size - 15)
        row[start : start + 16] = random.choice([-1.0, 1.0], 16)
    return found.reshape(32, *shape)


def slopes(function, inputs, index, upstream, along):
    """Central differences of sum(function(*inputs) * upstream) along each direction of input `index`."""
    found = []
    step = 1e-5 * max(1e-3, float(np.abs(inputs[index]).max(initial=0)))
    for direction in along:
        moved = list(inputs)
        sides = []
        for sign in (1, -1):
            moved[index] = inputs[index] + sign * step * direction
            sides.append(sum(float((o * u).sum()) for o, u in zip(many(function(*moved)), upstream)))
        found.append((sides[0] - sides[1]) / (2 * step))
    return np.array(found)


def required_dtype(name):
    dtype = str(dtype_of(name))
    if dtype not in TOLERANCE:
        raise _core.UsageError(f"--dtype {name}: one of {', '.join(TOLERANCE)}")
    return dtype
