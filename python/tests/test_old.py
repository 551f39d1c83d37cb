"""The older style: index tiles, masks, deferred values, block dimensions, grids, ways of running."""

import unittest

import numpy as np

import frontier_nki
from frontier_nki.old.index import arange, mgrid

frontier_nki.install()

import neuronxcc.nki as nki  # noqa: E402
import neuronxcc.nki.isa as nisa  # noqa: E402
import neuronxcc.nki.language as nl  # noqa: E402


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Indices(unittest.TestCase):
    def test_affine(self):
        i, j = arange(4)[:, None], arange(3, 9, 2)[None, :]
        index = 10 * i + j * 2 - 1
        self.assertEqual((index.shape, index.constant, index.coefficients), ((4, 3), 5, (10, 4)))
        g = mgrid[0:4, 0:3]
        self.assertEqual((g.p + g.x).coefficients, (1, 1))

    def test_mask_boxes(self):
        i, j = arange(8)[:, None], arange(6)[None, :]
        grid = np.add.outer(np.arange(8), np.zeros(6, int)), np.add.outer(np.zeros(8, int), np.arange(6))
        for mask, truth in (
            ((i < 5) & (j >= 2), (grid[0] < 5) & (grid[1] >= 2)),
            (-2 * i + 9 >= 0, 9 - 2 * grid[0] >= 0),
            (3 * i >= 7, 3 * grid[0] >= 7),
            (i + j < 100, grid[0] >= 0),
            (i <= 3, grid[0] <= 3),
        ):
            box = mask.box((8, 6))
            wanted = np.zeros((8, 6), bool)
            wanted[box[0][0] : box[0][1], box[1][0] : box[1][1]] = True
            np.testing.assert_array_equal(wanted, truth)
        self.assertIsNone((i >= 8).box((8, 6)))
        with self.assertRaises(frontier_nki.UsageError):
            (i >= j).box((8, 6))


