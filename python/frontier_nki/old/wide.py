"""Views of more dimensions than an engine walks, and what is computed from them.

An instruction walks the partitions and four dimensions inside each. AWS's compiler of the older style makes
a loop of what indexes more; so does this: a Wide stands for one view or value for every position of the
dimensions that are cut off, and is made part by part when it is assigned. The smallest dimensions are cut,
as every round of the loop is an instruction.
"""

import itertools

from .. import ops
from ..types import dtype_of

WALKED = 5  # the partitions and four


def walked(pairs):
    """How many dimensions a walk of (stride, size) pairs, outermost first, takes once neighbours are merged."""
    count, outer = 0, None
    for stride, size in pairs:
        if size == 1:
            continue
        if outer is None or outer != stride * size:
            count += 1
        outer = stride
    return count


def cuts(shape):
    """The free dimensions to loop over so that WALKED are left: the smallest ones."""
    free = sorted(range(1, len(shape)), key=lambda d: shape[d])
    return tuple(sorted(free[: max(0, len(shape) - WALKED)]))


class Wide:
    """part(positions of the dimensions cut off) is a tile or a value of the others."""

    def __init__(self, shape, dtype, part):
        self.shape, self.dtype, self.part = tuple(shape), dtype_of(dtype), part

    ndim = property(lambda self: len(self.shape))

    def take(self, value):
        """self[...] = value."""
        from .value import assign

        for at in itertools.product(*(range(self.shape[d]) for d in cuts(self.shape))):
            assign(self.part(at), part_of(value, at))


def part_of(value, at):
    return value.part(at) if isinstance(value, Wide) else value


def combine(op, x, y):
    """x op y, part by part; a number is the same in every part."""
    wide = x if isinstance(x, Wide) else y
    for other in (x, y):
        if ops.is_tile(other) or (isinstance(other, Wide) and other.shape != wide.shape):
            raise ops._core.UsageError(
                f"a view of {wide.ndim} dimensions goes with numbers and views of its shape {wide.shape} only"
            )
    return Wide(wide.shape, wide.dtype, lambda at: ops.binary(op, part_of(x, at), part_of(y, at)))


for _python, _name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
    setattr(Wide, f"__{_python}__", lambda self, other, op=_name: combine(op, self, other))
    setattr(Wide, f"__r{_python}__", lambda self, other, op=_name: combine(op, other, self))
