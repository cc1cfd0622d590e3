"""Kernels of the block solver: sixteen vectors go through every sweep over a matrix.

Vectors are stored as (n, WIDTH) arrays, C order, so that one matrix entry meets WIDTH consecutive
numbers. Their sum over a row is kept in vector registers by :func:`gather_row`, which is written in
LLVM terms: numba neither keeps a small array in registers nor runs LLVM's straight-line vectoriser,
and the same loop in plain numba was measured to be eleven times slower. The preconditioner runs in
float32, conjugate gradients in float64. Kernels take a range of blocks of rows ``start, stop``, see
:func:`fieldcorr._parallel.run_ranges`; sums are taken per block and added in order by the caller,
so results do not depend on the number of threads.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Singles = NDArray[np.float32]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Csr = tuple[Longs, Ints, Doubles | Singles]
"""indptr, indices and data of a matrix, of the vectors' real type."""

WIDTH = 16
"""Right-hand sides per sweep."""

ROW_BLOCK = 256
"""Rows per task; the scratch of a task stays in the first-level cache."""

FUSE = {"reassoc", "contract", "arcp", "nsz"}
"""Fused multiply-adds and vector sums, without giving up NaN checks."""


class _RowCode:
    """Writes the LLVM code that two row operations share: addresses, broadcasts, the row's sum."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, model: int) -> None:
        self.builder, self.context = builder, context
        self.types, self.args = signature.args, args
        real = context.get_data_type(signature.args[model].dtype)
        self.align = signature.args[model].dtype.bitwidth // 8
        self.vector = ir.VectorType(real, WIDTH)
        self.wide = ir.IntType(64)

    def pointer(self, k: int) -> Any:
        """Return the data pointer of array argument ``k``."""
        return self.context.make_array(self.types[k])(self.context, self.builder, self.args[k]).data

    def row(self, base: Any, number: Any) -> Any:
        """Return a pointer to row ``number`` of a (n, WIDTH) array as one vector."""
        offset = self.builder.mul(number, ir.Constant(self.wide, WIDTH))
        return self.builder.bitcast(self.builder.gep(base, [offset]), self.vector.as_pointer())

    def load(self, base: Any, number: Any) -> Any:
        """Load a row; rows are aligned like single numbers."""
        return self.builder.load(self.row(base, number), align=self.align)

    def store(self, value: Any, base: Any, number: Any) -> None:
        """Store a row."""
        self.builder.store(value, self.row(base, number), align=self.align)

    def splat(self, value: Any) -> Any:
        """Repeat a number WIDTH times."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        zero = ir.Constant(ir.IntType(32), 0)
        lane = self.builder.insert_element(undefined, value, zero)
        return self.builder.shuffle_vector(lane, undefined, lanes)

    def times(self, a: Any, b: Any) -> Any:
        """Return a b, open to fusion with a following sum."""
        return self.builder.fmul(a, b, flags=("contract",))

    def plus(self, a: Any, b: Any) -> Any:
        """Return a + b, open to fusion with a preceding product."""
        return self.builder.fadd(a, b, flags=("contract",))

    def row_sum(self, begin: Any, end: Any, columns: Any, values: Any, source: Any) -> Any:
        """Return sum over k of values[k] source[columns[k], :]."""
        total = cgutils.alloca_once(self.builder, self.vector)
        self.builder.store(ir.Constant(self.vector, [0.0] * WIDTH), total)
        one = ir.Constant(self.wide, 1)
        with cgutils.for_range_slice(self.builder, begin, end, one) as (k, _):
            column = self.builder.load(self.builder.gep(columns, [k]))
            value = self.builder.load(self.builder.gep(values, [k]))
            row = self.load(source, self.builder.sext(column, self.wide))
            product = self.times(self.splat(value), row)
            self.builder.store(self.plus(self.builder.load(total), product), total)
        return self.builder.load(total)


@intrinsic
def gather_row(
    typingctx: Any, begin: Any, end: Any, indices: Any, data: Any, x: Any, out: Any, at: Any
) -> Any:
    """Set out[at, :] = sum over k in [begin, end) of data[k] x[indices[k], :].

    ``x`` and ``out`` are C-ordered with WIDTH columns and of one real type with ``data``;
    ``indices`` is int32.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _RowCode(context, builder, signature, args, 4)
        total = code.row_sum(args[0], args[1], code.pointer(2), code.pointer(3), code.pointer(4))
        code.store(total, code.pointer(5), args[6])
        return context.get_dummy_value()

    return types.void(begin, end, indices, data, x, out, at), generate


@intrinsic
def smooth_row(
    typingctx: Any,
    begin: Any,
    end: Any,
    indices: Any,
    data: Any,
    x: Any,
    b: Any,
    d: Any,
    out: Any,
    momentum: Any,
    weight: Any,
    row: Any,
) -> Any:
    """Set d[row] = momentum d[row] + weight (b[row] - (A x)[row]) and out[row] = x[row] + d[row].

    Types as in :func:`gather_row`; ``momentum`` and ``weight`` are of the same real type.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _RowCode(context, builder, signature, args, 4)
        row, source, change = args[10], code.pointer(4), code.pointer(6)
        total = code.row_sum(args[0], args[1], code.pointer(2), code.pointer(3), source)
        gap = builder.fsub(code.load(code.pointer(5), row), total)
        kept = code.times(code.splat(args[8]), code.load(change, row))
        step = code.plus(kept, code.times(code.splat(args[9]), gap))
        code.store(step, change, row)
        code.store(code.plus(code.load(source, row), step), code.pointer(7), row)
        return context.get_dummy_value()

    return types.void(begin, end, indices, data, x, b, d, out, momentum, weight, row), generate


