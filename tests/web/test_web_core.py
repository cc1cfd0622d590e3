"""The numbers of a page are those of Python, for any pattern."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.batch import precompute
from fieldcorr.configurations.text import format_configuration
from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.drive import contact_currents
from fieldcorr.elements import NodalField
from fieldcorr.elements.section import PLANES
from fieldcorr.model import Model
from fieldcorr.stimulation import Limits, Stimulation, Stimulator
from fieldcorr.store import Store
from fieldcorr.web.assets import joined_module
from fieldcorr.web.data import page_data, resistance, stimulation_record
from fieldcorr.web.packing import pack_grid, pack_integers
from fieldcorr.web.sections import FINER, section_places

PATTERNS = 100
FloatArray = NDArray[np.float64]

BRIDGE = """
window.core = { openStore, openSection, currents, impedance, correlations, nearest, fieldOf,
  parsePattern, patternText, unpackIntegers, quantity, delivered };
"""
FIGURES = """async ([data, patterns]) => {
  const store = await core.openStore(data);
  const kinds = ["potential", "field", "activating"];
  for (const section of store.sections) {
    for (const kind of kinds) await core.openSection(section, kind);
  }
  const sections = await Promise.all(store.sections.map((section) => core.openSection(section)));
  return patterns.map((pattern) => {
    const current = core.currents(store, pattern);
    const fields = {};
    for (const kind of kinds) {
      // Every seventh point: numbers are slow to bring over.
      fields[kind] = sections.map((section) =>
        Array.from(core.fieldOf(section, kind, current).filter((_, k) => k % 7 === 0)));
    }
    return { current: Array.from(current), ohm: core.impedance(store, current),
      r: Array.from(core.correlations(store, current)), fields,
      near: core.nearest(store, pattern, current, 5) };
  });
}"""


def random_patterns(count: int, contacts: int, seed: int = 5) -> NDArray[np.int8]:
    """Return patterns with a cathode and an anode at least, from sparse to full."""
    rng = np.random.default_rng(seed)
    rows: list[NDArray[np.int8]] = []
    while len(rows) < count:
        share = rng.uniform(0.1, 0.95)
        row = rng.choice([-1, 0, 1], contacts, p=[share / 2, 1 - share, share / 2]).astype(np.int8)
        if {-1, 1} <= set(row.tolist()):
            rows.append(row)
    return np.array(rows)


DELIVERED = """async ([data, patterns, setting]) => {
  const store = await core.openStore(data);
  return patterns.map((pattern) => {
    const found = core.delivered(store, pattern, core.currents(store, pattern), setting);
    const list = (key) => found.contacts.map((contact) => contact[key]);
    return { numbers: [found.impedance, found.ceiling], reason: found.reason,
      contacts: list("contact"), parts: ["mA", "charge", "density", "k"].map(list) };
  });
}"""


@pytest.fixture(scope="module")
def data(store: Store) -> dict[str, Any]:
    return page_data(store)


@pytest.fixture
def core(open_page: Callable[..., Any]) -> Any:
    page = open_page()
    page.add_script_tag(type="module", content=joined_module("core") + BRIDGE)
    page.wait_for_function("window.core")
    return page


@pytest.mark.parametrize("split", ["worst", "model"])
@pytest.mark.parametrize("control", ["voltage", "current"])
def test_what_is_delivered_is_that_of_python(
    store: Store, data: dict[str, Any], core: Any, control: str, split: str
) -> None:
    """Of 100 random patterns, some with contacts that were not measured, one measured itself."""
    patterns = random_patterns(PATTERNS, len(store.contact_names), seed=8)
    own = format_configuration(-patterns[7], store.contact_names)
    measured = {name: 500.0 + 30 * e for e, name in enumerate(store.contact_names) if e != 3}
    stimulator = Stimulator(
        control=control,  # type: ignore[arg-type]
        split=split,  # type: ignore[arg-type]
        pulse_width_us=210.0,
        largest=12.0,
        least=0.5,
        step=0.05,
        impedance_ohm=measured | {own: 432.0},
        limits=Limits(28.0, 1.4, 7.0),
    )
    areas = np.full(len(store.contact_names), 0.06)
    stimulation = Stimulation(stimulator, store.contact_names, areas)
    told = {**data, "sections": [], "stimulation": stimulation_record(stimulation)}
    setting = {"amplitude": 3.1, "pulseWidth": 180.0}
    found = core.evaluate(DELIVERED, [told, patterns.tolist(), setting])
    current = contact_currents(patterns, store.admittance)
    doses = stimulation.doses(patterns, current, amplitude=3.1, pulse_width_us=180.0)
    assert [one["reason"] for one in found] == list(doses.reasons)
    numbers = np.array([one["numbers"] for one in found], dtype=float)
    np.testing.assert_allclose(numbers[:, 0], doses.impedance_ohm, rtol=1e-9)
    np.testing.assert_allclose(numbers[:, 1], doses.ceiling, rtol=1e-6, atol=1e-9)
    assert np.isfinite(doses.ceiling).sum() > 0
    for k, one in enumerate(found):
        own_parts = doses.contact_mA, doses.charge_uC, doses.density_uC_per_cm2, doses.shannon_k
        for part, values in zip(one["parts"], own_parts, strict=True):
            np.testing.assert_allclose(
                np.array(part, dtype=float), values[k, one["contacts"]], rtol=1e-6, atol=1e-6
            )


def grid_points(section: dict[str, Any]) -> FloatArray:
    """Return the points (N, 3) m at which a section holds its fields."""
    _, rows, columns = section["potential"]["shape"]
    (left, right), (low, high) = section["across"], section["up"]
    across, up = np.linspace(left, right, columns), np.linspace(low, high, rows)
    return PLANES[section["plane"]].points(1e-3 * across, 1e-3 * up, 1e-3 * section["at"])


def lead_fields(store: Store, section: dict[str, Any]) -> dict[str, FloatArray]:
    """Return what every contact makes per ampere in a section, evaluated by Python."""
    volume, points = store.fields.volume, grid_points(section)[::7]
    nodal = NodalField(volume.space, store.array("/leadfield/nodal"))
    zero = volume.mean(volume.potential)[:, None]
    field = nodal.electric_field(points)
    # On a face between elements E has several values, of which any may be taken: left out here.
    for aside in 1e-8 * np.random.default_rng(2).normal(size=(4, 3)):
        jump = np.abs(nodal.electric_field(points + aside) - field).max(axis=(0, 2))
        field[:, ~(jump < 1e-4 * np.abs(field).max(axis=(0, 2)))] = np.nan
    return {
        "potential": nodal.potential(points) - zero,
        "field": field,
        "activating": nodal.activating(points),
    }


def test_figures_are_those_of_python(store: Store, data: dict[str, Any], core: Any) -> None:
    sections = [data["sections"][5], data["sections"][-1]]
    assert [section["plane"] for section in sections] == ["axial", "sagittal"]
    patterns = random_patterns(PATTERNS, len(store.contact_names))
    few = {**data, "sections": sections}
    found = core.evaluate(FIGURES, [few, patterns.tolist()])
    everyone = np.concatenate([store.current, contact_currents(patterns, store.admittance)])
    z = embedding_from_gram(everyone, store.gram)
    fields = [lead_fields(store, section) for section in sections]
    for k, (pattern, told) in enumerate(zip(patterns, found, strict=True)):
        current = store.currents_of(pattern)
        scale = np.abs(current).max()
        np.testing.assert_allclose(told["current"], current, atol=1e-9 * scale)
        assert told["ohm"] == pytest.approx(1.0 / current[current > 0].sum(), rel=1e-6)
        r = z[: len(store)] @ z[len(store) + k]
        np.testing.assert_allclose(told["r"], r, atol=1e-6)
        for s, lead in enumerate(fields):
            for kind, share in (("potential", 1e-6), ("field", 1e-4), ("activating", 1e-4)):
                values = np.tensordot(current, lead[kind], axes=1)
                if kind == "field":
                    values = np.linalg.norm(values, axis=1)
                known = np.isfinite(values)
                assert known.mean() > 0.6
                gap = np.abs(np.array(told["fields"][kind][s]) - values)[known].max()
                # What single contacts make may cancel, but is rounded before it does.
                made = np.nanmax(np.tensordot(np.abs(current), np.abs(lead[kind]), axes=1))
                assert gap <= share * made, kind


def test_potential_is_that_of_the_store(store: Store, data: dict[str, Any], core: Any) -> None:
    section = data["sections"][3]
    patterns = random_patterns(2, len(store.contact_names), seed=3)
    found = core.evaluate(FIGURES, [{**data, "sections": [section]}, patterns.tolist()])
    for pattern, told in zip(patterns, found, strict=True):
        values = store.potential(pattern, grid_points(section)[::7])
        known = np.isfinite(values)
        gap = np.abs(np.array(told["fields"]["potential"][0]) - values)[known].max()
        assert gap <= 2e-8


def test_nearest_is_that_of_the_store(store: Store, data: dict[str, Any], core: Any) -> None:
    slim = {**data, "sections": []}
    rows = [0, 17, 239]
    found = core.evaluate(FIGURES, [slim, store.polarity[rows].tolist()])
    for row, told in zip(rows, found, strict=True):
        _, r = store.nearest(row, 5)
        np.testing.assert_allclose([entry["r"] for entry in told["near"]], r, atol=1e-6)
        assert row not in [entry["place"] for entry in told["near"]]


def test_current_drive_and_a_grounded_body(store: Store, data: dict[str, Any], core: Any) -> None:
    patterns = random_patterns(20, len(store.contact_names), seed=8)
    shares = np.linspace(1.0, 3.0, len(store.contact_names))
    split = contact_currents(patterns, store.admittance, mode="current", fractions=shares)
    slim = {**data, "sections": [], "drive": {"mode": "current", "fractions": shares.tolist()}}
    for told, current in zip(core.evaluate(FIGURES, [slim, patterns.tolist()]), split, strict=True):
        np.testing.assert_allclose(told["current"], current, atol=1e-12)
        power = current @ np.linalg.pinv(store.admittance) @ current
        assert told["ohm"] == pytest.approx(power, rel=1e-6)
    leaky = store.admittance + 0.2 * np.diag(np.diag(store.admittance))
    slim = {**data, "sections": [], "resistance": resistance(leaky).tolist()}
    driven = contact_currents(patterns, leaky)
    found = core.evaluate(FIGURES, [slim, patterns.tolist()])
    np.testing.assert_allclose([told["current"] for told in found], driven, atol=1e-12)


def test_texts_of_patterns(store: Store, data: dict[str, Any], core: Any) -> None:
    said = """async ([data, texts]) => {
      const store = await core.openStore({ ...data, sections: [] });
      return texts.map((text) => {
        try { return core.patternText(store, core.parsePattern(store, text)); }
        catch (error) { return error.message; }
      });
    }"""
    texts = ["11+ 0- 5+", "off", "3", "99+", "1- 1+", "5\u2212 7+"]
    assert core.evaluate(said, [data, texts]) == [
        "0- 5+ 11+",
        "off",
        '"3" does not end in + (anode) or - (cathode)',
        'there is no contact "99"',
        "contact 1 is named twice",
        "5- 7+",
    ]


def test_quantities_have_prefixes(core: Any) -> None:
    values = [0.0, 1.5e-4, -0.31, 999.96, 4012.0]
    told = core.evaluate("values => values.map((x) => core.quantity(x, 'V'))", values)
    assert told == ["0 V", "150 \u00b5V", "\u2212310 mV", "1 kV", "4.01 kV"]


def test_integers_survive_packing(core: Any) -> None:
    numbers = np.array([[0, -1, 1, 127, -128, 70_000, -(2**30), 2**30]])
    packed = pack_integers(numbers)
    unpack = "async (packed) => Array.from(await core.unpackIntegers(packed))"
    assert core.evaluate(unpack, packed) == numbers.ravel().tolist()
    assert core.evaluate(unpack, pack_integers(np.zeros((2, 3)))) == [0] * 6


def test_a_slim_store_has_no_sections(tmp_path: Path, store: Store, bundled_model: Model) -> None:
    model = bundled_model.replace({"configurations.preset": "up-to-two"})
    cache = store.path.parent / "cache"
    path = tmp_path / "slim.h5"
    with precompute(model, path, mesh="tiny", slim=True, cache=cache, estimate=False) as slim:
        found = page_data(slim)
    assert found["sections"] == []
    assert found["zero"] is None


@given(st.lists(st.integers(-300, 300), min_size=1, max_size=60))
def test_sections_lie_at_contacts(places: list[int]) -> None:
    coordinates = 1e-4 * np.array(places, dtype=np.float64)
    found = np.array(section_places(coordinates))
    assert (np.diff(found) > 0).all()
    assert 1 <= len(found) <= 12
    assert coordinates.min() - 1e-12 <= found[0] <= found[-1] <= coordinates.max() + 1e-12


def test_the_void_of_the_paddle_is_finer(data: dict[str, Any]) -> None:
    for section in data["sections"]:
        _, rows, columns = section["potential"]["shape"]
        assert section["inside"]["shape"] == [FINER * (rows - 1) + 1, FINER * (columns - 1) + 1]


def test_a_grid_is_rounded_to_so_many_bits() -> None:
    values = np.random.default_rng(1).normal(size=(2, 5, 7))
    assert len(pack_grid(values, 22)["data"]) > len(pack_grid(values, 8)["data"])
    assert pack_grid(np.zeros((1, 2, 2)), 8)["scale"] == [1 / 128]