class Kernels(unittest.TestCase):
    def test_rows_that_a_tile_lists(self):
        """Gather, scatter, and adding into rows; a column outside of a row is refused."""

        @nki.jit
        def kernel(x, places, width):
            out = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
            sums = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            i, j = nl.arange(128)[:, None], nl.arange(width)[None, :]
            for t in nl.affine_range(2):
                nl.store(sums[t * 128 + i, nl.arange(16)[None, :]], nl.load(x[t * 128 + i, nl.arange(16)[None, :]]))
            rows = nl.load(places)
            found = nl.load(x[rows, 2 + j])
            nl.store(out, found)
            nl.atomic_rmw(sums[rows, 2 + j], value=found, op=np.add)
            nl.atomic_rmw(sums[rows, 10:12], value=1.0, op=np.add)
            return out, sums

        x, places = normal(256, 16), np.random.default_rng(1).permutation(256)[:128, None].astype(np.int32)
        out, sums = kernel(x, places, 8)
        wanted = x.copy()
        wanted[places[:, 0], 2:10] *= 2
        wanted[places[:, 0], 10:12] += 1
        np.testing.assert_array_equal(out, x[places[:, 0], 2:10])
        np.testing.assert_array_equal(sums, wanted)
        with self.assertRaisesRegex(frontier_nki.RuleError, "out_of_bounds"):
            kernel(x, places, 15)
        places[5] = places[4]
        with self.assertRaisesRegex(frontier_nki.RuleError, "twice"):
            kernel(x, places, 8)

    def test_masked_rows_and_operators(self):
        @nki.jit
        def kernel(x, y):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            i, j = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
            for t in nl.affine_range(2):
                inside = t * 128 + i < x.shape[0]
                a = nl.load(x[t * 128 + i, j], mask=inside)
                b = nl.load(y[t * 128 + i, j], mask=inside)
                c = nl.exp(a, mask=inside)
                c[i, j] = nl.multiply(c, b, mask=inside)
                nl.store(out[t * 128 + i, j], value=c, mask=inside)
            return out

        x, y = normal(200, 16), normal(200, 16, seed=1)
        np.testing.assert_allclose(kernel(x, y), np.exp(x) * y, rtol=1e-5)

    def test_python_operators(self):
        @nki.jit
        def kernel(x, y):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            a, b = nl.load(x), nl.load(y)
            nl.store(out, value=(a - b) * 2.0 + a / 4 - 1)
            return out

        x, y = normal(64, 8), normal(64, 8, seed=2)
        np.testing.assert_allclose(kernel(x, y), (x - y) * 2 + x / 4 - 1, rtol=1e-5, atol=1e-6)

    def test_one_dimension_is_a_column(self):
        @nki.jit
        def kernel(x, y):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            column = nl.load(y[0:64, 3])
            nl.store(out, value=nl.load(x) * column)
            return out

        x, y = normal(64, 8), normal(64, 5, seed=6)
        np.testing.assert_allclose(kernel(x, y), x * y[:, 3:4], rtol=1e-6)

    def test_out_of_bounds_without_mask(self):
        @nki.jit
        def kernel(x):
            i, j = nl.arange(128)[:, None], nl.arange(8)[None, :]
            nl.store(x[i, j], value=nl.load(x[i + 1, j]))

        with self.assertRaises(frontier_nki.RuleError) as caught:
            kernel(normal(128, 8))
        self.assertIn("out_of_bounds", str(caught.exception))

    def test_block_dimensions_and_accumulation(self):
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((2, 128, 512), dtype=np.float32, buffer=nl.shared_hbm)
            left = nl.ndarray((4, nl.par_dim(128), 256), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((4, nl.par_dim(128), 512), dtype=b.dtype, buffer=nl.sbuf)
            product = nl.zeros(
                (2, nl.par_dim(128), 512), dtype=np.float32, buffer=nl.psum, lazy_initialization=True
            )
            for k in nl.affine_range(4):
                left[k] = nl.load(a[k * 128 : (k + 1) * 128, :])
                right[k, nl.arange(128)[:, None], nl.arange(512)[None, :]] = nl.load(
                    b[k * 128 : (k + 1) * 128, :]
                )
            for m in nl.affine_range(2):
                for k in nl.affine_range(4):
                    product[m, nl.arange(128)[:, None], nl.arange(512)[None, :]] += nisa.nc_matmul(
                        left[k, :, m * 128 : (m + 1) * 128], right[k]
                    )
                nl.store(out[m], value=nl.copy(product[m], dtype=np.float32))
            return out

        a, b = normal(512, 256), normal(512, 512, seed=3)
        np.testing.assert_allclose(kernel(a, b).reshape(256, 512), a.T @ b, rtol=1e-4, atol=1e-4)

    def test_loop_reduce(self):
        @nki.jit
        def kernel(a, b):
            out = nl.ndarray((64, 128), dtype=np.float32, buffer=nl.shared_hbm)
            total = nl.zeros((nl.par_dim(64), 128), dtype=np.float32, buffer=nl.sbuf)
            for k in nl.affine_range(3):
                partial = nl.zeros((64, 128), dtype=np.float32, buffer=nl.psum)
                partial += nisa.nc_matmul(
                    nl.load(a[k * 128 : (k + 1) * 128, :]), nl.load(b[k * 128 : (k + 1) * 128, :])
                )
                total[:, :] = nl.loop_reduce(partial, op=np.add, loop_indices=[k], dtype=np.float32)
            nl.store(out, value=total)
            return out

        a, b = normal(384, 64), normal(384, 128, seed=4)
        np.testing.assert_allclose(kernel(a, b), a.T @ b, rtol=1e-4, atol=1e-4)

    def test_reductions_and_strided_index(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray((64, 4, 3), dtype=x.dtype, buffer=nl.shared_hbm)
            p, a, b, c, d = nl.mgrid[0:64, 0:4, 0:2, 0:3, 0:2]
            tile = nl.load(x)
            nl.store(out, value=nl.max(tile[p, 2 * a + b, 2 * c + d], axis=[2, 4]))
            return out

        x = normal(64, 8, 6)
        np.testing.assert_array_equal(kernel(x), x.reshape(64, 4, 2, 3, 2).max((2, 4)))

    def test_grid_is_a_loop_over_programs(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            i = nl.program_id(0) * 64 + nl.arange(64)[:, None]
            j = nl.program_id(1) * 8 + nl.arange(8)[None, :]
            nl.store(out[i, j], value=nl.load(x[i, j]) + float(nl.program_id(0)))
            return out

        x = normal(128, 32)
        wanted = x + np.repeat([0.0, 1.0], 64)[:, None]
        np.testing.assert_allclose(kernel[2, 4](x), wanted.astype(np.float32), rtol=1e-6)
        np.testing.assert_allclose(
            kernel[nl.spmd_dim(1, nl.nc(2)), 4](x), wanted.astype(np.float32), rtol=1e-6
        )

    def test_ways_of_running(self):
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, value=nl.load(x) * 2.0)
            return out

        x = normal(32, 8)
        for run in (nki.jit(kernel), nki.baremetal()(kernel), nki.baremetal(kernel), nki.trace(kernel)):
            np.testing.assert_array_equal(run(x), 2 * x)
        np.testing.assert_array_equal(nki.simulate_kernel(nki.jit(kernel), x), 2 * x)
        timed = nki.benchmark(warmup=1, iters=2)(kernel)
        timed(x)
        self.assertGreater(timed.benchmark_result.nc_latency.get_latency_percentile(50), 0)

    def test_values_keep_program_order(self):
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x)
            tile = tile * 1.0
            before = nl.add(tile, 0.0)  # never assigned: made before tile changes
            tile[...] = nl.multiply(tile, 0.0)
            nl.store(out, value=before + tile)
            return out

        x = normal(16, 4)
        np.testing.assert_array_equal(kernel(x), x)


class Wide(unittest.TestCase):
    def test_more_dimensions_than_an_engine_walks(self):
        @nki.jit
        def kernel(x):
            tile = nl.load(x)
            out = nl.ndarray((4, 6, 6), dtype=x.dtype, buffer=nl.sbuf)
            p, a, b, i, j, c, d = nl.mgrid[0:4, 0:2, 0:2, 0:2, 0:2, 0:1, 0:2]
            out[p, 2 * i + a, 2 * j + b + c + 0 * d] = 2.0 * tile[p, i + a, j + b + c + 0 * d] - tile[p, i + 1 - a, j + b + c + 0 * d]
            result = nl.ndarray((4, 4, 4), dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(result, out[:, 0:4, 0:4])
            return result

        x = np.random.default_rng(3).random((4, 3, 3), dtype=np.float32)
        wanted = np.empty((4, 4, 4), np.float32)
        for a, b, i, j in np.ndindex(2, 2, 2, 2):
            wanted[:, 2 * i + a, 2 * j + b] = 2 * x[:, i + a, j + b] - x[:, i + 1 - a, j + b]
        np.testing.assert_array_equal(kernel(x), wanted)


if __name__ == "__main__":
    unittest.main()
