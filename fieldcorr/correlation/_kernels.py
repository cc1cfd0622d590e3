"""The kernels of r: row tiles of Z Z' in float32, a few rows of it in float64, and neighbourhoods.

Each r_ij is one sum over the columns of Z in order, in float64 with fused multiply-add, clamped to
[-1, 1] and rounded to float32. The sum of one entry never depends on tile, block or thread, which
is why the same bytes come out for any of them; a BLAS product does not promise that. Products
commute and rounding is symmetric, so r_ij = r_ji, and a mirrored row gives exactly -r.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Integers = NDArray[np.int32] | NDArray[np.int64]

ROWS = 8
"""Rows of a register tile: 8 x 16 sums fill half of the vector registers of AVX-512."""

PANEL = 16
"""Configurations of a panel, and columns of a register tile."""

LANES = 8
"""Numbers of a vector; processors with narrower ones take two instructions for it."""

DEPTH = 128
"""Columns of Z between two visits of the running sums: both panels stay in the nearest cache."""

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@intrinsic
def _accumulate(
    _context: Any,
    rows: Any,
    _a: Any,
    columns: Any,
    _b: Any,
    _depth: Any,
    sums: Any,
    _before: Any,
    _after: Any,
) -> Any:
    """Add ``depth`` outer products of 8 rows and 16 columns to a register tile.

    ``a`` and ``b`` are the offsets of the first row and of the first column into their flat panels,
    ``before`` and ``after`` those of the 8 x 16 sums to start from and to write. Given as vector
    instructions because the compiler does not keep the 128 sums of the equivalent loops in
    registers (4x slower at R = 16).
    """
    integer = types.int64
    signature = types.void(rows, integer, columns, integer, integer, sums, integer, integer)
    return signature, _generate_accumulate


def _generate_accumulate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit the instructions of :func:`_accumulate`."""
    rows, a, columns, b, depth, sums, before, after = arguments
    vector = ir.VectorType(ir.DoubleType(), LANES)
    rows, columns, sums = (
        context.make_array(signature.args[n])(context, builder, array).data
        for n, array in ((0, rows), (2, columns), (5, sums))
    )
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f64"
    )
    tile = [(i, j) for i in range(ROWS) for j in range(0, PANEL, LANES)]
    running = {key: cgutils.alloca_once(builder, vector) for key in tile}

    def at(base: Any, offset: Any, constant: int) -> Any:
        return builder.gep(base, [builder.add(offset, ir.Constant(ir.IntType(64), constant))])

    def vector_at(base: Any, offset: Any, constant: int) -> Any:
        return builder.bitcast(at(base, offset, constant), vector.as_pointer())

    for i, j in tile:
        start = builder.load(vector_at(sums, before, i * PANEL + j))
        start.align = 8
        builder.store(start, running[i, j])
    with cgutils.for_range(builder, depth, intp=ir.IntType(64)) as loop:
        step = builder.mul(loop.index, ir.Constant(ir.IntType(64), PANEL))
        row, column = builder.add(a, step), builder.add(b, step)
        loaded = {}
        for j in range(0, PANEL, LANES):
            loaded[j] = builder.load(vector_at(columns, column, j))
            loaded[j].align = 8
        for i in range(ROWS):
            value = _splat(builder, vector, builder.load(at(rows, row, i)))
            for j in loaded:
                total = builder.call(fma, [value, loaded[j], builder.load(running[i, j])])
                builder.store(total, running[i, j])
    for i, j in tile:
        stored = builder.store(builder.load(running[i, j]), vector_at(sums, after, i * PANEL + j))
        stored.align = 8
    return context.get_dummy_value()


def _splat(builder: Any, vector: Any, value: Any) -> Any:
    """Repeat one number in all lanes of a vector."""
    index = ir.IntType(32)
    undefined = ir.Constant(vector, ir.Undefined)
    lanes = ir.Constant(ir.VectorType(index, LANES), [ir.Constant(index, 0)] * LANES)
    single = builder.insert_element(undefined, value, ir.Constant(index, 0))
    return builder.shuffle_vector(single, undefined, lanes)


@intrinsic
def _round_tile(_context: Any, sums: Any, _place: Any, out: Any, _corner: Any, _stride: Any) -> Any:
    """Clamp a register tile to [-1, 1], round it to float32 and store it in ``out``.

    ``place``, ``corner`` and ``stride`` count numbers in the flat arrays.
    """
    integer = types.int64
    return types.void(sums, integer, out, integer, integer), _generate_round_tile


