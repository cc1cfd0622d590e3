"""Lead fields obey physics, and the algebra of contacts equals direct solves."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fieldcorr.errors import DriveError, FieldError, IdentityError, MeshError, ModelError
from fieldcorr.leadfield import LeadField, compute_lead_field, solve_configurations
from fieldcorr.leadfield.compute import balanced_inverse, structural_identities
from fieldcorr.mesh import Mesh
from fieldcorr.model import Model
from fieldcorr.tissue import cell_conductivity

POLARITY = np.zeros((2, 16), dtype=np.int8)
POLARITY[0, [0, 7]] = 1, -1
POLARITY[1, [3, 5, 12]] = -1, 1, 1

CONTACT_MODELS: dict[str, dict[str, Any]] = {
    "equipotential": {},
    "impedance": {"contacts.model": "impedance", "contacts.impedance_ohm_m2": 1e-3},
    "uniform-current": {"contacts.model": "uniform-current"},
    "grounded": {"boundary.outer": "grounded"},
    "case": {"boundary.outer": "case"},
}


def currents_by_algebra(
    admittance: NDArray[np.float64], polarity: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Return the currents of a voltage drive, off contacts floating, from the admittance."""
    voltage = 0.5 * polarity.astype(np.float64)
    off = polarity == 0
    inner = admittance[np.ix_(off, off)]
    voltage[off] = -np.linalg.solve(inner, admittance[np.ix_(off, ~off)] @ voltage[~off])
    return np.asarray(admittance @ voltage)


def without_constant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(values - values.mean())


@pytest.fixture(scope="module", params=list(CONTACT_MODELS))
def variant(
    request: pytest.FixtureRequest, bundled_model: Model, tiny_mesh: Mesh
) -> tuple[Model, LeadField]:
    """Return a model with another contact model or outer boundary, and its P1 lead field."""
    changes = {**CONTACT_MODELS[request.param], "solver.order": 1}
    model = bundled_model.replace(changes)
    return model, compute_lead_field(model, tiny_mesh)


def polarity_for(model: Model) -> NDArray[np.int8]:
    """Return test configurations with a column for the case where it is an electrode."""
    count = len(model.electrode_names)
    polarity = np.zeros((2, count), dtype=np.int8)
    polarity[:, :16] = POLARITY
    if count == 17:
        polarity[1, 16], polarity[1, 5] = 1, 0
    return polarity


def test_identities_hold_far_below_the_limit(tiny_lead_field: LeadField) -> None:
    names = {"symmetry", "row sums", "current balance", "energy", "reciprocity"}
    assert set(tiny_lead_field.identities) == names
    assert max(tiny_lead_field.identities.values()) < 1e-7
    assert tiny_lead_field.residuals.max() <= 1e-8


def test_admittance_is_that_of_a_passive_network(variant: tuple[Model, LeadField]) -> None:
    model, lead_field = variant
    admittance = lead_field.admittance
    assert (admittance == admittance.T).all()
    eigenvalues = np.linalg.eigvalsh(admittance)
    if model.boundary.outer == "grounded":
        assert eigenvalues[0] > 1e-6 * eigenvalues[-1]
    else:
        assert abs(eigenvalues[0]) < 1e-8 * eigenvalues[-1]
        assert eigenvalues[1] > 1e-4 * eigenvalues[-1]


def test_a_loose_tolerance_leaves_no_way_to_ground(bundled_model: Model, tiny_mesh: Mesh) -> None:
    """What row sums of an insulated body miss to 0 is no conductance: a drive would read it so."""
    loose = compute_lead_field(bundled_model, tiny_mesh, order=1, tolerance=1e-3)
    assert loose.identities["row sums"] > 1e-6
    assert (loose.admittance == loose.admittance.T).all()
    most = np.abs(loose.admittance).max()
    assert np.abs(loose.admittance.sum(axis=1)).max() < 1e-14 * most


