"""Assembly of sparse matrices over cells.

Nodes may have any numbering, with -1 for those that are left out and one number for those that are
tied together. The sparsity pattern is an object of its own, so that a change of conductivities
costs the fill only.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fieldcorr._parallel import run_ranges
from fieldcorr.errors import MeshError
from fieldcorr.fem import _kernels
from fieldcorr.fem.reference import stiffness_tensor

BLOCKS = 64
"""Blocks of rows whose columns are found one after the other."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which entries a matrix over given elements has, and which elements feed each row.

    ``occurrences[offsets[row]:offsets[row + 1]]`` lists ``element * w + local node`` of the
    elements around a row; ``indptr`` and ``indices`` are the CSR pattern, columns sorted.
    """

    elements: NDArray[np.int32]  # (T, w) rows of the elements' nodes, -1 for those left out
    offsets: NDArray[np.int64]
    occurrences: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def of_elements(cls, elements: NDArray[np.int32], n_rows: int) -> "Pattern":
        """Find the pattern of the square matrix with ``n_rows`` rows."""
        elements = np.ascontiguousarray(elements, dtype=np.int32)
        offsets, occurrences = _occurrences(elements, n_rows)
        block = max(1, -(-n_rows // BLOCKS))
        edges = np.minimum(np.arange(0, n_rows + block, block), n_rows)
        # Room for every candidate; pages that no column reaches are never touched.
        bounds = offsets[edges] * elements.shape[1]
        columns = np.empty(int(bounds[-1]), dtype=np.int32)
        lengths = np.empty(n_rows, dtype=np.int64)
        arrays = elements, offsets, occurrences, block, bounds, columns, lengths
        run_ranges(_kernels.row_columns, bounds.size - 1, *arrays)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        runs = zip(bounds, np.diff(indptr[edges]), strict=False)
        indices = np.concatenate([columns[first : first + length] for first, length in runs])
        return cls(elements, offsets, occurrences, indptr, indices)

    def matrix(
        self, coefficients: NDArray[np.float64], reference: NDArray[np.float64]
    ) -> scipy.sparse.csr_matrix:
        """Assemble sum_c coefficients[t, c] reference[i, j, c] over all elements t."""
        n_rows = self.indptr.size - 1
        data = np.zeros(self.indices.size)
        around = self.offsets, self.occurrences
        terms = self.elements, np.ascontiguousarray(coefficients), reference
        run_ranges(_kernels.fill_matrix, n_rows, *terms, *around, self.indptr, self.indices, data)
        matrix = scipy.sparse.csr_matrix(
            (data, self.indices, self.indptr), shape=(n_rows, n_rows), copy=False
        )
        matrix.has_sorted_indices = True
        return matrix


def _occurrences(
    elements: NDArray[np.int32], n_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List the elements around every row, ascending."""
    if elements.size >= 2**31:
        raise MeshError(f"mesh: {elements.shape[0]} cells are more than 32-bit numbering can hold")
    counts = np.bincount(elements[elements >= 0], minlength=n_rows)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    occurrences = np.empty(int(offsets[-1]), dtype=np.int32)
    _kernels.fill_rows(elements, offsets, occurrences)
    return offsets, occurrences


def geometry_tensors(
    points: NDArray[np.float64], cells: NDArray[np.int32], conductivity: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return |det J| J^-1 sigma J^-T of every cell: (T, 6) entries 00, 11, 22, 01, 02, 12.

    ``points`` (P, 3) are in m, ``cells`` (T, 4); ``conductivity`` (T, 6) in S/m has the entries xx,
    yy, zz, xy, xz, yz of each cell's tensor.
    """
    out = np.empty((cells.shape[0], 6))
    arrays = np.ascontiguousarray(points), cells, np.ascontiguousarray(conductivity)
    run_ranges(_kernels.geometry_tensors, len(cells), *arrays, out)
    return out


def stiffness_matrix(
    pattern: Pattern,
    points: NDArray[np.float64],
    cells: NDArray[np.int32],
    conductivity: NDArray[np.float64],
    order: int,
) -> scipy.sparse.csr_matrix:
    """Assemble the integral of sigma grad phi_i . grad phi_j in the numbering of ``pattern``."""
    return pattern.matrix(geometry_tensors(points, cells, conductivity), stiffness_tensor(order))
