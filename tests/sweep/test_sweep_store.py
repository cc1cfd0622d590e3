"""Stores made from a sweep: mean, spread, sure neighbours, damped updates, calibration."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fieldcorr.batch import precompute
from fieldcorr.cli import build_app
from fieldcorr.correlation.rule import kappa_tau_reference
from fieldcorr.correlation.sources import as_source
from fieldcorr.drive import bipole_impedances, contact_currents
from fieldcorr.duel import CorrDuel
from fieldcorr.duel.session import Session, read_session
from fieldcorr.duel.worlds import ElectrodeSpace
from fieldcorr.errors import ConfigurationError, DuelError, ModelError, StoreError
from fieldcorr.store import Store, check_store, open_store
from fieldcorr.store.layout import TEXT
from fieldcorr.store.sweeps import ENTRIES, SweepStore, open_sweep, write_sweep
from fieldcorr.sweep import Sweep
from fieldcorr.sweep.calibration import Measurement, calibrate, read_measurements


@pytest.fixture(scope="module")
def store(small: Sweep, swept: SweepStore, folder: Path) -> Iterator[Store]:
    """Return the store of the small sweep's mean."""
    path = folder / "sure.h5"
    options = {"mesh": "tiny", "sweep": swept, "cache": folder / "cache", "estimate": False}
    with precompute(small.model, path, **options) as made:  # type: ignore[arg-type]
        yield made


def test_r_is_the_mean_and_the_spread_that_of_the_sweep(store: Store, swept: SweepStore) -> None:
    samples = swept.ensemble()
    for row in (0, 57, 239):
        assert np.abs(store.row(row) - samples.mean(row)).max() <= 1.1e-5
        np.testing.assert_allclose(store.r_spread(row), samples.spread(row), atol=1e-7)
    assert store.rank < len(swept) * 15
    assert check_store(store.path) == []


def test_a_sweep_is_checked_too(swept: SweepStore, tmp_path: Path) -> None:
    import h5py

    assert check_store(swept.path) == []
    path = tmp_path / "changed.h5"
    path.write_bytes(swept.path.read_bytes())
    with h5py.File(path, "r+") as file:
        file["/samples/gram"][0, 0, 0] += 1.0
    (finding,) = check_store(path)
    assert str(finding) == "structure: /samples/gram does not match its recorded sha256"


def test_a_mean_of_other_samples_is_found_out(store: Store, tmp_path: Path) -> None:
    import h5py

    from fieldcorr.store import layout

    path = tmp_path / "forged.h5"
    path.write_bytes(store.path.read_bytes())
    name = "/sweep/weight"
    with h5py.File(path, "r+") as file:
        weight = np.array([0.6, 0.1, 0.1, 0.1, 0.1])
        file[name][...] = weight
        digests = json.loads(file["/provenance/sha256"][()])
        digests[name] = layout.digest_array(layout.BY_PATH[name], weight)
        file["/provenance/sha256"][()] = json.dumps(digests, sort_keys=True).encode()
    (finding,) = check_store(path)
    assert "from the mean of r over /sweep" in str(finding)


def test_sure_neighbours_are_above_the_threshold_in_enough_samples(
    store: Store, swept: SweepStore
) -> None:
    every, _ = store.neighbours(11)
    r = swept.ensemble().rows(11)[:, every]
    for sure in (0.5, 0.8, 1.0):
        kept, values = store.neighbours(11, sure=sure)
        assert kept.tolist() == every[(r > 0.0).mean(axis=0) >= sure - 1e-9].tolist()
        assert (values == store.row(11)[kept]).all()
    fewer = [len(store.neighbours(i, sure=1.0)[0]) < len(store.neighbours(i)[0]) for i in range(99)]
    assert any(fewer)
    with pytest.raises(ConfigurationError, match="sure = 2: must be between 0 and 1"):
        store.neighbours(11, sure=2.0)


def test_a_configuration_that_is_no_row_has_the_mean_too(store: Store, swept: SweepStore) -> None:
    polarity = np.zeros((1, 16), dtype=np.int8)
    polarity[0, [0, 3, 5]] = [-1, 1, 1]
    indices, r = store.nearest("0- 3+ 5+", 3)
    mean = swept.ensemble().weight @ swept.ensemble().rows_of(polarity[0])
    np.testing.assert_allclose(r, np.sort(mean)[:-4:-1], atol=1e-6)
    np.testing.assert_allclose(mean[indices], r, atol=1e-6)