def test_voltage_drive_equals_a_direct_solve(
    variant: tuple[Model, LeadField], tiny_mesh: Mesh
) -> None:
    model, lead_field = variant
    polarity = polarity_for(model)
    if model.contacts.model == "uniform-current":
        with pytest.raises(DriveError, match="voltage drive"):
            solve_configurations(model, tiny_mesh, polarity)
        return
    direct = solve_configurations(model, tiny_mesh, polarity)
    for row, found, nodal in zip(polarity, direct.currents, direct.nodal, strict=True):
        expected = currents_by_algebra(lead_field.admittance, row)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
        field = expected @ lead_field.nodal
        if model.boundary.outer != "grounded":
            assert abs(found.sum()) < 1e-8 * np.abs(found).max()
            field, nodal = without_constant(field), without_constant(nodal)
        np.testing.assert_allclose(nodal, field, atol=1e-6 * np.ptp(field))


def test_current_drive_equals_a_direct_solve(
    variant: tuple[Model, LeadField], tiny_mesh: Mesh
) -> None:
    model, lead_field = variant
    currents = np.zeros((1, len(model.electrode_names)))
    currents[0, [1, 6, 13]] = 0.25, -1.0, 0.75
    direct = solve_configurations(model, tiny_mesh, np.sign(currents), currents=currents)
    field = currents[0] @ lead_field.nodal
    nodal = direct.nodal[0]
    if model.boundary.outer != "grounded":
        field, nodal = without_constant(field), without_constant(nodal)
    np.testing.assert_allclose(nodal, field, atol=1e-6 * np.ptp(field))


def test_off_contacts_are_equipotential_and_carry_no_current(
    bundled_model: Model, tiny_mesh: Mesh, tiny_lead_field: LeadField
) -> None:
    currents = currents_by_algebra(tiny_lead_field.admittance, POLARITY[1])
    assert np.abs(currents[POLARITY[1] == 0]).max() < 1e-12 * np.abs(currents).max()
    nodal = currents @ tiny_lead_field.nodal
    facets = tiny_mesh.facets[tiny_mesh.facet_tags == tiny_mesh.facet_tag("9")]
    nodes = tiny_lead_field.space.facet_dofs(facets)
    assert np.ptp(nodal[nodes]) < 1e-12 * np.ptp(nodal)


@pytest.mark.slow
def test_a_thin_contact_layer_tends_to_an_equipotential_contact(
    bundled_model: Model, tiny_mesh: Mesh, tiny_lead_field: LeadField
) -> None:
    gaps = []
    for impedance in (1e-3, 1e-4, 1e-5):
        changes = {"contacts.model": "impedance", "contacts.impedance_ohm_m2": impedance}
        layer = compute_lead_field(bundled_model.replace(changes), tiny_mesh)
        gaps.append(np.abs(layer.admittance - tiny_lead_field.admittance).max())
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]
    assert gaps[2] < 0.01 * np.abs(tiny_lead_field.admittance).max()


def test_left_right_mirror_symmetry(tiny_lead_field: LeadField) -> None:
    """The paddle's mirror image exchanges the outer columns; the mesh is not exactly symmetric."""
    mirror = np.r_[11:16, 5:11, 0:5]
    admittance = tiny_lead_field.admittance
    gap = np.abs(admittance - admittance[np.ix_(mirror, mirror)]).max()
    assert gap < 0.05 * np.abs(admittance).max()


def test_bits_do_not_depend_on_the_number_of_threads(
    bundled_model: Model, tiny_mesh: Mesh, tiny_lead_field: LeadField
) -> None:
    alone = compute_lead_field(bundled_model, tiny_mesh, threads=1)
    assert alone.nodal.tobytes() == tiny_lead_field.nodal.tobytes()
    assert alone.gram.tobytes() == tiny_lead_field.gram.tobytes()
    assert alone.admittance.tobytes() == tiny_lead_field.admittance.tobytes()
    assert dict(alone.identities) == dict(tiny_lead_field.identities)


def test_progress_names_the_stages(bundled_model: Model, tiny_mesh: Mesh) -> None:
    seen: list[tuple[str, float]] = []
    compute_lead_field(
        bundled_model, tiny_mesh, order=1, progress=lambda name, share: seen.append((name, share))
    )
    names = list(dict.fromkeys(name for name, _ in seen))
    assert names == ["assemble", "solve", "identities", "region"]
    shares = [share for name, share in seen if name == "solve"]
    assert len(shares) > 5
    assert shares[0] == 0.0
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order 3: elements have order 1 or 2"),
        ({"method": "foo"}, "method 'foo': must be one of multigrid, direct"),
        ({"tolerance": 0.0}, "tolerance 0.0: must lie between 0 and 1"),
        ({"tolerance": float("nan")}, "tolerance nan: must lie between 0 and 1"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, Any], message: str, bundled_model: Model, tiny_mesh: Mesh
) -> None:
    with pytest.raises(FieldError, match=message):
        compute_lead_field(bundled_model, tiny_mesh, **options)


