"""nki.collectives between the ranks of frontier_nki.ranks(...).

Numbers: what moves is bits. A sum starts at the first rank of the replica group and adds the others in its
order, in float32, and is rounded once to the dtype of the destination (integers: to the nearest, saturated);
minimum and maximum take the operands as they are. A chip's ring starts elsewhere for each part of a tensor,
so its last bit may differ.

Outside of ranks(...) a collective refuses: there is nobody to meet.
"""

import os
import sys

import numpy as np

from . import _core, arrays, collective_time, isa, session

__all__ = [
    "ReplicaGroup",
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
]
OPERATIONS = {"add": np.add, "minimum": np.minimum, "maximum": np.maximum}
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class ReplicaGroup:
    """Lists of ranks; a collective runs within each list."""

    def __init__(self, groups=None):
        self.groups = [list(group) for group in groups or []]


def _refuse(call, rule, what, fix):
    """By the name of a rule of src/neuron/collective_rules.c."""
    raise _core.RuleError(f"{call}: {rule}: {what}\n  fix: {fix}")


def _line():
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else "?"


def _lists(group):
    lists = group.groups if isinstance(group, ReplicaGroup) else group
    return [list(ranks) for ranks in lists]


class Call:
    """One rank's half of a collective."""

    def __init__(self, name, sources, targets, group, work, **details):
        self.name, self.work, self.details = name, work, details
        self.sources, self.targets, self.group = list(sources), list(targets), group
        self.line = _line()
        if session.launch is None or session.world is None:
            raise _core.UsageError(
                f"nki.collectives.{name}: one process is one rank; frontier_nki.ranks(kernel, [arguments of "
                f"rank 0, of rank 1, ...]) runs several"
            )
        self.check_tensors()
        self.segment = session.world.segment()

    def __str__(self):
        return f"{self.name} at {self.line}"

    def check_tensors(self):
        tiles = self.sources + self.targets
        if not self.sources or any(not isinstance(tile, _core.Tile) for tile in tiles):
            _refuse(self, "collective_tensors", "srcs and dsts are lists of tensors", "srcs=[a], dsts=[b]")
        memories = {tile.memory for tile in tiles}
        if len(memories) > 1 or "psum" in memories:
            _refuse(self, "collective_tensors", f"tensors in {', '.join(sorted(memories))}", "all in HBM or all in SBUF")
        if "sbuf" in memories and not self.details.get("sbuf", True):
            _refuse(self, "collective_tensors", "tensors in SBUF", "this collective moves HBM tensors only")
        if "sbuf" in memories and len(self.targets) > self.details.get("channels", 1):
            _refuse(self, "collective_tensors", f"{len(self.targets)} tensors in SBUF", "several tensors at once only in HBM")
        if len(self.targets) * (len(self.sources) // len(self.targets)) != len(self.sources):
            _refuse(self, "collective_tensors", f"{len(self.sources)} sources, {len(self.targets)} destinations", "one each")
        for tile in self.sources:
            if not (tile.filled or session.options.timing_only):
                _refuse(self, "collective_unwritten", f"'{tile.name}' is sent and was never written, or not all of it", "write it first")
            if tile.dtype_name != self.targets[0].dtype_name:
                _refuse(self, "collective_tensors", f"{tile.dtype_name} into {self.targets[0].dtype_name}", "give both one dtype")

    def members(self, rank):
        """The ranks that meet here, this one among them, in the order of the group."""
        size = session.world.size
        lists = [list(range(size))] if self.group is None else _lists(self.group)
        ranks = sorted(r for group in lists for r in group)
        if ranks != list(range(size)):
            _refuse(
                self,
                "collective_group",
                f"replica groups {lists} of a world of {size} ranks",
                "every rank is in one list, once",
            )
        return next(group for group in lists if rank in group)

    def signature(self):
        shapes = [tuple(t.shape) for t in self.sources], [tuple(t.shape) for t in self.targets]
        return self.name, shapes, self.targets[0].dtype_name, sorted(self.details.items(), key=str)

    def perform(self, calls, members):
        """For all ranks of the group: read everything, then write."""
        for rank, call in zip(members, calls):
            if call.signature() != self.signature() or (
                self.group is not None and call.group is not None and _lists(call.group) != _lists(self.group)
            ):
                _refuse(
                    self,
                    "collective_agreement",
                    f"rank {members[0]} has {self.signature()[:3]}, rank {rank} {call.signature()[:3]} in {call}",
                    "all ranks of a group call one collective with the same shapes, dtypes and groups",
                )
        if session.options.timing_only:
            return
        read = [[arrays.read(tile) for tile in call.sources] for call in calls]
        for place, call in enumerate(calls):
            for k, target in enumerate(call.targets):
                value = self.work(read, place, k, members)
                if value is None:
                    continue
                if value.shape != tuple(target.shape):
                    what = f"{value.shape} into '{target.name}' of {tuple(target.shape)}"
                    _refuse(call, "collective_shape", what, "size the destination")
                arrays.receive(target, value)

    def cost(self, ranks):
        moved = sum(t.size * t.dtype.itemsize for t in self.sources[: len(self.targets)])
        return collective_time.cost(self.name, ranks, moved, session.launch.core.machine)


# ---- numbers ----


def _wide(array):
    return array.astype(np.float32)


def _reduced(items, op, dtype):
    """In order, in float32, rounded once."""
    total = _wide(items[0])
    for item in items[1:]:
        total = OPERATIONS[op](total, _wide(item))
    known = arrays.numpy_dtype(dtype)
    if known is None or known.kind not in "iu":
        return arrays.narrow(total, dtype)
    if op != "add":
        return OPERATIONS[op].reduce(items)
    limits = np.iinfo(known)
    return np.clip(np.rint(total.astype(np.float64)), limits.min, limits.max).astype(known)


def _operation(op):
    name = str(getattr(op, "__name__", getattr(op, "name", op)))
    if name not in OPERATIONS:
        raise _core.RuleError(f"collective_operation: op={name}\n  fix: a collective reduces with nl.add, nl.minimum or nl.maximum")
    return name


def _joined(items, axis):
    """Concatenation that keeps what dtype a Tagged array stands for."""
    joined = np.concatenate([np.asarray(item) for item in items], axis)
    tag = getattr(items[0], "nki_dtype", None)
    if tag:
        joined = joined.view(arrays.Tagged)
        joined.nki_dtype = tag
    return joined


def _part(array, count, place, name):
    if array.shape[0] % count:
        raise _core.RuleError(
            f"{name}: collective_dimension: {array.shape[0]} rows over {count} ranks\n  fix: make the first dimension a multiple of it"
        )
    step = array.shape[0] // count
    return array[place * step : (place + 1) * step]


def _axis(name, axis, allowed):
    if axis not in allowed:
        raise _core.RuleError(f"{name}: collective_dimension: collective_dim={axis}\n  fix: it is one of {allowed}")


# ---- the collectives ----


def all_reduce(srcs, dsts, replica_group, op, priority=None, name=None):
    op, dtype = _operation(op), str(dsts[0].dtype)
    work = lambda read, place, k, members: _reduced([r[k] for r in read], op, dtype)  # noqa: E731
    _meet(Call("all_reduce", srcs, dsts, replica_group, work, op=op))


def all_gather(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    _axis("all_gather", collective_dim, (0, 1) if dsts[0].memory == "sbuf" else (0,))
    work = lambda read, place, k, members: _joined([r[k] for r in read], collective_dim)  # noqa: E731
    _meet(Call("all_gather", srcs, dsts, replica_group, work, axis=collective_dim))


def reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None):
    _axis("reduce_scatter", collective_dim, (0,))
    op, dtype = _operation(op), str(dsts[0].dtype)

    def work(read, place, k, members):
        return _reduced([_part(r[k], len(members), place, "reduce_scatter") for r in read], op, dtype)

    _meet(Call("reduce_scatter", srcs, dsts, replica_group, work, op=op))


def all_to_all(srcs, dsts, replica_group, collective_dim, priority=None, name=None):
    _axis("all_to_all", collective_dim, (0,))

    def work(read, place, k, members):
        return _joined([_part(r[k], len(members), place, "all_to_all") for r in read], 0)

    _meet(Call("all_to_all", srcs, dsts, replica_group, work, sbuf=False))


def collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None):
    pairs = [tuple(pair) for pair in source_target_pairs]
    sources, targets = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(sources)) < len(pairs) or len(set(targets)) < len(pairs) or len(srcs) != 1:
        raise _core.RuleError(
            f"collective_permute: collective_route: pairs {pairs}\n  fix: one tensor; a rank sends once at most and receives once at most"
        )

    def work(read, place, k, members):
        return read[sources[targets.index(place)]][k] if place in targets else None

    call = Call("collective_permute", srcs, dsts, None, work, sbuf=False, pairs=tuple(pairs))
    if not all(0 <= rank < session.world.size for rank in sources + targets):
        what = f"pairs {pairs} outside of a world of {session.world.size} ranks"
        _refuse(call, "collective_route", what, "number ranks from 0")
    _meet(call)


