"""Kernels of the largest r of each row: a search in float32, then the few that matter in float64.

r in float32 is within a margin of r in float64, so what lies further than two margins below the
k-th largest cannot be among the k largest. Only what is left is computed again, by the very sum
that :mod:`~fieldcorr.correlation._kernels` makes, so the result has its bits.
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
Masks = NDArray[np.uint32]

ROWS = 8
PANEL = 32
"""Rows and columns of a register tile; a panel has as many configurations as a mask has bits."""

LANES = 16
"""Numbers of a vector; processors with narrower ones take two instructions for it."""

BATCH = 64
"""Rows that a panel serves while it is in the nearest cache."""

LOOKED_AT = 256
"""Panels at most from which a first cut is taken."""

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@intrinsic
def _fma(_context: Any, _x: Any, _y: Any, _z: Any) -> Any:
    """Return x y + z with one rounding, as the tiles do."""
    real = types.float64

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return real(real, real, real), generate


@intrinsic
def _lowest_bit(_context: Any, _mask: Any) -> Any:
    """Return the place of the lowest bit of a mask that has one."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint32(types.uint32), generate


@intrinsic
def _multiply(
    _context: Any,
    rows: Any,
    _a: Any,
    panels: Any,
    _b: Any,
    _depth: Any,
    cuts: Any,
    _q: Any,
    sums: Any,
    masks: Any,
) -> Any:
    """Fill ``sums`` (8, 32) with products of 8 rows and a panel, and tell which are large.

    ``a`` and ``b`` are the offsets of rows and panel into their flat arrays, ``depth`` is R. Bits
    of ``masks`` (8,) are set where a sum is above the cut of its row, ``cuts[q]`` and so on; the
    result is 0 where none is. Vector instructions, because the compiler does not keep the sums of
    the equivalent loops in registers (4x slower at R = 15).
    """
    integer = types.int64
    signature = types.uint32(rows, integer, panels, integer, integer, cuts, integer, sums, masks)
    return signature, _generate_multiply


