"""nki.isa.constants: the enumerations alone."""

from frontier_nki.isa import (
    dge_mode,
    dma_engine,
    engine,
    matmul_perf_mode,
    nc_version,  # noqa: F401
    oob_mode,
    reduce_cmd,
)
