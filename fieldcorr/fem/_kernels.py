"""Kernels of the assembly: geometry tensors, sparsity pattern, row-wise race-free fill.

Rows own their entries, so the bits of a matrix do not depend on the number of threads.
"""

import numba
import numpy as np


@numba.njit(cache=True, parallel=True)
def geometry_tensors(points, cells, sigma, out):  # type: ignore[no-untyped-def]
    """Write C = |det J| J^-1 sigma J^-T of every cell into ``out`` (T, 6).

    J maps the reference tetrahedron to the cell; ``sigma`` (T, 6) holds xx, yy, zz, xy, xz, yz, and
    ``out`` the entries 00, 11, 22, 01, 02, 12 of the symmetric C.
    """
    for t in numba.prange(cells.shape[0]):
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


@numba.njit(cache=True)
def count_rows(elements, counts):  # type: ignore[no-untyped-def]
    """Count the (element, local node) occurrences of every row; negative nodes are left out."""
    for t in range(elements.shape[0]):
        for k in range(elements.shape[1]):
            row = elements[t, k]
            if row >= 0:
                counts[row] += 1


@numba.njit(cache=True)
def fill_rows(elements, offsets, occurrences):  # type: ignore[no-untyped-def]
    """List the occurrences ``element * width + local`` of every row."""
    cursor = offsets[:-1].copy()
    width = elements.shape[1]
    for t in range(elements.shape[0]):
        for k in range(width):
            row = elements[t, k]
            if row >= 0:
                occurrences[cursor[row]] = t * width + k
                cursor[row] += 1


SHORT_ROW = 96
"""Columns up to which insertion sorts a row fastest; tied contact nodes make a few longer rows."""


@numba.njit(cache=True)
def sort_row(columns, begin, end):  # type: ignore[no-untyped-def]
    """Sort ``columns[begin:end]`` in place."""
    if end - begin > SHORT_ROW:
        columns[begin:end] = np.sort(columns[begin:end])
        return
    for k in range(begin + 1, end):
        value = columns[k]
        m = k
        while m > begin and columns[m - 1] > value:
            columns[m] = columns[m - 1]
            m -= 1
        columns[m] = value


@numba.njit(cache=True, parallel=True)
def row_columns(elements, offsets, occurrences, block, bounds, columns, lengths):  # type: ignore[no-untyped-def]
    """Find the sorted distinct columns of every row.

    Rows are taken in blocks of ``block``; block b writes its columns one after the other from
    ``bounds[b]`` on, and the length of each row into ``lengths``. A block remembers in ``seen``
    which row met a column last, which was measured to be five times faster than searching the row.
    """
    n_rows = lengths.size
    width = elements.shape[1]
    for b in numba.prange(bounds.size - 1):
        seen = np.full(n_rows, -1, dtype=np.int32)
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


@numba.njit(cache=True, parallel=True)
def pack_columns(bounds, block, columns, indptr, indices):  # type: ignore[no-untyped-def]
    """Copy the runs of :func:`row_columns` next to each other."""
    n_rows = indptr.size - 1
    for b in numba.prange(bounds.size - 1):
        first = indptr[min(n_rows, b * block)]
        last = indptr[min(n_rows, (b + 1) * block)]
        for k in range(last - first):
            indices[first + k] = columns[bounds[b] + k]


@numba.njit(cache=True, parallel=True)
def fill_matrix(  # type: ignore[no-untyped-def]
    elements, coefficients, reference, offsets, occurrences, block, indptr, indices, data
):
    """Add sum_c coefficients[t, c] reference[i, j, c] of all elements into the CSR ``data``.

    Every row gathers its own entries, element by element in ascending order; ``place`` holds where
    in the row each of its columns is.
    """
    width = elements.shape[1]
    n_terms = coefficients.shape[1]
    n_rows = indptr.size - 1
    for b in numba.prange((n_rows + block - 1) // block):
        place = np.empty(n_rows, dtype=np.int32)
        for row in range(b * block, min(n_rows, (b + 1) * block)):
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
