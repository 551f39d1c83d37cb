"""Two programs of one launch on two cores (LNC 2), meeting at sendrecv and core_barrier.

Each program is a Python thread, but only one ever runs: it keeps the baton until it meets the other. At a
meeting the program that is ahead issues its half and waits until the other has issued as many; so what one
core sends is there when the other reads it, and the record's order is the same on every run.
"""

import threading

from . import _core, session

MEETINGS = ("sendrecv", "core_barrier")


class Pair:
    """Runs body(0) and body(1)."""

    def __init__(self, launch, body):
        self.launch, self.body = launch, body
        self.turn = threading.Condition()
        self.holder, self.met, self.ended = 0, [0, 0], [False, False]
        self.positions, self.answers, self.failure = [0, 0], [None, None], None

    def run(self):
        threads = [threading.Thread(target=self._program, args=(i,), name=f"core {i}") for i in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure
        return self.answers[0]

    def _take(self, i):
        """This thread has the baton: the launch is about program i."""
        self.launch.program = (i,)
        self.launch.position = self.positions[i]
        self.launch.core.select(i)

    def _wait(self, i):
        while self.holder != i and not self.failure:
            self.turn.wait()
        if self.failure:
            raise _Abandoned
        self._take(i)

    def _give(self, i):
        self.positions[i] = self.launch.position
        self.holder = 1 - i
        self.turn.notify_all()

    def _program(self, i):
        try:
            with self.turn:
                self._wait(i)
            self.answers[i] = self.body()
        except _Abandoned:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        with self.turn:
            self.ended[i] = True
            self._give(i)

    def meet(self, name):
        """Called by the running program after it issued its half."""
        i = self.holder
        with self.turn:
            self.met[i] += 1
            while self.met[1 - i] < self.met[i]:
                if self.ended[1 - i]:
                    raise _core.RuleError(
                        f"{name}: core {i} waits for core {1 - i}, whose program ended without its half"
                        f"\n  fix: both programs call {name} the same number of times"
                    )
                self._give(i)
                self._wait(i)


class _Abandoned(BaseException):
    """The other program failed."""


def meeting(name, function):
    """nisa.sendrecv or nisa.core_barrier with the meeting after it."""

    def instruction(*args, **kwargs):
        issued = function(*args, **kwargs)
        pair = session.launch.pair if session.launch else None
        if pair is not None:
            pair.meet(name)
        return issued

    instruction.__name__ = name
    return instruction
