"""Charge, density, Shannon's k and ceilings: by hand, by published numbers, and by law."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.batch import precompute
from fieldcorr.batch.embed import within_limits
from fieldcorr.configurations.text import parse_configuration
from fieldcorr.errors import ConfigurationError, ModelError
from fieldcorr.export import export_store
from fieldcorr.model import Model
from fieldcorr.stimulation import (
    Limits,
    Stimulation,
    Stimulator,
    charge_density,
    charge_uC,
    shannon_k,
    stimulation_of,
)
from fieldcorr.store import Store

NAMES = ("0", "1", "2", "3")
AREA = 0.06  # cm2: 4.0 mm x 1.5 mm

positive = st.floats(1e-3, 1e3)


def made(
    texts: str | list[str], *, area: float = AREA, **keys: object
) -> tuple[Stimulation, Any, Any]:
    """Return a stimulation, the polarities of configurations, and currents that they share."""
    options = {"control": "current", "pulse_width_us": 200.0, "largest": 10.0} | keys
    rows = [texts] if isinstance(texts, str) else texts
    polarity = np.array([parse_configuration(text, NAMES) for text in rows])
    groups = [np.maximum((polarity == s).sum(axis=1), 1)[:, None] for s in (1, -1)]
    current = np.where(polarity > 0, 1.0 / groups[0], np.where(polarity < 0, -1.0 / groups[1], 0))
    found = Stimulation(Stimulator(**options), NAMES, np.full(4, area))  # type: ignore[arg-type]
    return found, polarity, current


def test_by_hand() -> None:
    # 5 mA for 200 us is 1 uC; over 0.06 cm2 16.67 uC/cm2; k = log10(1 / 0.06) = 1.2218.
    assert charge_uC(5.0, 200.0) == pytest.approx(1.0)
    assert charge_density(1.0, 0.06) == pytest.approx(16.6667, abs=1e-4)
    assert shannon_k(1.0, 0.06) == pytest.approx(1.2218, abs=1e-4)
    stimulation, *rows = made("0- 1+", planned=5.0)
    doses = stimulation.doses(*rows)
    np.testing.assert_allclose(doses.charge_uC[0, :2], 1.0)
    np.testing.assert_allclose(doses.shannon_k[0, :2], 1.2218, atol=1e-4)
    assert np.isnan(doses.charge_uC[0, 2:]).all()


def test_worked_numbers() -> None:
    # 30 uC/cm2 through 0.06 cm2 is 1.8 uC: log10(30) + log10(1.8).
    assert shannon_k(30.0 * 0.06, 0.06) == pytest.approx(1.732, abs=1e-3)
    # 100 uC/cm2 at 1 uC: k = 2.
    assert shannon_k(1.0, 0.01) == pytest.approx(2.0)
    # Butson 2006 (PMC3692979): 3 V into 790 and 1244 ohm are 3.80 and 2.41 mA.
    for ohm, mA in ((790.0, 3.797), (1244.0, 2.412)):
        stimulation, *rows = made(
            "0- 1+",
            control="voltage",
            planned=3.0,
            pulse_width_us=90.0,
            impedance_ohm={"0- 1+": ohm},
        )
        doses = stimulation.doses(*rows)
        assert doses.contact_mA[0, 0] == pytest.approx(mA, abs=1e-3)
        assert doses.charge_uC[0, 0] == pytest.approx(mA * 0.09, abs=1e-4)


@given(mA=positive, us=positive, cm2=positive)
def test_units_agree_with_si(mA: float, us: float, cm2: float) -> None:
    coulomb = (mA * 1e-3) * (us * 1e-6)
    assert charge_uC(mA, us) == pytest.approx(coulomb * 1e6)
    density = coulomb / (cm2 * 1e-4)  # C/m2
    assert charge_density(charge_uC(mA, us), cm2) == pytest.approx(density * 1e6 / 1e4)
    k = math.log10(coulomb * 1e6) + math.log10(density * 1e2)
    assert shannon_k(charge_uC(mA, us), cm2) == pytest.approx(k, abs=1e-9)


@given(
    density=st.none() | positive,
    k=st.none() | st.floats(-1.0, 3.0),
    most=st.none() | positive,
    cm2=st.floats(1e-3, 1.0),
    us=st.floats(10.0, 1000.0),
    step=st.sampled_from((0.0, 0.05, 0.1)),
    ohm=st.floats(100.0, 5000.0),
    control=st.sampled_from(("voltage", "current")),
    split=st.sampled_from(("worst", "model")),
)
def test_the_ceiling_is_the_largest_amplitude_within_the_limits(
    density: float | None,
    k: float | None,
    most: float | None,
    cm2: float,
    us: float,
    step: float,
    ohm: float,
    control: str,
    split: str,
) -> None:
    limits = Limits(density, k, most)
    stimulation, *rows = made(
        "0- 1+ 2+", area=cm2, control=control, pulse_width_us=us, step=step, split=split,
        limits=limits, impedance_ohm={"0- 1+ 2+": ohm},
    )  # fmt: skip

    def within(amplitude: float) -> bool:
        doses = stimulation.doses(*rows, amplitude=amplitude)
        checks = (
            (density, doses.density_uC_per_cm2),
            (k, doses.shannon_k),
            (most, doses.contact_mA),
        )
        return all(limit is None or np.nanmax(got) <= limit + 1e-6 * abs(limit) + 1e-6
                   for limit, got in checks)  # fmt: skip

    ceiling = float(stimulation.doses(*rows).ceiling[0])
    assert 0.0 <= ceiling <= 10.0
    assert ceiling == 0.0 or within(ceiling)
    more = ceiling + (step or 0.001 * max(ceiling, 1e-3))
    assert more > 10.0 or not within(more * (1 + 1e-4))
    if step:
        assert ceiling / step == pytest.approx(round(ceiling / step), abs=1e-6)


def test_nothing_is_known_without_a_measured_impedance() -> None:
    stimulation, *rows = made(["0- 1+", "2- 3+"], control="voltage", planned=3.0,
                              impedance_ohm={"0": 700.0, "1": 900.0})  # fmt: skip
    doses = stimulation.doses(*rows)
    assert doses.reasons == ("", "no impedance of 2- 3+ was measured")
    for values in (doses.contact_mA, doses.charge_uC, doses.density_uC_per_cm2, doses.shannon_k):
        assert np.isnan(values[1]).all()
        assert np.isfinite(values[0, :2]).all()
    assert np.isnan(doses.ceiling[1])
    assert stimulation.within_limits(*rows).tolist() == [True, False]


def test_impedances_err_towards_more_current() -> None:
    measured = {"0": 600.0, "1": 900.0, "2": 900.0, "0- 3+": 1300.0}
    stimulation, polarity, _ = made(
        ["0- 1+", "0- 1+ 2+", "0- 3+", "3- 0+", "1- 2+"], control="voltage", impedance_ohm=measured
    )
    # One polarity alone, the higher one; two of 900 ohm are 450 in parallel, so 600 is higher;
    # a measured bipole counts as it is, both ways round.
    assert stimulation.impedance(polarity).tolist() == [900.0, 600.0, 1300.0, 1300.0, 900.0]


@given(ohms=st.lists(st.floats(50.0, 5000.0), min_size=4, max_size=4), shared=st.floats(0.0, 0.25))
def test_contacts_measured_one_by_one_never_promise_too_much(
    ohms: list[float], shared: float
) -> None:
    """A star of resistors with a common part up to a quarter of the smallest contact's."""
    common = shared * min(ohms)
    stimulation, polarity, _ = made(
        ["0- 1+", "0- 1- 2+ 3+"], impedance_ohm=dict(zip(NAMES, ohms, strict=True))
    )
    own = [ohm - common for ohm in ohms]  # what remains in a bipole, where the common part cancels
    pair = own[0] + own[1]
    two = 1 / (1 / own[0] + 1 / own[1]) + 1 / (1 / own[2] + 1 / own[3])
    assert (stimulation.impedance(polarity) <= np.array([pair, two]) * (1 + 1e-9)).all()


