"""Several ranks: every collective against numpy, clocks that meet, and what is refused."""

import unittest

import numpy as np

import frontier_nki
from frontier_nki import _core, collective_time, session

frontier_nki.install()

import nki  # noqa: E402
import nki.collectives as ncc  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

RANDOM = np.random.default_rng(11)


def data(ranks, shape=(8, 16), dtype=np.float32):
    return [(RANDOM.standard_normal(shape) * 8).astype(dtype) for _ in range(ranks)]


def on_hbm(collective, rows=None, passes=0):
    """A kernel whose result is what the collective leaves; rank 1 first makes `passes` copies."""

    @nki.jit
    def kernel(x):
        shape = (rows or x.shape[0], *x.shape[1:])
        src = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
        dst = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for _ in range(1 + (passes if ncc.rank_id() == 1 else 0)):
            nisa.dma_copy(dst=src, src=x)
        collective(src, dst)
        return dst

    return kernel


def run(collective, inputs, **options):
    return frontier_nki.ranks(on_hbm(collective, **options), [(x,) for x in inputs])


def group(n):
    return ncc.ReplicaGroup([list(range(n))])


class Numbers(unittest.TestCase):
    def test_all_reduce_adds_in_the_order_of_the_group_and_rounds_once(self):
        for n, op, f in ((2, nl.add, np.add), (3, nl.minimum, np.minimum), (4, nl.maximum, np.maximum)):
            for dtype in (np.float32, np.float16, np.int32):
                x = data(n, dtype=dtype)
                total = x[0].astype(np.float32)
                for item in x[1:]:
                    total = f(total, item.astype(np.float32))
                for got in run(lambda s, d: ncc.all_reduce([s], [d], group(n), op), x):
                    np.testing.assert_array_equal(got, total.astype(dtype))

    def test_int8_sums_saturate(self):
        x = [np.full((4, 4), 100, np.int8)] * 2
        got = run(lambda s, d: ncc.all_reduce([s], [d], group(2), nl.add), x)
        self.assertTrue((got[0] == 127).all())

    def test_gather_scatter_and_exchange(self):
        x = data(4)
        for got in run(lambda s, d: ncc.all_gather([s], [d], group(4), 0), x, rows=32):
            np.testing.assert_array_equal(got, np.concatenate(x))
        total = x[0] + x[1] + x[2] + x[3]
        got = run(lambda s, d: ncc.reduce_scatter([s], [d], group(4), 0, nl.add), x, rows=2)
        np.testing.assert_array_equal(np.concatenate(got), total)
        got = run(lambda s, d: ncc.all_to_all([s], [d], group(4), 0), x)
        for i in range(4):
            np.testing.assert_array_equal(got[i], np.concatenate([y[2 * i : 2 * i + 2] for y in x]))

    def test_groups_run_apart_and_in_their_own_order(self):
        x = data(4)
        groups = ncc.ReplicaGroup([[2, 0], [1, 3]])
        got = run(lambda s, d: ncc.all_gather([s], [d], groups, 0), x, rows=16)
        for i, pair in ((0, (2, 0)), (2, (2, 0)), (1, (1, 3)), (3, (1, 3))):
            np.testing.assert_array_equal(got[i], np.concatenate([x[j] for j in pair]))

    def test_permutations(self):
        x = data(3)
        pairs = [(0, 2), (1, 0), (2, 1)]
        got = run(lambda s, d: ncc.collective_permute([s], [d], pairs), x)
        for a, b in pairs:
            np.testing.assert_array_equal(got[b], x[a])
        got = run(lambda s, d: ncc.collective_permute_implicit([[s]], [[d]], group(3)), x)
        np.testing.assert_array_equal(got[1], x[0])
        got = run(lambda s, d: ncc.collective_permute_implicit_reduce([[s]], [[s]], [[d]], group(3), nl.add), x)
        np.testing.assert_array_equal(got[0], x[2] + x[2])

    def test_sbuf_gathers_columns(self):
        @nki.jit
        def kernel(x):
            a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            b = nl.ndarray((x.shape[0], 2 * x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            out = nl.ndarray(b.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=a, src=x)
            ncc.all_gather([a], [b], group(2), 1)
            nisa.dma_copy(dst=out, src=b)
            return out

        x = data(2)
        for got in frontier_nki.ranks(kernel, [(x[0],), (x[1],)]):
            np.testing.assert_array_equal(got, np.concatenate(x, 1))


    def test_inputs_may_be_sent_and_received_into(self):
        @nki.jit
        def kernel(x, y):
            ncc.collective_permute([x], [y[4:8]], [(0, 1), (1, 0)])

        x, y = data(2, (4, 16)), data(2)
        before = [item.copy() for item in y]
        frontier_nki.ranks(kernel, list(zip(x, y)))
        for i in (0, 1):
            np.testing.assert_array_equal(y[i], np.concatenate([before[i][:4], x[1 - i]]))


class Clocks(unittest.TestCase):
    def times(self, **options):
        before = len(session.results)
        run(lambda s, d: ncc.all_reduce([s], [d], group(2), nl.add), data(2), **options)
        return [r.time for r in session.results[before:]]

    def test_the_bounds_enclose_and_the_early_rank_waits(self):
        for passes in (0, 20):
            times = self.times(passes=passes)
            for t in times:
                self.assertLessEqual(t["lower_bound_ns"], t["predicted_ns"])
                self.assertLessEqual(t["predicted_ns"], t["program_order_ns"])
            self.assertAlmostEqual(times[0]["predicted_ns"], times[1]["predicted_ns"], delta=1)
        waits = sorted(t["stall_ns"]["collectives"]["other ranks"] for t in times)
        self.assertEqual(waits[0], 0)
        self.assertGreater(waits[1], 1000)

    def test_a_kernel_is_its_pieces_and_its_collectives(self):
        x = data(1)[0]

        @nki.jit
        def piece(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=x)
            return out

        @nki.jit
        def both(x):
            a, b, out = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3))
            nisa.dma_copy(dst=a, src=x)
            ncc.all_reduce([a], [b], group(2), nl.add)
            nisa.dma_copy(dst=out, src=b)
            return out

        piece(x)
        alone = session.results[-1].time
        frontier_nki.ranks(both, [(x,), (x,)])
        time = session.results[-1].time
        moving = time["stall_ns"]["collectives"]["links"]
        self.assertAlmostEqual(moving, 2 * 1500 + x.nbytes / 128, delta=1)
        self.assertAlmostEqual(time["predicted_ns"], 2 * alone["predicted_ns"] + moving, delta=1)
        high = 2 * 2000 + x.nbytes / 64
        self.assertAlmostEqual(time["program_order_ns"], 2 * alone["program_order_ns"] + high, delta=1)

    def test_timing_alone_takes_as_long(self):
        timed = self.times()
        session.options.timing_only = True
        try:
            self.assertEqual(self.times()[0]["predicted_ns"], timed[0]["predicted_ns"])
        finally:
            session.options.timing_only = False
        band = timed[0]["band"]
        self.assertLess(band["low_ns"], timed[0]["predicted_ns"])
        self.assertGreater(band["high_ns"] - band["low_ns"], 2000)

    def test_the_cost_by_hand(self):
        machine = {"generation": 3, "dma_bytes_per_ns": 25.0, "dma_engines": 16}
        low, guess, high = collective_time.cost("all_reduce", 4, 4096, machine)
        moved = 2 * 3 * 4096 / 4
        self.assertAlmostEqual(low, 2 * 1000 + moved / 400)
        self.assertAlmostEqual(guess, 2 * 1500 + moved / 128)
        self.assertAlmostEqual(high, 6 * 2000 + moved / 64)