def _channels(name, lists, channel_ids):
    if list(channel_ids) != list(range(len(lists))) or len(lists) > 4 or any(len(item) != 1 for item in lists):
        raise _core.RuleError(
            f"{name}: collective_route: {len(lists)} channels, channel_ids {list(channel_ids)}\n"
            f"  fix: 1 to 4 channels numbered from 0, one tensor each"
        )
    return [item[0] for item in lists]


def collective_permute_implicit(
    srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,), priority=None, name=None
):
    what = "collective_permute_implicit"
    sources = _channels(what, srcs_by_channel, channel_ids)
    targets = _channels(what, dsts_by_channel, channel_ids)
    work = lambda read, place, k, members: read[place - 1][k]  # noqa: E731
    _meet(Call(what, sources, targets, replica_group, work, channels=len(targets)))


def collective_permute_implicit_reduce(
    srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=(0,), priority=None, name=None
):
    what, op = "collective_permute_implicit_reduce", _operation(op)
    sources = _channels(what, srcs0_by_channel, channel_ids) + _channels(what, srcs1_by_channel, channel_ids)
    targets = _channels(what, dsts_by_channel, channel_ids)
    dtype = str(targets[0].dtype)

    def work(read, place, k, members):
        return _reduced([read[place - 1][k], read[place - 1][len(targets) + k]], op, dtype)

    _meet(Call(what, sources, targets, replica_group, work, op=op, channels=len(targets)))


def collective_permute_implicit_current_processing_rank_id(iteration_id, replica_group, channel_id=0, name=None):
    """A register with the rank whose data has arrived after so many hops of the ring."""
    mine = rank_id()
    ring = next((group for group in _lists(replica_group) if mine in group), None)
    if ring is None:
        raise _core.RuleError(f"collective_group: rank {mine} is in no replica group\n  fix: every rank is in one list, once")
    return isa.register_alloc(ring[(ring.index(mine) - int(iteration_id)) % len(ring)])


def rank_id(name=None):
    """The number of the running rank; 0 where there is one."""
    return session.world.holder if session.world is not None else 0


def _meet(call):
    session.world.meet(call)


def _variable(name):
    def collective(*args, **kwargs):
        raise _core.UsageError(f"nki.collectives.{name}: collectives of variable length are not simulated")

    collective.__name__ = name
    return collective


all_gather_v, all_to_all_v = _variable("all_gather_v"), _variable("all_to_all_v")
