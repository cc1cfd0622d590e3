"""Kernels of the assembly: geometry tensors, sparsity pattern, row-wise race-free fill.

Those that begin with ``start, stop`` take a range of cells, rows or blocks of rows, see
:func:`fieldcorr._parallel.run_ranges`. Rows own their entries, so the bits of a matrix do not
depend on the number of threads.
"""

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_jit = numba.njit(cache=True, nogil=True)


@_jit
def geometry_tensors(
    start: int, stop: int, points: Floats, cells: Ints, sigma: Floats, out: Floats
) -> None:
    """Write C = |det J| J^-1 sigma J^-T of every cell into ``out`` (T, 6).

    J maps the reference tetrahedron to the cell; ``sigma`` (T, 6) holds xx, yy, zz, xy, xz, yz, and
    ``out`` the entries 00, 11, 22, 01, 02, 12 of the symmetric C.
    """
    for t in range(start, stop):
        p0 = cells[t, 0]
        j00 = points[cells[t, 1], 0] - points[p0, 0]
        j10 = points[cells[t, 1], 1] - points[p0, 1]
        j20 = points[cells[t, 1], 2] - points[p0, 2]
        j01 = points[cells[t, 2], 0] - points[p0, 0]
        j11 = points[cells[t, 2], 1] - points[p0, 1]
        j21 = points[cells[t, 2], 2] - points[p0, 2]
        j02 = points[cells[t, 3], 0] - points[p0, 0]
        j12 = points[cells[t, 3], 1] - points[p0, 1]
        j22 = points[cells[t, 3], 2] - points[p0, 2]
        # Rows of the adjugate: det * J^-1.
        a00 = j11 * j22 - j12 * j21
        a01 = j02 * j21 - j01 * j22
        a02 = j01 * j12 - j02 * j11
        a10 = j12 * j20 - j10 * j22
        a11 = j00 * j22 - j02 * j20
        a12 = j02 * j10 - j00 * j12
        a20 = j10 * j21 - j11 * j20
        a21 = j01 * j20 - j00 * j21
        a22 = j00 * j11 - j01 * j10
        scale = 1.0 / abs(j00 * a00 + j01 * a10 + j02 * a20)
        sxx, syy, szz = sigma[t, 0], sigma[t, 1], sigma[t, 2]
        sxy, sxz, syz = sigma[t, 3], sigma[t, 4], sigma[t, 5]
        b00 = sxx * a00 + sxy * a01 + sxz * a02
        b01 = sxy * a00 + syy * a01 + syz * a02
        b02 = sxz * a00 + syz * a01 + szz * a02
        b10 = sxx * a10 + sxy * a11 + sxz * a12
        b11 = sxy * a10 + syy * a11 + syz * a12
        b12 = sxz * a10 + syz * a11 + szz * a12
        b20 = sxx * a20 + sxy * a21 + sxz * a22
        b21 = sxy * a20 + syy * a21 + syz * a22
        b22 = sxz * a20 + syz * a21 + szz * a22
        out[t, 0] = scale * (a00 * b00 + a01 * b01 + a02 * b02)
        out[t, 1] = scale * (a10 * b10 + a11 * b11 + a12 * b12)
        out[t, 2] = scale * (a20 * b20 + a21 * b21 + a22 * b22)
        out[t, 3] = scale * (a00 * b10 + a01 * b11 + a02 * b12)
        out[t, 4] = scale * (a00 * b20 + a01 * b21 + a02 * b22)
        out[t, 5] = scale * (a10 * b20 + a11 * b21 + a12 * b22)


@_jit
def fill_rows(elements: Ints, offsets: Longs, occurrences: Ints) -> None:
    """List the occurrences ``element * width + local`` of every row; negative rows are left out."""
    cursor = offsets.copy()
    width = elements.shape[1]
    for t in range(elements.shape[0]):
        for k in range(width):
            row = elements[t, k]
            if row >= 0:
                occurrences[cursor[row]] = t * width + k
                cursor[row] += 1


@_jit
def sort_row(columns: Ints, begin: int, end: int) -> None:
    """Sort ``columns[begin:end]`` in place.

    Shell's way: as fast as insertion for the usual thirty columns, and fast enough for the
    thousands of a tied contact; ``np.sort`` would take two seconds to compile.
    """
    gap = 1
    while 9 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(begin + gap, end):
            value = columns[k]
            m = k
            while m >= begin + gap and columns[m - gap] > value:
                columns[m] = columns[m - gap]
                m -= gap
            columns[m] = value
        gap //= 3


@_jit
def row_columns(
    start: int,
    stop: int,
    elements: Ints,
    offsets: Longs,
    occurrences: Ints,
    block: int,
    bounds: Longs,
    columns: Ints,
    lengths: Longs,
) -> None:
    """Find the sorted distinct columns of every row.

    Rows are taken in blocks of ``block``; block b writes its columns one after the other from
    ``bounds[b]`` on, and the length of each row into ``lengths``. ``seen`` remembers which row met
    a column last, which was measured to be five times faster than searching the row.
    """
    n_rows = lengths.size
    width = elements.shape[1]
    seen = np.full(n_rows, -1, dtype=np.int32)
    for b in range(start, stop):
        at = bounds[b]
        for row in range(b * block, min(n_rows, (b + 1) * block)):
            begin = at
            for o in range(offsets[row], offsets[row + 1]):
                t = occurrences[o] // width
                for k in range(width):
                    col = elements[t, k]
                    if col >= 0 and seen[col] != row:
                        seen[col] = row
                        columns[at] = col
                        at += 1
            sort_row(columns, begin, at)
            lengths[row] = at - begin


@_jit
def fill_matrix(
    start: int,
    stop: int,
    elements: Ints,
    coefficients: Floats,
    reference: Floats,
    offsets: Longs,
    occurrences: Ints,
    indptr: Longs,
    indices: Ints,
    data: Floats,
) -> None:
    """Add sum_c coefficients[t, c] reference[i, j, c] of all elements into the CSR ``data``.

    Every row gathers its own entries, element by element in ascending order; ``place`` holds where
    in the row each of its columns is.
    """
    width = elements.shape[1]
    n_terms = coefficients.shape[1]
    place = np.empty(indptr.size - 1, dtype=np.int32)
    for row in range(start, stop):
        first = indptr[row]
        for k in range(first, indptr[row + 1]):
            place[indices[k]] = k - first
        for o in range(offsets[row], offsets[row + 1]):
            t = occurrences[o] // width
            i = occurrences[o] - t * width
            for j in range(width):
                col = elements[t, j]
                if col >= 0:
                    value = 0.0
                    for c in range(n_terms):
                        value += coefficients[t, c] * reference[i, j, c]
                    data[first + place[col]] += value