def _generate_multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit the instructions of :func:`_multiply`."""
    rows, a, panels, b, depth, cuts, q, sums, masks = arguments
    single, integer, word = ir.FloatType(), ir.IntType(64), ir.IntType(32)
    vector = ir.VectorType(single, LANES)
    rows, panels, cuts, sums, masks = (
        context.make_array(signature.args[n])(context, builder, array).data
        for n, array in ((0, rows), (2, panels), (5, cuts), (7, sums), (8, masks))
    )
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fma.v{LANES}f32"
    )
    tile = [(i, j) for i in range(ROWS) for j in range(0, PANEL, LANES)]
    running = {key: cgutils.alloca_once(builder, vector) for key in tile}

    def at(base: Any, offset: Any, constant: int) -> Any:
        return builder.gep(base, [builder.add(offset, ir.Constant(integer, constant))])

    for key in tile:
        builder.store(ir.Constant(vector, [ir.Constant(single, 0.0)] * LANES), running[key])
    starts = [builder.add(a, builder.mul(depth, ir.Constant(integer, i))) for i in range(ROWS)]
    with cgutils.for_range(builder, depth, intp=integer) as loop:
        column = builder.add(b, builder.mul(loop.index, ir.Constant(integer, PANEL)))
        loaded = {}
        for j in range(0, PANEL, LANES):
            pointer = builder.bitcast(at(panels, column, j), vector.as_pointer())
            loaded[j] = builder.load(pointer)
            loaded[j].align = 4
        for i in range(ROWS):
            value = builder.load(builder.gep(rows, [builder.add(starts[i], loop.index)]))
            value = _splat(builder, vector, value)
            for j in loaded:
                total = builder.call(fma, [value, loaded[j], builder.load(running[i, j])])
                builder.store(total, running[i, j])
    found = ir.Constant(word, 0)
    for i in range(ROWS):
        cut = _splat(builder, vector, builder.load(at(cuts, q, i)))
        bits = ir.Constant(word, 0)
        for j in range(0, PANEL, LANES):
            total = builder.load(running[i, j])
            place = builder.gep(sums, [ir.Constant(integer, i * PANEL + j)])
            builder.store(total, builder.bitcast(place, vector.as_pointer())).align = 4
            above = builder.bitcast(builder.fcmp_ordered(">", total, cut), ir.IntType(LANES))
            above = builder.shl(builder.zext(above, word), ir.Constant(word, j))
            bits = builder.or_(bits, above)
        builder.store(bits, builder.gep(masks, [ir.Constant(integer, i)]))
        found = builder.or_(found, bits)
    return found


def _splat(builder: Any, vector: Any, value: Any) -> Any:
    """Repeat one number in all lanes of a vector."""
    index = ir.IntType(32)
    undefined = ir.Constant(vector, ir.Undefined)
    lanes = ir.Constant(ir.VectorType(index, LANES), [ir.Constant(index, 0)] * LANES)
    single = builder.insert_element(undefined, value, ir.Constant(index, 0))
    return builder.shuffle_vector(single, undefined, lanes)


@numba.njit(
    error_model="numpy", fastmath={"nnan", "nsz"}, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
def _top_of(values: Float32s) -> np.float32:
    """Return the largest of some numbers, none of them NaN: then the loop runs in vectors."""
    top = values[0]
    for k in range(values.size):
        top = values[k] if values[k] > top else top
    return np.float32(top)


@_inner
def _collect(
    mask: np.uint32,
    sums: Float32s,
    i: int,
    first: int,
    size: int,
    q: int,
    count: int,
    columns: Int64s,
    found: Float32s,
) -> int:
    """Append the columns of a mask to the candidates of row q; return their number.

    Whole arrays and places in them, as counting the references of a slice takes longer than this.
    """
    while mask:
        k = _lowest_bit(mask)
        mask &= mask - np.uint32(1)
        columns[q, count] = first + k
        found[q, count] = sums[i, k]
        count += first + k < size
    return count


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


@_inner
def _cut_off(values: Float32s, top: int, work: Float32s) -> np.float32:
    """Return the top-th largest of some values, which stay in place."""
    for n in range(values.size):
        work[n] = values[n]
    return np.float32(_kth_largest(work[: values.size], top))


@_inner
def _exact(z: Float64s, i: int, j: int) -> np.float32:
    """Return r of two rows as the tiles compute it."""
    r = 0.0
    for c in range(z.shape[1]):
        r = _fma(z[i, c], z[j, c], r)
    r = 1.0 if r > 1.0 else r
    r = -1.0 if r < -1.0 else r
    return np.float32(r)


@_inner
def _keep_largest(top: int, columns: Int64s, found: Float32s, work: Float32s) -> int:
    """Keep the largest of some candidates in place, the first of equal ones; return how many."""
    if found.size <= top:
        return int(found.size)
    cut, equal, place = _cut_off(found, top, work), top, 0
    for n in range(found.size):
        equal -= found[n] > cut
    for n in range(found.size):
        same = (found[n] == cut) & (equal > 0)
        equal -= same
        columns[place], found[place] = columns[n], found[n]
        place += (found[n] > cut) | same
    return place


@_inner
def _prune(
    z: Float64s,
    own: int,
    top: int,
    margin: np.float32,
    room: int,
    columns: Int64s,
    found: Float32s,
    work: Float32s,
) -> int:
    """Leave out candidates that cannot be among the ``top`` largest; return how many stay.

    Where more than ``room`` are too close to tell, they are compared in float64.
    """
    cut, kept = _cut_off(found, top, work) - 2 * margin, 0
    for n in range(found.size):
        columns[kept], found[kept] = columns[n], found[n]
        kept += found[n] > cut
    if kept > room:
        for n in range(kept):
            found[n] = _exact(z, own, columns[n])
        kept = _keep_largest(top, columns[:kept], found[:kept], work)
    return kept


@_inner
def _finish(
    z: Float64s,
    own: int,
    top: int,
    threshold: np.float32,
    columns: Int64s,
    found: Float32s,
    work: Float32s,
) -> int:
    """Compute the candidates in float64 and keep the largest above the threshold, itself apart."""
    above = 0
    for n in range(found.size):
        j = columns[n]
        r = _exact(z, own, j)
        columns[above], found[above] = j, r
        above += (r > threshold) & (j != own)
    return int(_keep_largest(top, columns[:above], found[:above], work))


@_inner
def _first_cuts(
    own: int,
    count: int,
    top: int,
    margin: np.float32,
    narrow: Float32s,
    panels: Float32s,
    cuts: Float32s,
    sums: Float32s,
    masks: Masks,
) -> None:
    """Raise the cuts of some rows to what ``top`` columns reach: the largest of as many panels."""
    depth, every = narrow.shape[1], panels.shape[0]
    looked_at = min(2 * top, LOOKED_AT, every)
    if looked_at < top:
        return
    largest = np.empty((ROWS, looked_at), np.float32)
    for q in range(0, count, ROWS):
        for s in range(looked_at):
            p = s * every // looked_at
            b = p * depth * PANEL
            _multiply(narrow, (own + q) * depth, panels, b, depth, cuts, q, sums, masks)
            for i in range(ROWS):
                largest[i, s] = _top_of(sums[i])
        for i in range(min(ROWS, count - q)):
            cuts[q + i] = max(cuts[q + i], _kth_largest(largest[i], top) - 2 * margin)


@_jit
def top_neighbours(
    begin: int,
    end: int,
    start: int,
    z: Float64s,
    narrow: Float32s,
    panels: Float32s,
    threshold: np.float32,
    margin: np.float32,
    counts: Int64s,
    indices: Int64s,
    data: Float32s,
) -> None:
    """Fill neighbours of the rows of the batches begin ... end: r > threshold, the largest.

    Batches are counted from row ``start`` on. ``z`` (K, R) are unit rows, ``narrow`` (K + 7, R) the
    same in float32, then zeros, ``panels`` (P, R, 32) these by columns. ``indices`` and ``data``
    (n, top) get columns in ascending order and r, ``counts`` (n,) their number.
    """
    size, depth, top = z.shape[0], narrow.shape[1], indices.shape[1]
    # The row itself is a candidate: one more. Few are kept, so that the cut rises soon.
    room = 2 * (top + 1)
    most = room + top + PANEL
    columns, found = np.empty((BATCH, most), np.int64), np.empty((BATCH, most), np.float32)
    work, have = np.empty(most, np.float32), np.empty(BATCH, np.int64)
    cuts = np.empty(BATCH, np.float32)
    sums, masks = np.empty((ROWS, PANEL), np.float32), np.empty(ROWS, np.uint32)
    for batch in range(begin, end):
        place = BATCH * batch
        count = min(BATCH, counts.size - place)
        have[:], cuts[:] = 0, threshold - margin
        _first_cuts(start + place, count, top + 1, margin, narrow, panels, cuts, sums, masks)
        for p in range(panels.shape[0]):
            for q in range(0, count, ROWS):
                a, b = (start + place + q) * depth, p * depth * PANEL
                if _multiply(narrow, a, panels, b, depth, cuts, q, sums, masks) == 0:
                    continue
                for i in range(min(ROWS, count - q)):
                    k = q + i
                    n = _collect(masks[i], sums, i, p * PANEL, size, k, have[k], columns, found)
                    if n > most - PANEL:
                        own, near, r = start + place + k, columns[k, :n], found[k, :n]
                        n = _prune(z, own, top + 1, margin, room, near, r, work)
                        cuts[k] = max(cuts[k], _cut_off(r[:n], top + 1, work) - 2 * margin)
                    have[k] = n
        for q in range(count):
            n, near, r = have[q], columns[q], found[q]
            if n > top + 1:
                n = _prune(z, start + place + q, top + 1, margin, room, near[:n], r[:n], work)
            n = _finish(z, start + place + q, top, threshold, near[:n], r[:n], work)
            counts[place + q] = n
            for k in range(n):
                indices[place + q, k], data[place + q, k] = near[k], r[k]