_jit = numba.njit(cache=True, nogil=True, fastmath=FUSE)


@_jit
def multiply_with_dots(
    start: int, stop: int, matrix: Csr, x: Doubles, y: Doubles, dots: Doubles
) -> None:
    """Y = A X in float64, and the partial sums of X . Y per block of rows in ``dots``."""
    indptr, indices, data = matrix
    products = np.empty(ROW_BLOCK * WIDTH)
    n = indptr.size - 1
    for b in range(start, stop):
        low = b * ROW_BLOCK
        high = min(n, low + ROW_BLOCK)
        for row in range(low, high):
            gather_row(indptr[row], indptr[row + 1], indices, data, x, y, row)
        xf, yf = x[low:high].reshape(-1), y[low:high].reshape(-1)
        for i in range(xf.size):
            products[i] = xf[i] * yf[i]
        add_columns(products, high - low, dots, b)


@_jit
def add_columns(products: Doubles, rows: int, dots: Doubles, b: int) -> None:
    """dots[b, :] = column sums of ``rows`` rows of WIDTH ``products``, in place, by halving.

    The loops are long that way.
    """
    while rows > 1:
        half = rows // 2
        shift = (rows - half) * WIDTH
        for i in range(half * WIDTH):
            products[i] += products[i + shift]
        rows -= half
    for c in range(WIDTH):
        dots[b, c] = products[c]


@_jit
def advance(
    start: int,
    stop: int,
    alpha: Doubles,
    scale: Doubles,
    x: Doubles,
    r: Doubles,
    p: Doubles,
    q: Doubles,
    r32: Singles,
    dots: Doubles,
) -> None:
    """X += alpha P, R -= alpha Q, R32 = scale R, partial sums of R . R.

    ``alpha`` and ``scale`` are (ROW_BLOCK * WIDTH,): the WIDTH numbers repeated for every row of a
    block, which turns the inner loop into one long loop over the block.
    """
    squares = np.empty(ROW_BLOCK * WIDTH)
    n = x.shape[0]
    for b in range(start, stop):
        low = b * ROW_BLOCK
        high = min(n, low + ROW_BLOCK)
        xf, rf = x[low:high].reshape(-1), r[low:high].reshape(-1)
        pf, qf = p[low:high].reshape(-1), q[low:high].reshape(-1)
        singles = r32[low:high].reshape(-1)
        for i in range(xf.size):
            xf[i] += alpha[i] * pf[i]
            value = rf[i] - alpha[i] * qf[i]
            rf[i] = value
            singles[i] = scale[i] * value
            squares[i] = value * value
        add_columns(squares, high - low, dots, b)


@_jit
def mixed_dots(start: int, stop: int, r: Doubles, z32: Singles, dots: Doubles) -> None:
    """Partial sums of R . Z with R in float64 and Z in float32."""
    products = np.empty(ROW_BLOCK * WIDTH)
    n = r.shape[0]
    for b in range(start, stop):
        low = b * ROW_BLOCK
        high = min(n, low + ROW_BLOCK)
        rf, zf = r[low:high].reshape(-1), z32[low:high].reshape(-1)
        for i in range(rf.size):
            products[i] = rf[i] * zf[i]
        add_columns(products, high - low, dots, b)


@_jit
def turn(start: int, stop: int, beta: Doubles, z32: Singles, p: Doubles) -> None:
    """P = Z + beta P; ``beta`` (ROW_BLOCK * WIDTH,) as in :func:`advance`."""
    n = p.shape[0]
    for b in range(start, stop):
        low = b * ROW_BLOCK
        high = min(n, low + ROW_BLOCK)
        zf, pf = z32[low:high].reshape(-1), p[low:high].reshape(-1)
        for i in range(pf.size):
            pf[i] = zf[i] + beta[i] * pf[i]


@_jit
def smooth(
    start: int,
    stop: int,
    matrix: Csr,
    inverse: Singles,
    b: Singles,
    momentum: np.float32,
    step: np.float32,
    x: Singles,
    d: Singles,
    out: Singles,
) -> None:
    """One Chebyshev step, float32: D = momentum D + step inverse (B - A X), OUT = X + D.

    Without a matrix (``indptr`` of length 1) X is set to zero: the start of a smoothing, where
    ``out`` may be ``x``.
    """
    indptr, indices, data = matrix
    n = x.shape[0]
    for row in range(start * ROW_BLOCK, min(n, stop * ROW_BLOCK)):
        begin, end = np.int64(0), np.int64(0)
        if indptr.size > 1:
            begin, end = indptr[row], indptr[row + 1]
        else:
            x[row] = np.float32(0.0)
        weight = step * inverse[row]
        smooth_row(begin, end, indices, data, x, b, d, out, momentum, weight, row)


@_jit
def combine(
    start: int,
    stop: int,
    matrix: Csr,
    x: Singles,
    base: Singles,
    keep: np.float32,
    scale: np.float32,
    out: Singles,
) -> None:
    """OUT = keep BASE + scale M X, float32; M may be rectangular."""
    indptr, indices, data = matrix
    scratch = np.empty((ROW_BLOCK, WIDTH), dtype=np.float32)
    sums = scratch.reshape(-1)
    n = indptr.size - 1
    for block in range(start, stop):
        low = block * ROW_BLOCK
        high = min(n, low + ROW_BLOCK)
        for row in range(low, high):
            gather_row(indptr[row], indptr[row + 1], indices, data, x, scratch, row - low)
        bf, of = base[low:high].reshape(-1), out[low:high].reshape(-1)
        for i in range(of.size):
            of[i] = keep * bf[i] + scale * sums[i]
