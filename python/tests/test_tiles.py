"""Tiles: indexing, access patterns and view methods against numpy; registers; errors name lines."""

import io
import linecache
import os
import tempfile
import unittest

import numpy as np

import frontier_nki

frontier_nki.install()

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402


def through(shape, view):
    """What `view` of an SBUF tile of this shape holds, and the array it holds it of."""
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    seen = {}

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        part = view(tile)
        out = nl.ndarray(part.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=part)
        seen["host"] = frontier_nki.launch.arrays.read(part)
        return out

    result = kernel(array)
    np.testing.assert_array_equal(result, seen["host"])
    return result, array


def add_one():
    @nki.jit
    def add_one(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    return add_one


class Launches(unittest.TestCase):
    def test_which_launches_are_timed(self):
        kernel, results = add_one(), frontier_nki.results
        for which, timed in (("all", 5), ("first", 3), ("none", 0)):
            before = len(results)
            with frontier_nki.time_launches(which):
                for x in (np.zeros((4, 8), np.float32),) * 3 + (
                    np.zeros((4, 9), np.float32),
                    np.zeros((4, 8), np.float16),
                ):
                    np.testing.assert_array_equal(kernel(x), x + 1)
            self.assertEqual(len(results) - before, timed, which)
        kernel(np.zeros((4, 8), np.float32))
        self.assertEqual(len(results), before + 1)
        with self.assertRaises(frontier_nki.UsageError):
            frontier_nki.time_launches("some")


class Repeats(unittest.TestCase):
    def test_what_the_older_compiler_leaves_out_is_told(self):
        for machine, left_out in (("trn1", 1), ("trn2", 0)):

            @nki.jit(platform_target=machine)
            def twice(x):
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
                for _ in range(2):
                    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=tile, src=x)
                    nisa.dma_copy(dst=out, src=tile)
                return out

            twice(np.zeros((128, 64), np.float32))
            result, shown = frontier_nki.results[-1], io.StringIO()
            self.assertEqual(result.time["removed"], left_out)
            core = frontier_nki._core.Core(frontier_nki.session.machine_named(machine)[1])
            frontier_nki.report.print_result(result, core.machine, shown)
            self.assertEqual("repeats left out: 1" in shown.getvalue(), left_out == 1)


class Strays(unittest.TestCase):
    """What does not belong: tiles of another launch, instructions outside one, odd sizes and indices."""

    def kernel(self, body):
        @nki.jit
        def kernel(x):
            tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            body(tile)
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=tile)
            return out

        return kernel

    def refused(self, body, text):
        with self.assertRaisesRegex(frontier_nki.UsageError, text):
            self.kernel(body)(np.zeros((4, 8), np.float32))

    def test_tiles_of_another_launch(self):
        kept = []
        self.kernel(kept.append)(np.ones((4, 8), np.float32))
        self.refused(lambda tile: nisa.tensor_copy(dst=tile, src=kept[0]), "another launch")
        self.refused(lambda tile: nisa.tensor_copy(dst=kept[0], src=tile), "another launch")
        with self.assertRaisesRegex(frontier_nki.UsageError, "inside a kernel"):
            nisa.memset(dst=kept[0], value=0.0)

    def test_sizes_and_indices(self):
        self.refused(lambda tile: nl.ndarray((4, 2.5), dtype=nl.float32, buffer=nl.sbuf), "whole numbers")
        self.refused(lambda tile: tile[..., ...], "has two")

    def test_a_local_name_is_not_the_modules_function(self):
        from frontier_nki import language_rules

        scope = {"nl": nl, "nisa": nisa}
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "shadow.py")
        with open(path, "w") as f:
            f.write("def t():\n    try:\n        pass\n    except ValueError:\n        pass\n\n\n")
            f.write("def hides(x):\n    t = x\n    return t\n\n\ndef calls(x):\n    t()\n    return x\n")
        with open(path) as f:
            exec(compile(f.read(), path, "exec"), scope)
        linecache.checkcache(path)
        self.assertEqual(language_rules.examine(scope["hides"]), [])
        self.assertEqual([rule for _, _, rule in language_rules.examine(scope["calls"])], ["python_exception"])