class Refusals(unittest.TestCase):
    def refused(self, words, collective, n=2, **options):
        with self.assertRaisesRegex(frontier_nki.RuleError, words):
            run(collective, data(n), **options)
        self.assertIsNone(session.world)
        self.assertIsNone(session.launch)

    def test_rules(self):
        one = ncc.ReplicaGroup([[0]])
        self.refused("replica groups", lambda s, d: ncc.all_reduce([s], [d], one, nl.add))
        self.refused("into 't2' of", lambda s, d: ncc.all_gather([s], [d], group(2), 0))
        self.refused("op=multiply", lambda s, d: ncc.all_reduce([s], [d], group(2), nl.multiply))
        self.refused("collective_dim=1", lambda s, d: ncc.all_gather([s], [d], group(2), 1))
        self.refused("never written", lambda s, d: ncc.all_reduce([d], [s], group(2), nl.add))
        self.refused("outside of a world of 2", lambda s, d: ncc.collective_permute([s], [d], [(0, 5)]))
        self.refused("8 rows over 3", lambda s, d: ncc.all_to_all([s], [d], group(3), 0), n=3)

    def test_every_rule_by_its_example(self):
        for rule in _core.collective_rules():

            @nki.jit
            def kernel(x):
                s, d = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm) for _ in range(2))
                t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=s, src=x)
                nisa.dma_copy(dst=t, src=x)
                exec(rule["example"], {"ncc": ncc, "nl": nl}, {"s": s, "d": d, "t": t, "group": group(2)})

            with self.subTest(rule["name"]), self.assertRaisesRegex(frontier_nki.RuleError, rule["name"] + ": "):
                frontier_nki.ranks(kernel, [(x,) for x in data(2)])

    def test_a_part_that_arrived_does_not_make_the_rest_readable(self):
        @nki.jit
        def kernel(x):
            half = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            ncc.collective_permute([x[0:4]], [half[0:4]], [(0, 1), (1, 0)])
            ncc.collective_permute([half], [out], [(0, 1), (1, 0)])
            return out

        with self.assertRaisesRegex(frontier_nki.RuleError, "or not all of it"):
            frontier_nki.ranks(kernel, [(x,) for x in data(2)])

    def test_a_rank_that_never_arrives(self):
        def half(s, d):
            if ncc.rank_id() == 0:
                ncc.all_reduce([s], [d], group(2), nl.add)

        self.refused(r"collective_deadlock: rank 0 waits in all_reduce at test_ranks.py:\d+; rank 1 has ended", half)

    def test_ranks_that_call_different_collectives(self):
        def different(s, d):
            if ncc.rank_id() == 0:
                ncc.all_reduce([s], [d], group(2), nl.add)
            else:
                ncc.all_to_all([s], [d], group(2), 0)

        self.refused("all_reduce.*all_to_all", different)


class Alone(unittest.TestCase):
    def test_one_process_is_rank_0_and_meets_nobody(self):
        self.assertEqual(ncc.rank_id(), 0)
        x = data(1)[0]
        for call in (
            lambda s, d: ncc.all_reduce([s], [d], group(1), nl.add),
            lambda s, d: ncc.collective_permute([s], [d], [(0, 0)]),
        ):
            with self.assertRaisesRegex(frontier_nki.UsageError, "one process is one rank"):
                on_hbm(call)(x)
        for name in ("all_gather_v", "all_to_all_v"):
            with self.assertRaisesRegex(frontier_nki.UsageError, f"{name}: collectives of variable length"):
                getattr(ncc, name)()

    def test_two_cores_a_rank_are_refused(self):
        with self.assertRaisesRegex(frontier_nki.UsageError, "LNC 1"):
            frontier_nki.ranks(on_hbm(lambda s, d: None)[2], [(x,) for x in data(2)])


if __name__ == "__main__":
    unittest.main()