def test_damped_updates_read_r_less_its_spread(store: Store) -> None:
    r = store.rows(0, len(store)).astype(np.float64)
    spread = np.array([store.ensemble.spread(k) for k in range(len(store))])
    damped = np.sign(r) * np.maximum(np.abs(r) - spread, 0.0)
    np.fill_diagonal(damped, 1.0)
    source = as_source(store, via="damped")
    kappa, tau = source.kappa_tau(3, 40)
    want_kappa, want_tau = kappa_tau_reference(damped, 3, 40)
    np.testing.assert_allclose(kappa, want_kappa, atol=1e-6)
    np.testing.assert_allclose(tau, want_tau, atol=1e-6)
    assert tau.sum() < store.kappa_tau(3, 40)[1].sum()


def test_a_damped_session_is_replayed_as_it_was(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "damped.journal"
    with Session.new(path, store, horizon=9, seed=2, via="damped") as session:
        assert isinstance(session.engine, CorrDuel)
        for _ in range(3):
            i, j = session.engine.ask()
            session.engine.tell(max(i, j), min(i, j))
        live = session.engine.survivors
    with Session.open(path, store) as again:
        assert again.engine.source.via == "damped"
        for column in ("arm", "estimate", "count"):
            assert (getattr(again.engine.survivors, column) == getattr(live, column)).all()
    with pytest.raises(DuelError, match="BayesDuel does not use r less its spread"):
        Session.new(tmp_path / "no", store, horizon=9, via="damped", algorithm="BayesDuel")


def test_a_truth_that_is_a_sample_is_linear_in_its_field(store: Store) -> None:
    world = ElectrodeSpace.of_store(store, "sample", via="damped")
    samples, found = store.ensemble.embeddings, set()
    for seed in range(12):
        utility = world.utility(np.random.default_rng(seed))
        left = [
            np.linalg.lstsq(np.column_stack([z, np.ones(len(z))]), utility, rcond=None)[1].sum()
            for z in samples
        ]
        assert min(left) < 1e-18 * len(store)
        found.add(int(np.argmin(left)))
    assert len(found) > 2
    np.testing.assert_array_equal(world.correlations()[7], as_source(store, via="damped").row(7))
    with pytest.raises(DuelError, match="needs a store of a sweep"):
        ElectrodeSpace(store.embedding, "sample")


def test_a_store_without_samples_or_companion_says_so(
    small: Sweep, folder: Path, tmp_path: Path
) -> None:
    plain = precompute(
        small.model, tmp_path / "plain.h5", mesh="tiny", cache=folder / "cache", estimate=False
    )
    with plain:
        for ask in (plain.r_spread, lambda i: plain.neighbours(i, sure=0.9)):
            with pytest.raises(StoreError, match="precompute --sweep"):
                ask(0)
        with pytest.raises(StoreError, match="precompute --sweep"):
            as_source(plain, via="damped")
        with pytest.raises(StoreError, match="has no error bars of r"):
            plain.r_error(0)


def test_a_sweep_of_another_model_is_refused(
    small: Sweep, swept: SweepStore, tmp_path: Path
) -> None:
    other = small.model.replace({"tissues.csf.conductivity_S_per_m": 1.5})
    with pytest.raises(StoreError, match="swept around another model"):
        precompute(other, tmp_path / "no.h5", mesh="tiny", sweep=swept)
    whole = small.model.replace({"configurations.preset": "all"})
    with pytest.raises(ConfigurationError, match="too many for a mean over samples"):
        precompute(whole, tmp_path / "no.h5", mesh="tiny", sweep=swept, estimate=False)


def test_rules_may_be_others_than_those_of_the_sweep(
    small: Sweep, swept: SweepStore, folder: Path, tmp_path: Path
) -> None:
    fewer = small.model.replace({"configurations.off": ["15"]})
    made = precompute(
        fewer,
        tmp_path / "fewer.h5",
        mesh="tiny",
        sweep=swept,
        weight=np.array([1.0, 0, 0, 0, 0]),
        cache=folder / "cache",
        estimate=False,
    )
    with made:
        assert len(made) == 210
        assert made.r_spread(0).max() <= 1e-7, "one sample has no spread"
        assert check_store(made.path) == []


# -- calibration ----------------------------------------------------------------------------------


def test_the_sample_that_was_measured_counts_most(swept: SweepStore) -> None:
    ohm = bipole_impedances(swept.admittance[2])
    done = calibrate(swept, [Measurement(f"0- {k}+", ohm[0, k], 0.05) for k in range(1, 6)])
    assert done.weight.argmax() == 2
    assert done.weight.sum() == pytest.approx(1.0)
    assert 1.0 <= done.size < 5.0
    assert done.identified == (), "five samples cannot say which input it was"
    assert "effective samples of 5: too few" in done.statement


def test_a_measurement_that_all_samples_predict_identifies_nothing(swept: SweepStore) -> None:
    done = calibrate(swept, [Measurement("0- 1+", 3000.0, 100.0)])
    assert done.size == pytest.approx(5.0, abs=1e-3)
    assert done.identified == ()


def test_measurements_narrow_the_input_they_depend_on(swept: SweepStore, tmp_path: Path) -> None:
    """256 samples whose admittance follows the first input and not the second."""
    points = np.random.default_rng(4).random((256, 2))
    shared = {path: array for path, array in swept._arrays.items() if "samples" not in path}
    texts = {e.path: e.dims for e in ENTRIES if e.dtype == TEXT}
    decoded = {
        path: [t.decode() for t in array] if texts.get(path) else bytes(array[()]).decode()
        for path, array in shared.items()
        if path in texts
    }
    values = {
        **shared,
        **decoded,
        "/samples/point": points,
        "/samples/gram": np.repeat(swept.gram[:1], 256, axis=0),
        "/samples/admittance": np.exp(points[:, 0])[:, None, None] * swept.admittance[0],
        "/samples/record": [json.dumps(swept.records[0])] * 256,
    }
    write_sweep(tmp_path / "many.h5", values, run={}, force=False)
    many = open_sweep(tmp_path / "many.h5")
    ohm = bipole_impedances(swept.admittance[0])[0, 1] * np.exp(-0.5)
    done = calibrate(many, [Measurement("0- 1+", float(ohm))])
    assert done.identified == (many.keys[0],)
    assert 20.0 < done.size < 128.0
    assert abs(done.shrunk[many.keys[1]]) < 0.2


def test_bipole_impedances_are_those_of_a_network() -> None:
    y = np.array([[2.0, -2.0, 0.0], [-2.0, 5.0, -3.0], [0.0, -3.0, 3.0]])
    found = bipole_impedances(y)
    np.testing.assert_allclose(found, [[0, 1 / 2, 5 / 6], [1 / 2, 0, 1 / 3], [5 / 6, 1 / 3, 0]])


STIMULATOR = """
[stimulator]
control = "voltage"
pulse_width_us = 210
amplitude_V = { largest = 10.5 }
impedance_ohm = IMPEDANCES
"""
TABLES = {
    "configuration,ohm\n0- 99+,700\n": r"row 2: neither a contact nor a configuration: .*'99'",
    "configuration,ohm\n0- 0+,700\n": "names contact '0' twice",
    "configuration,ohm\n0- 1-,700\n": "needs an anode and a cathode",
    "configuration,ohm\n0- 1+,-3\n": r"ohm = '-3': must be a number above 0",
    "configuration,ohm,relative_error\n0- 1+,700,nan\n": "relative_error = 'nan'",
    "one,other,ohm\n0,1,700\n": "configuration '' names no contact",
    "configuration,ohm\n": "has no measurements",
}
TOMLS = {
    '{ "0- 99+" = 700 }': r"measured.toml: stimulator.impedance_ohm: neither a contact nor a conf",
    '{ "0- 1+" = -3 }': r"measured.toml: impedance_ohm.*-3",
    "{}": "has no measured impedances: stimulator.impedance_ohm",
}
CONTACTS = tuple(map(str, range(16)))


@pytest.mark.parametrize("text", TABLES)
def test_a_wrong_table_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "measured.csv"
    path.write_text(text)
    with pytest.raises(ModelError, match=TABLES[text]):
        read_measurements(path, CONTACTS)


@pytest.mark.parametrize("text", TOMLS)
def test_a_wrong_table_of_a_stimulator_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "measured.toml"
    path.write_text(STIMULATOR.replace("IMPEDANCES", text))
    with pytest.raises(ModelError, match=TOMLS[text]):
        read_measurements(path, CONTACTS)


def test_a_stimulator_and_a_table_say_the_same(swept: SweepStore, tmp_path: Path) -> None:
    """Also for a configuration of several contacts, whose mirror image has the same impedance."""
    polarity = np.zeros((1, 16), dtype=np.int8)
    polarity[0, [0, 4, 5]] = -1, 1, 1
    ohm = 1.0 / -contact_currents(polarity, swept.admittance[2])[0, 0]
    (tmp_path / "measured.toml").write_text(
        STIMULATOR.replace("IMPEDANCES", f'{{ "0+ 4- 5-" = {ohm}, 3 = 700 }}')
    )
    (tmp_path / "measured.csv").write_text(f"configuration,ohm\n0- 4+ 5+,{ohm}\n")
    both = [
        calibrate(swept, read_measurements(tmp_path / f"measured.{kind}", swept.contact_names))
        for kind in ("toml", "csv")
    ]
    np.testing.assert_allclose(both[0].weight, both[1].weight, rtol=1e-12)
    assert both[0].weight.argmax() == 2
    assert both[0].unused == ("3",)
    assert "not used, as the model has no case: 3" in both[0].statement
    with pytest.raises(ModelError, match="its model has no case"):
        calibrate(swept, [Measurement("3", 700.0)])


def test_the_same_reading_twice_counts_twice(swept: SweepStore) -> None:
    once, twice = (calibrate(swept, [Measurement("0- 1+", 2000.0)] * n).weight for n in (1, 2))
    np.testing.assert_allclose(twice, once**2 / (once**2).sum(), rtol=1e-9)


# -- the command line -----------------------------------------------------------------------------


def fieldcorr(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


def test_the_commands_say_what_was_found(swept: SweepStore, small: Sweep, folder: Path) -> None:
    table = folder / "measured.csv"
    ohm = bipole_impedances(swept.admittance[2])[0, 1]
    table.write_text(f"configuration,ohm\n0- 1+,{ohm:.0f}\n")
    said = fieldcorr("info", swept.path, "--impedances", table)
    assert said.exit_code == 0, said.output
    assert "5 samples over 2 inputs" in said.stdout
    assert "region.half" in said.stdout
    assert "effective samples of 5" in said.stdout
    output = folder / "weighted.h5"
    model = small.model.path
    made = fieldcorr(
        *("precompute", model, "--mesh", "tiny", "--no-estimate", "--cache", folder / "cache"),
        *("--sweep", swept.path, "--impedances", table, "-o", output),
    )
    assert made.exit_code == 0, made.output
    with open_store(output) as store:
        assert store.info["sweep"]["effective_samples"] < 5.0
    told = fieldcorr("info", output).stdout
    assert "5 samples of 2 inputs" in told
    assert "within 30 mm of the array's centre along the cord" in told
    described = small.model.replace(
        {
            "stimulator.control": "voltage",
            "stimulator.pulse_width_us": 210.0,
            "stimulator.amplitude_V": {"largest": 10.5},
            "stimulator.impedance_ohm": {"0- 1+": float(round(ohm))},
        }
    )
    model = folder / "described.toml"
    model.write_text(described.text)
    same = fieldcorr(
        *("precompute", model, "--mesh", "tiny", "--no-estimate", "--cache", folder / "cache"),
        *("--sweep", swept.path, "--impedances", model, "-o", folder / "described.h5"),
    )
    assert same.exit_code == 0, same.output
    with open_store(output) as one, open_store(folder / "described.h5") as other:
        assert (one.array("/sweep/weight") == other.array("/sweep/weight")).all()
    refused = fieldcorr("info", output, "--impedances", table)
    assert refused.exit_code == 2
    assert "needs a sweep store" in refused.stderr


def test_a_damped_session_on_the_command_line(store: Store, tmp_path: Path) -> None:
    journal, answers = tmp_path / "my.journal", tmp_path / "answers.txt"
    answers.write_text("left\nright\nleft\n")
    begun = fieldcorr("duel", "new", journal, store.path, "--horizon", 9, "--seed", 2, "--damped")
    assert begun.exit_code == 0, begun.output
    assert fieldcorr("duel", "run", journal, "--answers", answers).exit_code == 0
    engine, _ = read_session(journal, store)
    own = CorrDuel(store, horizon=9, seed=2, via="damped")
    plain = CorrDuel(store, horizon=9, seed=2)
    for k in (0, 1, 0):
        i, j = own.ask()
        for one in (own, plain):
            one.tell(*((i, j) if k == 0 else (j, i)))
    assert (engine.survivors.estimate == own.survivors.estimate).all()
    assert (engine.survivors.count != plain.survivors.count).any()
    refused = fieldcorr(
        *("duel", "new", tmp_path / "no", store.path, "--horizon", 9, "--damped"),
        *("--engine", "bayes"),
    )
    assert refused.exit_code == 2
    assert "CorrDuel does" in refused.stderr


def test_a_damped_simulation_on_the_command_line(store: Store, tmp_path: Path) -> None:
    play = ("simulate", "store", store.path, "--engine", "CorrDuel", "--trials", 3, "--horizon", 30)
    damped = fieldcorr(*play, "--utility", "sample", "--damped", "--threads", 1)
    plain = fieldcorr(*play, "--utility", "sample", "--threads", 1)
    assert damped.exit_code == plain.exit_code == 0, damped.output
    assert "sample utility" in damped.stdout
    assert damped.stdout != plain.stdout


def test_the_sweep_command_refuses_before_it_works(tmp_path: Path) -> None:
    assert fieldcorr("sweep", "--output", tmp_path / "x.h5", "--samples", "1").exit_code == 2
    missing = fieldcorr("sweep", tmp_path / "no.toml", "--output", tmp_path / "x.h5")
    assert missing.exit_code == 2
    assert "no such file" in missing.stderr