class Constants(unittest.TestCase):
    def test_shared_constant_of_an_array_or_a_file(self):
        array = np.arange(12, dtype=np.float32).reshape(3, 4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "constant.npy")
            np.save(path, array)
            with open(os.path.join(folder, "junk.npy"), "wb") as junk:
                junk.write(b"no array")
            for constant in (array, path):

                @nki.jit
                def kernel():
                    return nl.shared_constant(constant)

                np.testing.assert_array_equal(kernel(), array)
            for missing in (junk.name, path + ".gone"):

                @nki.jit
                def refused():
                    return nl.shared_constant(missing)

                with self.assertRaisesRegex(frontier_nki.UsageError, "is no .npy file"):
                    refused()


class Tiles(unittest.TestCase):
    def test_indexing(self):
        for view in (
            lambda t: t[:, 0:8],
            lambda t: t[32:64, 3:30:4],
            lambda t: t[..., 5:9],
            lambda t: t[0:96],
            lambda t: t[:, -4:],
            lambda t: t[nl.ds(64, 32), nl.ds(8, 8)],
        ):
            result, array = through((128, 64), view)
            np.testing.assert_array_equal(result, view(array))

    def test_integers_keep_partitions_and_two_dimensions(self):
        result, array = through((128, 4, 8), lambda t: t[5])
        np.testing.assert_array_equal(result, array[5:6])
        result, array = through((128, 4, 8), lambda t: t[:, 2])
        np.testing.assert_array_equal(result, array[:, 2])
        result, array = through((128, 8), lambda t: t[:, 3])
        self.assertEqual(result.shape, (128, 1))
        np.testing.assert_array_equal(result, array[:, 3:4])

    def test_none_and_views(self):
        result, array = through((128, 8), lambda t: t[:, None, :])
        np.testing.assert_array_equal(result, array[:, None, :])
        result, array = through((128, 4, 6), lambda t: t.permute((0, 2, 1)))
        np.testing.assert_array_equal(result, array.transpose(0, 2, 1))
        result, array = through((128, 24), lambda t: t.reshape_dim(1, (4, -1)).permute((0, 2, 1)))
        np.testing.assert_array_equal(result, array.reshape(128, 4, 6).transpose(0, 2, 1))
        result, array = through((128, 4, 6), lambda t: t.flatten_dims(1, 2)[:, 3:11])
        np.testing.assert_array_equal(result, array.reshape(128, 24)[:, 3:11])
        result, array = through((128, 1, 6), lambda t: t.broadcast(1, 3))
        np.testing.assert_array_equal(result, np.broadcast_to(array, (128, 3, 6)))
        result, array = through((128, 6), lambda t: t.expand_dim(1).squeeze_dim(1).slice(1, 1, 5, 2))
        np.testing.assert_array_equal(result, array[:, 1:5:2])

    def test_access_patterns(self):
        result, array = through((128, 64), lambda t: t.ap([[64, 32], [2, 4], [1, 2]], offset=32 * 64 + 5))
        wanted = array.reshape(-1)[32 * 64 + 5 :][
            np.arange(32)[:, None, None] * 64 + np.arange(4)[:, None] * 2 + np.arange(2)
        ]
        np.testing.assert_array_equal(result, wanted)
        result, array = through((128, 64), lambda t: t.ap([[64, 128], [0, 3], [1, 4]]))
        np.testing.assert_array_equal(result, np.broadcast_to(array[:, None, :4], (128, 3, 4)))

    def test_refused(self):
        for view in (
            lambda t: t[:, 60:70],
            lambda t: t[0:64:2],
            lambda t: t[:, :, 0],
            lambda t: t[5:5],
            lambda t: t.permute((1, 0)),
            lambda t: t.reshape((64, 128)),
            lambda t: t.ap([[32, 128], [1, 8]]),
            lambda t: t.broadcast(1, 2),
            lambda t: t["x"],
            lambda t: t.ap([[64, 128], [1, 0]]),
        ):
            with self.assertRaises(frontier_nki.UsageError):
                through((128, 64), view)

    def test_hbm_views(self):
        array = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)

        @nki.jit
        def kernel(x):
            tile = nl.ndarray((6, 8), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[2])
            out = nl.ndarray((2, 6, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[0], src=tile)
            nisa.dma_copy(dst=out[1], src=x.permute((1, 0, 2))[:, 3, :])
            return out.reshape((12, 8)), x.shape

        out, shape = kernel(array)
        self.assertEqual(shape, (4, 6, 8))
        np.testing.assert_array_equal(out[:6], array[2])
        np.testing.assert_array_equal(out[6:], array[3])

    def test_dtypes(self):
        self.assertTrue(nl.float32 == np.float32 and nl.bfloat16 == "bfloat16" and nl.int8 != np.uint8)
        self.assertFalse(nl.float32 == np.float64)

        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            assert tile.dtype == nl.bfloat16 and tile.buffer == nl.sbuf and x.dtype == np.float32
            nisa.dma_copy(dst=out, src=tile)
            return out

        x = np.linspace(-3, 3, 128 * 16, dtype=np.float32).reshape(128, 16)
        out = kernel(x).astype(np.float32)
        self.assertLess(np.abs(out - x).max(), 0.01)
        self.assertGreater(np.abs(out - x).max(), 0)

    def test_error_names_the_line(self):
        @nki.jit
        def kernel(x):
            tile = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=tile, src=x)  # HBM

        with self.assertRaises(frontier_nki.RuleError) as caught:
            kernel(np.zeros((128, 8), np.float32))
        line = kernel.function.__code__.co_firstlineno + 3
        self.assertIn(f"test_tiles.py:{line}: tensor_copy", str(caught.exception))
        self.assertIn("fix:", str(caught.exception))

    def test_arguments(self):
        for call in (
            lambda t: nisa.tensor_copy(dst=t, scr=t),
            lambda t: nisa.tensor_copy(t, t, t, t, t, t, t, t),
            lambda t: nisa.tensor_copy(dst=t),
            lambda t: nisa.tensor_copy(dst=t, src=3),
        ):

            @nki.jit
            def kernel(x):
                tile = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile, src=x)
                call(tile)

            with self.assertRaises(frontier_nki.UsageError):
                kernel(np.zeros((128, 8), np.float32))

    def test_registers(self):
        seen = []

        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
            count = nisa.register_alloc(3)
            for i in nl.dynamic_range(count):
                nisa.dma_copy(dst=tile, src=x[nl.ds(i * 128, 128), :])
                nisa.dma_copy(dst=out.ap([[8, 128], [1, 8]], scalar_offset=i * 128, indirect_dim=0), src=tile)
                seen.append(int(i))
            return out

        x = np.arange(3 * 128 * 8, dtype=np.float32).reshape(384, 8)
        np.testing.assert_array_equal(kernel(x), x)
        self.assertEqual(seen, [0, 1, 2])

    def test_an_offset_runs_on_into_the_next_block(self):
        """Row 20 of 4 blocks of 16 rows is row 4 of block 1; row 63 leaves no room for two."""

        @nki.jit
        def kernel(x, place):
            out = nl.ndarray((2, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            start = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
            nisa.dma_copy(dst=start, src=place)
            nisa.dma_copy(dst=out, src=x.ap([[8, 2], [1, 8]], scalar_offset=start, indirect_dim=1))
            return out

        x = np.arange(4 * 16 * 8, dtype=np.float32).reshape(4, 16, 8)
        np.testing.assert_array_equal(kernel(x, np.array([[20]], np.int32)), x[1, 4:6])
        for outside in (63, 64, -1):
            with self.assertRaisesRegex(frontier_nki.RuleError, "index_bounds|out_of_bounds"):
                kernel(x, np.array([[outside]], np.int32))

    def test_a_transfer_outside_is_skipped(self):
        @nki.jit
        def kernel(x, place):
            cache = nl.ndarray((32, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray((2, 8), dtype=x.dtype, buffer=nl.sbuf)
            start = nl.ndarray((1, 1), dtype=nl.uint32, buffer=nl.sbuf)
            nisa.dma_copy(dst=cache, src=x)
            nisa.dma_copy(dst=start, src=place)
            nisa.memset(dst=tile, value=-1)
            where = cache.ap([[8, 2], [1, 8]], scalar_offset=start, indirect_dim=0)
            nisa.dma_copy(dst=where, src=tile, oob_mode=nisa.oob_mode.skip)
            nisa.dma_copy(dst=tile, src=where, oob_mode=nisa.oob_mode.skip)
            return cache

        x = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
        for place in (3, 30, 31, 32, 0xFFFFFFFF):
            wanted = x.copy()
            if place < 31:
                wanted[place : place + 2] = -1
            np.testing.assert_array_equal(kernel(x, np.array([[place]], np.uint32)), wanted)

    def test_arrays_of_six_dimensions(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape[2:4], dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape[2:4], dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[1, 2, :, :, 1, 0])
            nisa.dma_copy(dst=out, src=tile)
            return out

        x = np.arange(2 * 3 * 8 * 4 * 2 * 2, dtype=np.float32).reshape(2, 3, 8, 4, 2, 2)
        np.testing.assert_array_equal(kernel(x), x[1, 2, :, :, 1, 0])

    def test_two_cores_share_hbm(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            half = x.shape[0] // nl.num_programs(0)
            rows = nl.ds(nl.program_id(0) * half, half)
            tile = nl.ndarray((half, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[rows, :])
            nisa.dma_copy(dst=out[rows, :], src=tile)
            return out

        x = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
        np.testing.assert_array_equal(kernel[2](x), x)
        np.testing.assert_array_equal(kernel(x), x)
        with self.assertRaises(frontier_nki.UsageError):
            kernel[3](x)

    def test_two_cores_exchange_tiles(self):
        @nki.jit
        def kernel(x):
            me = nl.program_id(0)
            out = nl.ndarray((2, 64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            shared = nl.ndarray((2, 64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            mine = nl.ndarray((64, 8), dtype=x.dtype, buffer=nl.sbuf)
            theirs = nl.ndarray((64, 8), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=mine, src=x[me])
            for turn in range(3):  # after an odd number of exchanges each has the other's
                nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
                nisa.tensor_copy(dst=mine, src=theirs)
            nisa.dma_copy(dst=shared[me], src=mine)
            nisa.core_barrier(shared, (0, 1))
            nisa.dma_copy(dst=theirs, src=shared[1 - me])
            nisa.tensor_tensor(dst=mine, data1=mine, data2=theirs, op=nl.subtract)
            nisa.dma_copy(dst=out[me], src=mine)
            return out

        x = np.random.default_rng(0).standard_normal((2, 64, 8)).astype(np.float32)
        np.testing.assert_array_equal(kernel[2](x), np.stack([x[1] - x[0], x[0] - x[1]]))
        with self.assertRaises(frontier_nki.RuleError):
            kernel(x)

    def test_programs_take_turns_and_miss_each_other(self):
        from frontier_nki.pair import Pair

        class Core:
            def select(self, i):
                self.selected = i

        class Launch:
            program, position, core = (), 0, Core()

        log = []

        def body():
            me = launch.program[0]
            for step in range(3):
                log.append((me, step))
                pair.meet("core_barrier")
            return me

        launch = Launch()
        pair = Pair(launch, body)
        self.assertEqual(pair.run(), 0)
        for step in range(2):
            self.assertLess(
                max(log.index((m, step)) for m in (0, 1)), min(log.index((m, step + 1)) for m in (0, 1))
            )
        uneven = Pair(launch, lambda: [uneven.meet("core_barrier") for _ in range(1 + launch.program[0])])
        with self.assertRaises(frontier_nki.RuleError):
            uneven.run()

    def test_inputs_are_updated_in_place(self):
        @nki.jit
        def kernel(x):
            tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.memset(dst=tile, value=7)
            nisa.dma_copy(dst=x, src=tile)

        x = np.zeros((128, 4), np.float32)
        kernel(x)
        self.assertTrue((x == 7).all())


if __name__ == "__main__":
    unittest.main()
