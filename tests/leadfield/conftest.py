"""The tiny bundled mesh and its lead field, computed once."""

import pytest

from fieldcorr.leadfield import LeadField, compute_lead_field
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.model import Model
from fieldcorr.model.load import resolve_mesh


@pytest.fixture(scope="session")
def tiny_mesh(bundled_model: Model) -> Mesh:
    """Return the tiny mesh of the bundled model."""
    return read_mesh(resolve_mesh(bundled_model, "tiny"))


@pytest.fixture(scope="session")
def tiny_lead_field(bundled_model: Model, tiny_mesh: Mesh) -> LeadField:
    """Return the lead field of the bundled model on the tiny mesh."""
    return compute_lead_field(bundled_model, tiny_mesh)