def test_the_split_is_the_worst_one_unless_said() -> None:
    for split, expected in (("worst", 4.0), ("model", 2.0)):
        stimulation, *rows = made("0- 1+ 2+", planned=4.0, split=split)
        assert stimulation.doses(*rows).contact_mA[0].tolist()[:3] == [4.0, expected, expected]


def test_the_case_sets_no_limit() -> None:
    names = ("0", "case")
    stimulator = Stimulator(
        "voltage", 200.0, 10.0, planned=3.0, impedance_ohm={"0": 600.0}, limits=Limits(30.0)
    )
    stimulation = Stimulation(stimulator, names, np.array([AREA, np.inf]))
    doses = stimulation.doses(np.array([[-1, 1]], dtype=np.int8), np.array([[-1.0, 1.0]]))
    assert doses.contact_mA[0, 0] == pytest.approx(5.0)
    assert np.isnan(doses.contact_mA[0, 1])
    assert doses.ceiling[0] == pytest.approx(30.0 * AREA / 0.2 * 0.6)  # 9 mA through 600 ohm


# -- in a model and a store -----------------------------------------------------------------------

TABLE = {
    "control": "voltage",
    "pulse_width_us": 200,
    "rate_Hz": 40,
    "amplitude_V": {"largest": 10, "step": 0.1, "planned": 4.0},
    "impedance_ohm": {"0": 700, "5": 900, "6": 300},
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"configurations.shannon_k_max": 1.5}, "needs the table [stimulator]"),
        ({"stimulator": {"control": "voltage", "pulse_width_us": 200}}, "table amplitude_V"),
        ({"stimulator": TABLE | {"amplitude_mA": {"largest": 1}}}, "amplitude_mA has no effect"),
        ({"stimulator": TABLE | {"impedance_ohm": {"99": 700}}}, "impedance_ohm: neither"),
        ({"stimulator": TABLE | {"impedance_ohm": {"5-": 700}}}, "needs an anode and a cathode"),
        (
            {
                "stimulator": TABLE | {"impedance_ohm": {}},
                "configurations.charge_density_max_uC_per_cm2": 30,
            },
            "needs a measured impedance",
        ),
    ],
)  # fmt: skip
def test_a_model_says_what_is_wrong(
    bundled_model: Model, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(ModelError, match=r"stimulator|configurations") as caught:
        bundled_model.replace(changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def store(bundled_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("stimulation")
    changes = {
        "configurations.preset": "up-to-two",
        "configurations.charge_density_max_uC_per_cm2": 30,
        "stimulator": TABLE,
    }
    return precompute(
        bundled_model.replace(changes), folder / "s.h5", mesh="tiny", cache=folder, estimate=False
    )


def test_rules_leave_what_is_known_to_be_within_the_limits(store: Store) -> None:
    # 4 V through 700 and 900 ohm: the higher one, 4.44 mA, 0.889 uC, 14.8 uC/cm2. Contact 6 goes
    # with them by the other's impedance; nothing else was measured.
    assert sorted(store.texts) == ["0+ 5-", "0+ 6-", "0- 5+", "0- 6+", "5+ 6-", "5- 6+"]
    stimulation = stimulation_of(store)
    assert stimulation is not None
    assert stimulation.material == "platinum-iridium"
    row = store.index_of("0- 5+")
    doses = stimulation.doses(store.polarity[[row]], store.current[[row]])
    assert np.nanmax(doses.density_uC_per_cm2) == pytest.approx(4.0 / 900 * 1e3 * 0.2 / 0.06)
    assert doses.ceiling[0] == pytest.approx(8.1)  # 30 uC/cm2 is 9 mA, 8.1 V through 900 ohm


def test_rules_that_leave_nothing_say_so(bundled_model: Model, store: Store) -> None:
    model = bundled_model.replace(
        {"stimulator": TABLE, "configurations.current_per_contact_max_mA": 0.1}
    )

    class Field:
        contact_names, admittance = store.contact_names, store.admittance

    with pytest.raises(ConfigurationError, match=r"current_per_contact_max_mA = 0\.1 removed"):
        within_limits(model, np.array(store.polarity), Field())  # type: ignore[arg-type]


def test_columns_are_exported(store: Store, tmp_path: Path) -> None:
    export_store(store, tmp_path / "c.csv")
    with (tmp_path / "c.csv").open() as file:
        rows = {row["configuration"]: row for row in csv.DictReader(file)}
    row = rows["0- 5+"]
    assert float(row["measured impedance (ohm)"]) == 900.0
    assert float(row["largest charge (uC)"]) == pytest.approx(0.8889, abs=1e-4)
    assert float(row["Shannon k of 5"]) == pytest.approx(math.log10(0.88889**2 / 0.06), abs=1e-4)
    assert row["charge (uC) of 1"] == row["stimulation not known"] == ""
    assert float(row["amplitude ceiling (V)"]) == pytest.approx(8.1)
