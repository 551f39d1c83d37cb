"""Index tiles and masks of the older style: nl.arange, nl.mgrid, and what kernels compute from them.

An index tile is an affine function of its positions: constant + sum of coefficient[d] * position[d].
Kernels only add, subtract and scale them, so the access pattern of tile[i, j] falls out of the coefficients
and no grid is ever made. A comparison makes a Mask: a conjunction of "affine >= 0". As every mask of
practice bounds one dimension at a time, a mask becomes a box - a range in each dimension - and masked work
is the same work on a smaller view.
"""

from .. import _core


class Index:
    """An integer function of the positions of `shape`."""

    __slots__ = ("shape", "constant", "coefficients")

    def __init__(self, shape, constant, coefficients):
        self.shape, self.constant, self.coefficients = tuple(shape), constant, tuple(coefficients)

    ndim = property(lambda self: len(self.shape))

    def __getitem__(self, key):
        """[:, None] and its like: where the dimension goes."""
        key = key if isinstance(key, tuple) else (key,)
        shape, coefficients, at = [], [], 0
        for item in key:
            if item is None:
                shape.append(1)
                coefficients.append(0)
            elif item is Ellipsis:
                while self.ndim - at > sum(1 for k in key if k is not None and k is not Ellipsis):
                    shape.append(self.shape[at])
                    coefficients.append(self.coefficients[at])
                    at += 1
            elif isinstance(item, slice) and item == slice(None):
                shape.append(self.shape[at])
                coefficients.append(self.coefficients[at])
                at += 1
            else:
                raise _core.UsageError(f"an index tile is indexed with ':', None and '...', not {item!r}")
        return Index(
            shape + list(self.shape[at:]), self.constant, coefficients + list(self.coefficients[at:])
        )

    def __add__(self, other):
        if isinstance(other, Index):
            shape, a, b = align(self, other)
            return Index(shape, self.constant + other.constant, [x + y for x, y in zip(a, b)])
        return Index(self.shape, self.constant + int(other), self.coefficients)

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (other * -1 if isinstance(other, Index) else -int(other))

    def __rsub__(self, other):
        return self * -1 + other

    def __mul__(self, factor):
        if isinstance(factor, Index):
            raise _core.UsageError("a product of two index tiles is no access pattern")
        factor = int(factor)
        return Index(self.shape, self.constant * factor, [c * factor for c in self.coefficients])

    __rmul__ = __mul__

    def __floordiv__(self, divisor):
        raise _core.UsageError("index // n is no access pattern: use one index tile per dimension")

    def __mod__(self, divisor):
        raise _core.UsageError("index % n is no access pattern: use one index tile per dimension")

    def __ge__(self, other):
        return Mask([self - other])

    def __gt__(self, other):
        return Mask([self - other - 1])

    def __le__(self, other):
        return Mask([-(self - other)])

    def __lt__(self, other):
        return Mask([-(self - other) - 1])

    def __eq__(self, other):
        return Mask([self - other, -(self - other)])

    __hash__ = None

    @property
    def p(self):
        return self

    @property
    def x(self):
        return self

    def __repr__(self):
        return f"index{self.shape}"


def align(a, b):
    """Common shape of two index tiles, and the coefficients of each in it."""
    rank = max(a.ndim, b.ndim)
    shapes = [(1,) * (rank - t.ndim) + t.shape for t in (a, b)]
    coefficients = [(0,) * (rank - t.ndim) + t.coefficients for t in (a, b)]
    shape = []
    for x, y in zip(*shapes):
        if x != y and 1 not in (x, y):
            raise _core.UsageError(f"index tiles of shapes {a.shape} and {b.shape} do not match")
        shape.append(max(x, y))
    return tuple(shape), *coefficients


class Mask:
    """A conjunction of constraints affine >= 0."""

    __slots__ = ("constraints",)

    def __init__(self, constraints):
        self.constraints = constraints

    def __and__(self, other):
        if other is None or other is True:
            return self
        if other is False:
            return Mask([Index((1,), -1, (0,))])
        return Mask(self.constraints + other.constraints)

    __rand__ = __and__
    __mul__ = __and__

    def __or__(self, other):
        raise _core.UsageError("a mask with | is no access pattern: split the instruction in two")

    def permuted(self, order):
        out = []
        for c in self.constraints:
            pad = len(order) - c.ndim
            shape, coefficients = (1,) * pad + c.shape, (0,) * pad + c.coefficients
            out.append(Index([shape[d] for d in order], c.constant, [coefficients[d] for d in order]))
        return Mask(out)

    def box(self, shape):
        """[(first, last exclusive)] a dimension, or None when nothing is left."""
        limits = [[0, size] for size in shape]
        for c in self.constraints:
            coefficients = (0,) * (len(shape) - c.ndim) + c.coefficients
            used = [d for d, k in enumerate(coefficients) if k and shape[d] > 1]
            if not used:
                if c.constant < 0:
                    return None
            elif len(used) == 1:
                d, k = used[0], coefficients[used[0]]
                if k > 0:  # k * i >= -constant
                    limits[d][0] = max(limits[d][0], -(c.constant // k))
                else:
                    limits[d][1] = min(limits[d][1], c.constant // -k + 1)
            elif not self._whole(c, coefficients, shape):
                raise _core.UsageError(
                    "this mask is no box (it ties two dimensions together): use nisa.affine_select"
                )
        if any(first >= last for first, last in limits):
            return None
        return [tuple(limit) for limit in limits]

    @staticmethod
    def _whole(c, coefficients, shape):
        """Whether the constraint holds everywhere."""
        return c.constant + sum(min(0, k * (shape[d] - 1)) for d, k in enumerate(coefficients)) >= 0


def arange(*bounds):
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    count = len(range(int(start), int(stop), int(step)))
    return Index((count,), int(start), (int(step),))


class Grid(tuple):
    """nl.mgrid[...]: a tuple of index tiles, also as .p, .x, .y, ..."""

    p = property(lambda self: self[0])
    x = property(lambda self: self[1])
    y = property(lambda self: self[2])
    z = property(lambda self: self[3])


class _Mgrid:
    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        sizes = [len(range(s.start or 0, s.stop, s.step or 1)) for s in key]
        tiles = []
        for d, s in enumerate(key):
            coefficients = [0] * len(key)
            coefficients[d] = s.step or 1
            shape = [1] * len(key)
            shape[d] = sizes[d]
            tiles.append(Index(shape, s.start or 0, coefficients))
        return Grid(tiles)


mgrid = _Mgrid()
