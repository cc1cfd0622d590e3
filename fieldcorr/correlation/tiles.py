"""Rows of r = Z Z' from an embedding, tile by tile, and the neighbourhoods r > threshold in them.

Neighbours are counted first and filled in then, so nothing is ever resized. Tiles of any size and
any number of threads give the same bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr import _parallel
from fieldcorr.correlation import _kernels as kernels
from fieldcorr.correlation import _top_kernels as top_kernels
from fieldcorr.errors import CorrelationError

TILE_BYTES = 64 * 2**20
"""Memory of a tile unless told otherwise: larger ones were not faster."""

_CACHE_LINE = 64
# Rows and panels of the blocks that threads share out. Small ranks: 64 rows at once were 2x slower
# (too many memory pages written in turn). Large ranks: blocks whose panels stay in the cache.
_BLOCK_SMALL_RANK = 32, 64
_BLOCK_LARGE_RANK = 128, 4


@dataclass(frozen=True, eq=False)
class PackedEmbedding:
    """An embedding laid out for the kernel of r; make it with :func:`pack_embedding`."""

    panels: NDArray[np.float64]  # (P, R, 16): configuration 16 p + c at [p, :, c], then zeros
    size: int  # K, the number of configurations


def pack_embedding(embedding: ArrayLike | PackedEmbedding) -> PackedEmbedding:
    """Lay an embedding (K, R) out for the kernel of r; do it once when asking for many tiles."""
    if isinstance(embedding, PackedEmbedding):
        return embedding
    z = _checked(embedding)
    return PackedEmbedding(_panels(z), len(z))


def _checked(embedding: ArrayLike) -> NDArray[np.float64]:
    """Return an embedding (K, R) as an array of finite numbers."""
    z = np.ascontiguousarray(embedding, dtype=np.float64)
    if z.ndim != 2 or 0 in z.shape:
        raise CorrelationError(f"an embedding has shape (K, R), not {z.shape}")
    if not np.isfinite(z).all():
        row = int(np.flatnonzero(~np.isfinite(z).all(axis=1))[0])
        raise CorrelationError(f"row {row} of the embedding is not finite")
    return z


def _panels(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Z in panels; aligned, because vectors that straddle cache lines cost 20 %."""
    size, rank = z.shape
    whole, rest = divmod(size, kernels.PANEL)
    shape = (whole + (rest > 0), rank, kernels.PANEL)
    raw = np.zeros(int(np.prod(shape)) + _CACHE_LINE // 8)
    skip = -raw.ctypes.data % _CACHE_LINE // 8
    panels = raw[skip : skip + int(np.prod(shape))].reshape(shape)
    panels[:whole] = z[: whole * kernels.PANEL].reshape(whole, kernels.PANEL, rank).swapaxes(1, 2)
    if rest:
        panels[whole, :, :rest] = z[whole * kernels.PANEL :].T
    return panels


def correlation_rows(
    embedding: ArrayLike | PackedEmbedding,
    start: int,
    stop: int,
    out: NDArray[np.float32] | None = None,
    *,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return the rows start ... stop of r = Z Z', Z the unit rows (K, R) of an embedding.

    They are float32, (stop - start, K), in a new array or in ``out``: within [-1, 1], exactly 1 on
    the diagonal and exactly -r for mirrored rows. The bytes do not depend on ``threads``.
    """
    packed = pack_embedding(embedding)
    if not 0 <= start <= stop <= packed.size:
        raise CorrelationError(f"rows {start} to {stop} are not within 0 to {packed.size}")
    shape = stop - start, packed.size
    rows = np.empty(shape, dtype=np.float32) if out is None else out
    if rows.shape != shape or rows.dtype != np.float32 or not rows.flags.c_contiguous:
        raise CorrelationError(
            f"out must be a contiguous float32 array of shape {shape}, "
            f"not {rows.dtype} of shape {rows.shape}"
        )
    small = packed.panels.shape[1] <= kernels.DEPTH
    block = _BLOCK_SMALL_RANK if small else _BLOCK_LARGE_RANK
    down = -(-(shape[0] + start % kernels.ROWS) // block[0])
    across = -(-len(packed.panels) // block[1])
    with _parallel.threads(threads):
        _parallel.run_ranges(
            kernels.fill_rows, down * across, packed.panels, start, *block, rows, least=4
        )
    return rows


def tiles(size: int, memory: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut rows 0 ... size into (start, stop) so that a float32 tile takes at most ``memory`` bytes.

    A tile has at least one row, however little memory is given.
    """
    rows = max(1, (TILE_BYTES if memory is None else memory) // (4 * size))
    rows -= rows % kernels.ROWS if rows > kernels.ROWS else 0
    for start in range(0, size, rows):
        yield start, min(size, start + rows)


def index_dtype(size: int) -> np.dtype[np.generic]:
    """Return the type of column indices: int32, or int64 if K needs it."""
    return np.dtype(np.int32 if size <= 2**31 else np.int64)


def neighbour_counts(
    rows: NDArray[np.float32],
    start: int,
    *,
    threshold: float = 0.0,
    top: int | None = None,
    threads: int | None = None,
) -> NDArray[np.int64]:
    """First pass: how many neighbours each of some rows of r has, (n,).

    ``rows`` (n, K) are the rows start ... start + n of r. A neighbour has r > threshold; with
    ``top`` at most so many are kept per row, the largest.
    """
    _check_rows(rows, start)
    counts = np.empty(len(rows), dtype=np.int64)
    with _parallel.threads(threads):
        limit = _limit(top, rows.shape[1])
        _parallel.run_ranges(
            kernels.count_neighbours, len(rows), rows, start, _below(threshold), limit, counts
        )
    return counts


def neighbour_fill(
    rows: NDArray[np.float32],
    start: int,
    counts: NDArray[np.int64],
    *,
    threshold: float = 0.0,
    top: int | None = None,
    indices: NDArray[np.generic] | None = None,
    data: NDArray[np.float32] | None = None,
    threads: int | None = None,
) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Second pass: the neighbours of some rows of r, ascending, without the diagonal.

    ``counts`` (n,) is what the first pass returned for the same arguments. Columns and r, row
    after row, go into ``indices`` and ``data`` (sum of counts,), or into new arrays. Of equally
    large r at the end of a row limited by ``top`` the lower columns are kept.
    """
    _check_rows(rows, start)
    limit = _limit(top, rows.shape[1])
    if counts.shape != (len(rows),) or (counts < 0).any() or (counts > limit).any():
        raise CorrelationError("counts are not those of the first pass over these rows")
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    if indices is None:
        indices = np.empty(indptr[-1], dtype=index_dtype(rows.shape[1]))
    if data is None:
        data = np.empty(indptr[-1], dtype=np.float32)
    if not indices.shape == data.shape == (indptr[-1],):
        raise CorrelationError(f"{indptr[-1]} neighbours do not fit into arrays of {data.shape}")
    with _parallel.threads(threads):
        kernel = kernels.fill_neighbours if top is None else kernels.fill_largest
        arrays = indptr, indices, data
        _parallel.run_ranges(kernel, len(rows), rows, start, _below(threshold), *arrays)
    return indices, data


@dataclass(frozen=True, eq=False)
class NarrowEmbedding:
    """An embedding laid out for the search of the largest r; make it with :func:`narrow_embedding`.

    ``margin`` is how far r in float32 may be from r, both rounded.
    """

    z: NDArray[np.float64]  # (K, R)
    narrow: NDArray[np.float32]  # (K + 7, R) at least, zeros after the last row
    panels: NDArray[np.float32]  # (P, R, 32): configuration 32 p + c at [p, :, c]
    margin: np.float32


def narrow_embedding(embedding: ArrayLike) -> NarrowEmbedding:
    """Lay unit rows (K, R) out for :func:`largest_neighbours`."""
    z = _checked(embedding)
    size, rank = z.shape
    count = -(-size // top_kernels.PANEL)
    narrow = np.zeros(((count + 1) * top_kernels.PANEL, rank), dtype=np.float32)
    narrow[:size] = z
    panels = narrow[: -top_kernels.PANEL].reshape(count, top_kernels.PANEL, rank).swapaxes(1, 2)
    # R products and sums, the two roundings of the rows, and those of r itself.
    margin = np.float32((rank + 4) * 2.0**-24)
    return NarrowEmbedding(z, narrow, np.ascontiguousarray(panels), margin)


def largest_neighbours(
    embedding: NarrowEmbedding,
    start: int,
    stop: int,
    *,
    top: int,
    threshold: float = 0.0,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return the ``top`` neighbours of largest r of the rows start ... stop: counts, columns and r.

    The same as both passes over rows of r give, bit by bit, without making these rows.
    """
    size, count = len(embedding.z), stop - start
    if not 0 <= start <= stop <= size:
        raise CorrelationError(f"rows {start} to {stop} are not within 0 to {size}")
    most = min(_limit(top, size), size)
    counts = np.empty(count, dtype=np.int64)
    indices, data = np.empty((count, most), np.int64), np.empty((count, most), np.float32)
    arrays = embedding.z, embedding.narrow, embedding.panels
    limits = _below(threshold), embedding.margin
    with _parallel.threads(threads):
        groups = -(-count // top_kernels.BATCH)
        _parallel.run_ranges(
            top_kernels.top_neighbours, groups, start, *arrays, *limits, counts, indices, data
        )
    kept = np.arange(most) < counts[:, None]
    return counts, indices[kept], data[kept]


def _below(threshold: float) -> np.float32:
    """Return the largest float32 that is not above the threshold: r > it means r > threshold."""
    if not np.isfinite(threshold):
        raise CorrelationError(f"threshold = {threshold}: must be finite")
    near = np.float32(threshold)
    return near if float(near) <= threshold else np.nextafter(near, np.float32(-np.inf))


def _limit(top: int | None, size: int) -> int:
    if top is not None and top < 1:
        raise CorrelationError(f"top = {top}: must be at least 1")
    return size if top is None else top


def _check_rows(rows: NDArray[np.float32], start: int) -> None:
    sound = rows.ndim == 2 and rows.dtype == np.float32 and rows.flags.c_contiguous
    if not (sound and start >= 0 and start + len(rows) <= rows.shape[-1]):
        raise CorrelationError(
            f"rows must be contiguous float32 rows of a square r, not {rows.dtype} of shape "
            f"{rows.shape} from row {start} on"
        )
