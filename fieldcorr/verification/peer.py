"""The same mesh in another finite-element code: NGSolve.

The correlations r of random configurations come from NGSolve alone (assembly, factorisation,
admittance, Gram matrix) and are compared with those of fieldcorr. NGSolve is an optional package
(extra ``bench``), loaded only when a function here is called.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.drive import contact_currents
from fieldcorr.errors import MissingExtraError
from fieldcorr.leadfield import compute_lead_field
from fieldcorr.leadfield.region import window
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.model import Model, load_model, resolve_mesh
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification.compare import Comparison

CONFIGURATIONS = 500
TARGET = 1e-6


def load_ngsolve() -> Any:
    """Import NGSolve, or say which extra brings it."""
    try:
        import ngsolve
    except ImportError as missing:
        message = "NGSolve is not installed: pip install fieldcorr[bench]"
        raise MissingExtraError(message) from missing
    return ngsolve


def ngsolve_mesh(mesh: Mesh) -> Any:
    """Return the mesh as an NGSolve mesh: same points, materials and boundary names."""
    ngsolve = load_ngsolve()
    from netgen.meshing import FaceDescriptor
    from netgen.meshing import Mesh as NetgenMesh

    netgen = NetgenMesh(dim=3)
    netgen.AddPoints(np.array(mesh.points))
    for tag, name in enumerate(mesh.tissues):
        netgen.SetMaterial(tag + 1, name)
        cells = np.array(mesh.cells[mesh.cell_tags == tag])
        netgen.AddElements(dim=3, index=tag + 1, data=cells, base=0)
    for tag, name in enumerate(mesh.facet_names):
        index = netgen.Add(FaceDescriptor(surfnr=tag + 1, domin=1, domout=0, bc=tag + 1))
        netgen.SetBCName(tag, name)
        facets = np.array(mesh.facets[mesh.facet_tags == tag])
        netgen.AddElements(dim=2, index=index, data=facets, base=0)
    return ngsolve.Mesh(netgen)


def conductivity_function(model: Model, mesh: Any) -> Any:
    """Return the conductivity tensor as an NGSolve coefficient function."""
    function = load_ngsolve().CoefficientFunction
    tensors = {name: np.diag(tissue.principal_S_per_m) for name, tissue in model.tissues.items()}
    return mesh.MaterialCF({n: function(tuple(t.ravel()), dims=(3, 3)) for n, t in tensors.items()})


def ngsolve_matrices(model: Model, mesh: Mesh) -> tuple[FloatArray, FloatArray]:
    """Solve with each contact at 1 V and the others at 0 V in NGSolve.

    Return the admittance (E, E) in S, and the Gram matrix (E, E) of the mean-removed potentials per
    volt over the compared region.
    """
    ngsolve = load_ngsolve()
    grid = ngsolve_mesh(mesh)
    names = model.electrode_names
    space = ngsolve.H1(grid, order=model.solver.order, dirichlet="|".join(names))
    u, v = space.TnT()
    tensor = conductivity_function(model, grid)
    stiffness = ngsolve.BilinearForm(tensor * ngsolve.grad(u) * ngsolve.grad(v) * ngsolve.dx)
    region = ngsolve.dx(definedon=grid.Materials("|".join(model.region.tissues)))
    weight = _window_function(model, mesh, grid)
    mass = ngsolve.BilinearForm(weight * u * v * region)
    stiffness.Assemble()
    mass.Assemble()
    inverse = stiffness.mat.Inverse(space.FreeDofs(), inverse="sparsecholesky")
    fields = [_held_at_one(space, grid, name, stiffness, inverse) for name in names]
    constant = ngsolve.GridFunction(space)
    constant.Set(1.0)
    mean = np.array([_product(mass, f, constant) for f in fields])
    volume = _product(mass, constant, constant)
    admittance = np.array([[_product(stiffness, a, b) for b in fields] for a in fields])
    gram = np.array([[_product(mass, a, b) for b in fields] for a in fields])
    return admittance, gram - np.outer(mean, mean) / volume


def _window_function(model: Model, mesh: Mesh, grid: Any) -> Any:
    """Return the window of the compared region, linear between vertices."""
    ngsolve = load_ngsolve()
    values = window(
        mesh.points[:, 2],
        model.window_centre_m,
        1e-3 * model.region.window_half_length_mm,
        1e-3 * model.region.taper_mm,
    )
    weight = ngsolve.GridFunction(ngsolve.H1(grid, order=1))
    weight.vec.FV().NumPy()[:] = values
    return weight


def _held_at_one(space: Any, grid: Any, name: str, stiffness: Any, inverse: Any) -> Any:
    """Return the potential with one contact at 1 V and the others at 0 V."""
    field = load_ngsolve().GridFunction(space)
    field.Set(1.0, definedon=grid.Boundaries(name))
    residual = (stiffness.mat * field.vec).Evaluate()
    field.vec.data -= inverse * residual
    return field


def _product(form: Any, a: Any, b: Any) -> float:
    """Return a' M b of two NGSolve functions."""
    result = form.mat.CreateColVector()
    result.data = form.mat * b.vec
    return float(load_ngsolve().InnerProduct(a.vec, result))


def contact_voltages(polarity: NDArray[np.int8], admittance: FloatArray) -> FloatArray:
    """Return the voltages (K, E) with actives at +-1/2 V and the others floating."""
    voltages = 0.5 * polarity.astype(np.float64)
    for row, signs in zip(voltages, polarity, strict=True):
        off, on = np.flatnonzero(signs == 0), np.flatnonzero(signs)
        row[off] = -np.linalg.solve(
            admittance[np.ix_(off, off)], admittance[np.ix_(off, on)] @ row[on]
        )
    return voltages


def correlations(weights: FloatArray, gram: FloatArray) -> FloatArray:
    """Return r (K, K) of fields with weights (K, E) and Gram matrix (E, E)."""
    products = weights @ gram @ weights.T
    size = np.sqrt(np.diag(products))
    return np.asarray(products / np.outer(size, size))


def random_configurations(count: int, contacts: int, *, seed: int = 500) -> NDArray[np.int8]:
    """Return distinct random polarities (count, contacts) with both signs present."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice([-1, 0, 0, 0, 1], size=(4 * count, contacts)).astype(np.int8)
    drawn = np.unique(drawn[(drawn.max(axis=1) > 0) & (drawn.min(axis=1) < 0)], axis=0)
    return np.asarray(rng.permutation(drawn)[:count])


def peer_case(mesh_name: str = "tiny") -> list[Comparison]:
    """Compare r of random configurations with NGSolve on one of the bundled model's meshes."""
    model = load_model()
    mesh = read_mesh(resolve_mesh(model, mesh_name))
    polarity = random_configurations(CONFIGURATIONS, len(model.electrode_names))
    lead = compute_lead_field(model, mesh)
    own = correlations(contact_currents(polarity, lead.admittance, mode="voltage"), lead.gram)
    admittance, gram = ngsolve_matrices(model, mesh)
    theirs = correlations(contact_voltages(polarity, admittance), gram)
    worst = float(np.abs(own - theirs).max())
    names = (
        "NGSolve, same mesh",
        f"{model.name}, {mesh_name}",
        f"r of {len(polarity)} configurations, max difference",
    )
    return [Comparison(*names, lead.order, lead.space.n_dofs, worst, TARGET)]
