"""The comparison with NGSolve: its own algebra always, NGSolve itself where it is installed."""

import importlib.util

import numpy as np
import pytest

from fieldcorr.drive import contact_currents
from fieldcorr.errors import MissingExtraError
from fieldcorr.verification.cases import slab_mesh
from fieldcorr.verification.peer import (
    contact_voltages,
    correlations,
    ngsolve_mesh,
    peer_case,
    random_configurations,
)

RNG = np.random.default_rng(17)
HAS_NGSOLVE = importlib.util.find_spec("ngsolve") is not None


def test_random_configurations_are_distinct_and_have_both_signs() -> None:
    polarity = random_configurations(500, 16)
    assert polarity.shape == (500, 16)
    assert len(np.unique(polarity, axis=0)) == 500
    assert (polarity.max(axis=1) == 1).all()
    assert (polarity.min(axis=1) == -1).all()


def test_voltages_give_the_currents_of_the_drive() -> None:
    root = RNG.normal(size=(6, 6))
    admittance = root @ root.T
    projector = np.eye(6) - 1 / 6
    admittance = projector @ admittance @ projector
    polarity = random_configurations(40, 6)
    expected = contact_currents(polarity, admittance, mode="voltage")
    np.testing.assert_allclose(
        contact_voltages(polarity, admittance) @ admittance, expected, atol=1e-12
    )


def test_correlations_are_those_of_samples() -> None:
    fields, weights = RNG.normal(size=(5, 300)), RNG.normal(size=(8, 5))
    fields -= fields.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(
        correlations(weights, fields @ fields.T), np.corrcoef(weights @ fields), atol=1e-13
    )


@pytest.mark.skipif(HAS_NGSOLVE, reason="NGSolve is installed")
def test_without_ngsolve_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"fieldcorr\[bench\]"):
        ngsolve_mesh(slab_mesh(size=3.0))


@pytest.mark.skipif(not HAS_NGSOLVE, reason="NGSolve (extra bench) is not installed")
def test_ngsolve_agrees_on_the_same_mesh() -> None:
    (comparison,) = peer_case("tiny")
    assert comparison.is_met, comparison.cells()
