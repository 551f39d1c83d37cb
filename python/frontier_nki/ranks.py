"""One kernel as several ranks: frontier_nki.ranks(kernel, [(arrays of rank 0), (arrays of rank 1), ...]).

Each rank is a core of its own with its own HBM, and its Python a thread; only one ever runs. A rank that
comes to a collective gives the baton to the next one that can run; the last of a replica group to arrive
does the work for all of them. When nobody can run, the error says where each rank stands.

Clocks: a collective starts when all of its ranks have finished what they issued before it, and what they
issue after it starts when it is over: a rank's record is replayed in pieces, from collective to collective,
each on an idle core. The low bound lets collectives hide behind everything else; the high one adds them to program order.
"""

import threading

from . import _core, launch, session

CLOCKS = ("predicted_ns", "program_order_ns")


class Rank:
    """Where one rank is, in program and in time."""

    def __init__(self):
        self.launch, self.call, self.ended, self.answer = None, None, False, None
        self.restart()

    def restart(self):
        """A launch begins: its record is empty."""
        self.first = 0  # of the record's piece since the last collective
        self.now = dict.fromkeys(CLOCKS, 0.0)
        self.low = self.high = self.waited = self.moving = 0.0
        self.count = 0


class World:
    """The ranks that run."""

    def __init__(self, bodies):
        self.bodies, self.size = bodies, len(bodies)
        self.all = [Rank() for _ in bodies]
        self.turn, self.holder, self.failure = threading.Condition(), 0, None

    # ---- one runs at a time ----

    def run(self):
        threads = [
            threading.Thread(target=self._program, args=(i,), name=f"rank {i}") for i in range(self.size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.launch = None
        _core.deactivate()
        if self.failure:
            raise self.failure
        return [rank.answer for rank in self.all]

    def _wait(self, i):
        while self.holder != i and not self.failure:
            self.turn.wait()
        if self.failure:
            raise _Abandoned
        session.launch = self.all[i].launch
        if session.launch is not None:
            session.launch.core.activate()
        _core.at(None)

    def _next(self, i):
        """The baton to the next rank that can run; whether there is one."""
        self.all[i].launch = session.launch
        for step in range(1, self.size + 1):
            j = (i + step) % self.size
            if not self.all[j].ended and self.all[j].call is None:
                self.holder = j
                self.turn.notify_all()
                return True
        return False

    def _program(self, i):
        rank = self.all[i]
        try:
            with self.turn:
                self._wait(i)
            rank.answer = self.bodies[i]()
        except _Abandoned:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        with self.turn:
            rank.ended = True
            session.launch = None
            if not self.failure and not self._next(i) and any(r.call for r in self.all):
                self.failure = self.deadlock()
            self.turn.notify_all()

    # ---- meeting ----

    def meet(self, call):
        """Called by the running rank; returns when the collective has happened."""
        i = self.holder
        rank = self.all[i]
        with self.turn:
            rank.call = call
            members = call.members(i)
            if all(self.all[j].call is not None for j in members):
                calls = [self.all[j].call for j in members]
                calls[0].perform(calls, members)
                self.advance(members, calls[0].cost(len(members)))
                for j in members:
                    self.all[j].call = None
                return
            if not self._next(i):
                raise self.deadlock()
            while rank.call is not None:
                self._wait(i)
            self._wait(i)

    def deadlock(self):
        stands = [
            f"rank {j} {'waits in ' + str(r.call) if r.call else 'has ended'}" for j, r in enumerate(self.all)
        ]
        return _core.RuleError(
            "collective_deadlock: " + "; ".join(stands) + "\n  fix: every rank of a replica group calls the same "
            "collectives in the same order"
        )

    # ---- time ----

    def segment(self):
        """What the running rank has issued since its last collective, on each clock."""
        rank = self.all[self.holder]
        if session.options.time == "none":
            return dict.fromkeys(CLOCKS, 0.0)
        *lengths, rank.first = session.launch.core.segment(rank.first)
        return dict(zip(CLOCKS, lengths))

    def advance(self, members, cost):
        low, guess, high = cost
        ranks = [self.all[j] for j in members]
        for clock, length in zip(CLOCKS, (guess, high)):
            ready = [rank.now[clock] + rank.call.segment[clock] for rank in ranks]
            start = max(ready)
            for rank, at in zip(ranks, ready):
                rank.now[clock] = start + length
                if clock == "predicted_ns":
                    rank.waited += start - at
                    rank.moving += length
        for rank in ranks:
            rank.low += low
            rank.high += high
            rank.count += 1

    def close(self, time):
        """A launch of the running rank ends: its time with the collectives in it. The rank's number."""
        rank = self.all[self.holder]
        alone = time["predicted_ns"]
        rest = self.segment()
        for clock in CLOCKS:
            time[clock] = rank.now[clock] + rest[clock]
        time["predicted_ns"] = max(time["predicted_ns"], alone)
        time["lower_bound_ns"] = max(time["lower_bound_ns"], rank.low)
        time["program_order_ns"] = max(time["program_order_ns"], time["predicted_ns"])
        rest = time["predicted_ns"] - alone - rank.moving  # waiting, and pieces that do not overlap
        time["band"]["low_ns"] += rest + rank.low
        time["band"]["high_ns"] += rest + rank.high
        time["instructions"] += rank.count
        time["guessed"] += rank.count
        if rank.count:
            time["stall_ns"]["collectives"] = {"other ranks": rank.waited, "links": rank.moving}
        rank.restart()
        return self.holder


class _Abandoned(BaseException):
    """Another rank failed."""


def ranks(kernel, arguments, **common):
    """Runs a kernel as len(arguments) ranks, each item one rank's arguments; a list of their results."""
    if session.launch is not None or session.world is not None:
        raise _core.UsageError("ranks(...) is called outside of kernels")
    if not 1 <= len(arguments) <= 64:
        raise _core.UsageError(f"ranks(...): {len(arguments)} ranks; 1 to 64 are simulated")
    kernel = launch.simulate(kernel)
    bodies = [lambda own=tuple(own): kernel(*own, **common) for own in arguments]
    session.world = World(bodies)
    try:
        return session.world.run()
    finally:
        session.world = None