def test_only_a_grounded_body_has_an_absolute_potential(variant: tuple[Model, LeadField]) -> None:
    model, lead_field = variant
    volume, mesh = lead_field.volume, lead_field.mesh
    currents = np.zeros(len(model.electrode_names))
    currents[[1, 6]] = 1.0, -1.0
    nodal = volume.of_currents(currents).values
    if model.boundary.outer == "grounded":
        assert volume.zero == "grounded outer boundary"
        outer = mesh.facets[mesh.facet_tags == mesh.facet_tag("outer")]
        assert np.abs(nodal[lead_field.space.facet_dofs(outer)]).max() < 1e-9 * np.ptp(nodal)
    else:
        assert volume.zero == "mean over the compared region"


def test_a_tissue_without_conductivity_is_named(bundled_model: Model, tiny_mesh: Mesh) -> None:
    names = tuple("tendon" if name == "muscle" else name for name in tiny_mesh.tissues)
    other = Mesh(
        tiny_mesh.points,
        tiny_mesh.cells,
        tiny_mesh.cell_tags,
        names,
        tiny_mesh.facets,
        tiny_mesh.facet_tags,
        tiny_mesh.facet_names,
    )
    with pytest.raises(MeshError, match="unknown tissue 'tendon'"):
        compute_lead_field(bundled_model, other)
    with pytest.raises(ModelError, match=r"\[tissues\.tendon\] is missing"):
        cell_conductivity(bundled_model, other)


def test_a_wrong_admittance_breaks_the_identities(
    bundled_model: Model, tiny_mesh: Mesh, tiny_lead_field: LeadField
) -> None:
    from fieldcorr.contacts import electrodes_of
    from fieldcorr.leadfield.system import build_system

    sigma = cell_conductivity(bundled_model, tiny_mesh)
    system = build_system(tiny_lead_field.space, sigma, electrodes_of(bundled_model, tiny_mesh))
    nodal = np.ascontiguousarray(tiny_lead_field.nodal.T)
    volts = nodal @ tiny_lead_field.admittance + 1.0 / 16
    good = structural_identities(system, volts, tiny_lead_field.admittance, nodal, 1e-8)
    assert max(good.values()) < 1e-7
    lost = tiny_lead_field.admittance.copy()
    lost[2, 3] *= 1.001
    with pytest.raises(IdentityError, match="symmetry"):
        structural_identities(system, volts, lost, nodal, 1e-8)
    with pytest.raises(IdentityError, match="energy"):
        structural_identities(system, 1.001 * volts, tiny_lead_field.admittance, nodal, 1e-8)
    with pytest.raises(IdentityError, match="reciprocity"):
        structural_identities(system, volts, tiny_lead_field.admittance, 1.001 * nodal, 1e-8)


def test_balanced_inverse_inverts_on_balanced_vectors() -> None:
    root = np.random.default_rng(0).normal(size=(6, 6))
    projector = np.eye(6) - 1.0 / 6
    matrix = projector @ (root @ root.T) @ projector
    inverse = balanced_inverse(matrix)
    np.testing.assert_allclose(matrix @ inverse, projector, atol=1e-10)
    np.testing.assert_allclose(inverse.sum(axis=0), 0.0, atol=1e-10)


def test_the_direct_solver_agrees(bundled_model: Model, tiny_mesh: Mesh) -> None:
    multigrid = compute_lead_field(bundled_model, tiny_mesh, order=1)
    direct = compute_lead_field(bundled_model, tiny_mesh, order=1, method="direct")
    for name in ("admittance", "gram", "nodal"):
        one, other = getattr(multigrid, name), getattr(direct, name)
        np.testing.assert_allclose(one, other, atol=1e-7 * np.abs(one).max())
    assert direct.iterations == 0
    assert direct.residuals.max() < 1e-10
