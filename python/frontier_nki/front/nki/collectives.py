"""nki.collectives: collectives between chips are not simulated, and say so. A simulated process is the only rank there is."""

from frontier_nki import _core


def _absent(name):
    def collective(*args, **kwargs):
        raise _core.UsageError(
            f"nki.collectives.{name}: collectives between chips are not simulated; between the two "
            f"cores of a launch use nisa.sendrecv and nisa.core_barrier"
        )

    collective.__name__ = name
    return collective


for _name in (
    "all_reduce",
    "all_gather",
    "all_gather_v",
    "reduce_scatter",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_reduce",
    "collective_permute_implicit_current_processing_rank_id",
):
    globals()[_name] = _absent(_name)


def rank_id(*args, **kwargs):
    """0: where several ranks are meant, the collective that joins them refuses to run."""
    return 0


class ReplicaGroup:
    """Named by kernels' signatures."""

    def __init__(self, groups=None):
        self.groups = groups