def _generate_round_tile(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit the instructions of :func:`_round_tile`."""
    sums, place, out, corner, stride = arguments
    integer, double = ir.IntType(64), ir.DoubleType()
    vector, single = ir.VectorType(double, LANES), ir.VectorType(ir.FloatType(), LANES)
    sums = context.make_array(signature.args[0])(context, builder, sums).data
    out = context.make_array(signature.args[2])(context, builder, out).data
    one = ir.Constant(vector, [ir.Constant(double, 1.0)] * LANES)
    minus = ir.Constant(vector, [ir.Constant(double, -1.0)] * LANES)
    for i in range(ROWS):
        line = builder.add(corner, builder.mul(stride, ir.Constant(integer, i)))
        for j in range(0, PANEL, LANES):
            source = builder.gep(sums, [builder.add(place, ir.Constant(integer, i * PANEL + j))])
            r = builder.load(builder.bitcast(source, vector.as_pointer()))
            r.align = 8
            r = builder.select(builder.fcmp_ordered(">", r, one), one, r)
            r = builder.select(builder.fcmp_ordered("<", r, minus), minus, r)
            target = builder.gep(out, [builder.add(line, ir.Constant(integer, j))])
            stored = builder.store(
                builder.fptrunc(r, single), builder.bitcast(target, single.as_pointer())
            )
            stored.align = 4
    return context.get_dummy_value()


@_inner
def _store_tile(
    sums: Float64s, tile: int, rounded: Float32s, row: int, column: int, out: Float32s
) -> None:
    """Put a finished register tile at (row, column) of ``out``, as far as it is inside."""
    n_rows, n_columns = out.shape[0], out.shape[1]
    place = tile * ROWS * PANEL
    if row >= 0 and row + ROWS <= n_rows and column + PANEL <= n_columns:
        _round_tile(sums, place, out, row * n_columns + column, n_columns)
    else:
        _round_tile(sums, place, rounded, 0, PANEL)
        for i in range(max(0, -row), min(ROWS, n_rows - row)):
            for j in range(min(PANEL, n_columns - column)):
                out[row + i, column + j] = rounded[i, j]


@_inner
def _fill_block(
    panels: Float64s, start: int, top: int, bottom: int, left: int, right: int, out: Float32s
) -> None:
    """Fill rows top ... bottom (multiples of 8 or the end) of the panels left ... right.

    Up to ``DEPTH`` columns of Z are added to all register tiles of the block in turn.
    """
    rank = panels.shape[1]
    high = (bottom - top + ROWS - 1) // ROWS
    kept = high * (right - left) if rank > DEPTH else 1
    sums = np.empty((kept + 1, ROWS, PANEL))
    for i in range(ROWS):
        for j in range(PANEL):
            sums[kept, i, j] = 0.0  # where every sum starts
    rounded = np.empty((ROWS, PANEL), np.float32)
    for d in range(0, rank, DEPTH):
        depth = min(DEPTH, rank - d)
        for q in range(left, right):
            for row in range(top, bottom, ROWS):
                tile = ((q - left) * high + (row - top) // ROWS) % kept
                before = tile if d > 0 else kept
                a = ((row // PANEL) * rank + d) * PANEL + row % PANEL
                b = (q * rank + d) * PANEL
                # fmt: off
                _accumulate(
                    panels, a, panels, b, depth, sums, before * ROWS * PANEL, tile * ROWS * PANEL
                )
                # fmt: on
                if d + depth == rank:
                    _store_tile(sums, tile, rounded, row - start, q * PANEL, out)


@_jit
def fill_rows(
    begin: int,
    end: int,
    panels: Float64s,
    start: int,
    block_rows: int,
    block_panels: int,
    out: Float32s,
) -> None:
    """Fill the blocks ``begin`` to ``end`` of ``out`` (rows, K), r of the rows from ``start`` on.

    ``panels`` (P, R, 16) holds Z with configuration 16 p + c at [p, :, c], zeros after the last.
    Blocks of ``block_rows`` (a multiple of 8) x ``block_panels`` panels are independent.
    """
    n_panels = panels.shape[0]
    first, stop = start - start % ROWS, start + out.shape[0]
    across = (n_panels + block_panels - 1) // block_panels
    for block in range(begin, end):
        top = first + (block // across) * block_rows
        left = (block % across) * block_panels
        bottom, right = min(stop, top + block_rows), min(n_panels, left + block_panels)
        _fill_block(panels, start, top, bottom, left, right, out)


@_jit
def fill_products(begin: int, end: int, rows: Float64s, panels: Float64s, out: Float64s) -> None:
    """Fill ``out`` (16, K) with products of 16 rows, one panel, and the panels begin to end."""
    rank = panels.shape[1]
    sums = np.empty((PANEL, PANEL))
    for q in range(begin, end):
        for i in range(PANEL):
            for j in range(PANEL):
                sums[i, j] = 0.0
        for d in range(0, rank, DEPTH):
            depth = min(DEPTH, rank - d)
            for half in range(0, PANEL, ROWS):
                here = half * PANEL
                b = (q * rank + d) * PANEL
                _accumulate(rows, d * PANEL + half, panels, b, depth, sums, here, here)
        for i in range(PANEL):
            for j in range(min(PANEL, out.shape[1] - q * PANEL)):
                out[i, q * PANEL + j] = sums[i, j]


# -- neighbourhoods: which entries of rows of r are above a threshold, and where -------------------


@_inner
def _count_above(row: Float32s, own: int, threshold: np.float32) -> int:
    """Count the entries of a row above the threshold, its diagonal left out."""
    count = 0
    for j in range(row.size):
        count += row[j] > threshold
    return count - int(row[own] > threshold)


@_jit
def count_neighbours(
    begin: int,
    end: int,
    rows: Float32s,
    start: int,
    threshold: np.float32,
    top: int,
    counts: Int64s,
) -> None:
    """Fill ``counts`` with the neighbours of each row: r > threshold, at most ``top`` of them."""
    for i in range(begin, end):
        counts[i] = min(top, _count_above(rows[i], start + i, threshold))


@_inner
def _fill_above(
    row: Float32s, own: int, threshold: np.float32, indices: Integers, data: Float32s
) -> None:
    """Fill one neighbourhood with all entries above the threshold.

    Each entry is written where the next neighbour belongs and counted if it is one: no branch to
    mispredict. The loop ends with the last neighbour, so nothing is written past it.
    """
    place = 0
    j = 0
    while place < indices.size and j < row.size:
        r = row[j]
        indices[place] = j
        data[place] = r
        place += (r > threshold) & (j != own)
        j += 1


@_inner
def _kth_largest(values: Float32s, k: int) -> np.float32:
    """Return the k-th largest value (k from 1); ``values`` is reordered."""
    low, high, wanted = 0, values.size - 1, values.size - k
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return np.float32(values[wanted])


@_jit
def fill_neighbours(
    begin: int,
    end: int,
    rows: Float32s,
    start: int,
    threshold: np.float32,
    indptr: Int64s,
    indices: Integers,
    data: Float32s,
) -> None:
    """Fill the neighbourhood of row start + i into the entries indptr[i] ... indptr[i + 1].

    ``indptr`` are the sums of what :func:`count_neighbours` counted with the same threshold.
    """
    for i in range(begin, end):
        near = indices[indptr[i] : indptr[i + 1]]
        r = data[indptr[i] : indptr[i + 1]]
        _fill_above(rows[i], start + i, threshold, near, r)


@_jit
def fill_largest(
    begin: int,
    end: int,
    rows: Float32s,
    start: int,
    threshold: np.float32,
    indptr: Int64s,
    indices: Integers,
    data: Float32s,
) -> None:
    """Fill neighbourhoods as :func:`fill_neighbours`, with the largest entries where not all fit.

    Of equal ones the first in the row are kept. A kernel of its own: few need it, and it takes
    longer to compile than the other.
    """
    for i in range(begin, end):
        row, own = rows[i], start + i
        near = indices[indptr[i] : indptr[i + 1]]
        r = data[indptr[i] : indptr[i + 1]]
        count = _count_above(row, own, threshold)
        if not 0 < near.size < count:
            _fill_above(row, own, threshold, near, r)
            continue
        place_of, values = np.empty(count, indices.dtype), np.empty(count, np.float32)
        _fill_above(row, own, threshold, place_of, values)
        cut = _kth_largest(values.copy(), near.size)
        equal = near.size
        for n in range(count):
            equal -= values[n] > cut
        place = 0
        for n in range(count):
            same = values[n] == cut and equal > 0
            if values[n] > cut or same:
                near[place] = place_of[n]
                r[place] = values[n]
                place += 1
                equal -= same
