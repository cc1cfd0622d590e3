"""The peers of the finite-element rows: scikit-fem, NGSolve, pypardiso, pyamg.

They get the problems of :mod:`bench_rows.fe_problem`. Each is used as its documentation recommends,
with the least quadrature that is exact.
"""

from collections.abc import Mapping

import numpy as np

from bench_rows import Measured
from bench_rows.fe_problem import contact_problem, load, worst_residual


def assembly_skfem(mesh: str, order: int) -> Measured:
    """Prepare scikit-fem: basis and bilinear form with piecewise constant conductivities."""
    import skfem

    found, sigma = load(mesh)
    grid = skfem.MeshTet(np.array(found.points.T), np.array(found.cells.T.astype(np.int64)))
    element = skfem.ElementTetP1() if order == 1 else skfem.ElementTetP2()

    @skfem.BilinearForm
    def form(u, v, w):  # type: ignore[no-untyped-def]
        du, dv = u.grad, v.grad
        return w["across"] * (du[0] * dv[0] + du[1] * dv[1]) + w["along"] * du[2] * dv[2]

    def assemble() -> Mapping[str, float]:
        basis = skfem.Basis(grid, element, intorder=max(1, 2 * (order - 1)))
        constant = basis.with_element(skfem.ElementTetP0())
        across, along = (constant.interpolate(sigma[:, k].copy()) for k in (0, 2))
        matrix = form.assemble(basis, across=across, along=along)
        z = basis.doflocs[2]
        return {"energy": float(z @ (matrix @ z))}

    return assemble


def assembly_ngsolve(mesh: str, order: int) -> Measured:
    """Prepare NGSolve: space and bilinear form on one thread."""
    import ngsolve

    from fieldcorr.model import load_model
    from fieldcorr.verification.peer import conductivity_function, ngsolve_mesh

    ngsolve.SetNumThreads(1)
    found, _ = load(mesh)
    grid = ngsolve_mesh(found)
    tensor = conductivity_function(load_model("lumbosacral-565"), grid)

    def assemble() -> Mapping[str, float]:
        space = ngsolve.H1(grid, order=order)
        u, v = space.TnT()
        form = ngsolve.BilinearForm(space)
        form += tensor * ngsolve.grad(u) * ngsolve.grad(v) * ngsolve.dx
        form.Assemble()
        z = ngsolve.GridFunction(space)
        z.Set(ngsolve.z)
        return {"energy": float(ngsolve.InnerProduct(z.vec, (form.mat * z.vec).Evaluate()))}

    return assemble


def solve_pypardiso(mesh: str, order: int, tolerance: float) -> Measured:
    """Prepare MKL's PARDISO as a Cholesky solver (upper triangle, mtype 2)."""
    import scipy.sparse
    from pypardiso import PyPardisoSolver

    del tolerance
    matrix, rhs, _, _ = contact_problem(mesh, order)
    upper = scipy.sparse.csr_matrix(scipy.sparse.triu(matrix))

    def solve() -> Mapping[str, float]:
        solver = PyPardisoSolver(mtype=2)
        solver.factorize(upper)
        x = solver.solve(upper, np.asfortranarray(rhs))
        solver.free_memory(everything=True)
        return {"residual": worst_residual(matrix, x, rhs)}

    return solve


def solve_pyamg(mesh: str, order: int, tolerance: float) -> Measured:
    """Prepare pyamg: smoothed aggregation, then conjugate gradients for each contact."""
    import pyamg

    matrix, rhs, _, _ = contact_problem(mesh, order)
    matrix.indptr = matrix.indptr.astype(np.int32)

    def solve() -> Mapping[str, float]:
        hierarchy = pyamg.smoothed_aggregation_solver(matrix)
        columns = [hierarchy.solve(b, tol=tolerance, accel="cg", maxiter=500) for b in rhs.T]
        return {"residual": worst_residual(matrix, np.array(columns).T, rhs)}

    return solve


def solve_sparsecholesky(mesh: str, order: int, tolerance: float) -> Measured:
    """Prepare NGSolve's sparse Cholesky factorisation of the same matrix.

    Its BDDC preconditioner was measured to be slower: with its default coarse space it factorises
    all of P2 as well, and with vertices only it needs hundreds of iterations on graded meshes.
    """
    import ngsolve

    del tolerance
    ngsolve.SetNumThreads(1)
    matrix, rhs, _, _ = contact_problem(mesh, order)
    entries = matrix.tocoo()
    own = ngsolve.la.SparseMatrixd.CreateFromCOO(
        entries.row, entries.col, entries.data, *matrix.shape
    )

    def solve() -> Mapping[str, float]:
        inverse = own.Inverse(inverse="sparsecholesky")
        x = np.empty_like(rhs)
        b = own.CreateColVector()
        for column in range(rhs.shape[1]):
            b.FV().NumPy()[:] = rhs[:, column]
            x[:, column] = (inverse * b).Evaluate().FV().NumPy()
        return {"residual": worst_residual(matrix, x, rhs)}

    return solve
