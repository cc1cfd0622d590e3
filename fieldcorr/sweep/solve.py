"""One sample: from its number to its circuit, a plain function that may run twice and anywhere.

What is costly and shared by samples in a row, the mesh with its pattern and the fields of the
sample before, is remembered in the process. It changes nothing but the time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.cache import Cache, key_of
from fieldcorr.batch.embed import shares
from fieldcorr.batch.fields import physics
from fieldcorr.batch.meshes import built_mesh
from fieldcorr.errors import ConvergenceError, MeshError, ModelError
from fieldcorr.leadfield import LeadField, compared_region, compute_lead_field, skeleton_of
from fieldcorr.mesh import Mesh, load_mesh
from fieldcorr.model import Model
from fieldcorr.sweep.design import replacement
from fieldcorr.sweep.file import Sweep

MOST_ATTEMPTS = 50
"""Points that are tried for one sample."""


@dataclass(frozen=True, eq=False)
class SolvedSample:
    """What r of a sample depends on, and where it came from.

    ``gram`` and ``admittance`` are (E, E), ``point`` (D,) is that of the unit cube. ``record`` has
    the sample's values, drive, mesh, residual, and why points before this one were given up.
    """

    gram: NDArray[np.float64]
    admittance: NDArray[np.float64]
    point: NDArray[np.float64]
    record: Mapping[str, Any]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all of it as arrays, for a file."""
        record = np.array(json.dumps(self.record, sort_keys=True))
        return {
            "gram": self.gram,
            "admittance": self.admittance,
            "point": self.point,
            "record": record,
        }

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "SolvedSample":
        """Return what :meth:`arrays` was made from."""
        gram, admittance, point = (arrays[name] for name in ("gram", "admittance", "point"))
        return cls(gram, admittance, point, json.loads(str(arrays["record"])))


def solve_sample(
    sweep: Sweep, number: int, first: NDArray[np.float64], cache: Cache
) -> SolvedSample | None:
    """Return the circuit of sample ``number`` whose first point is ``first`` (D,).

    A point whose model or mesh cannot be built is replaced by the next one, a function of sweep,
    number and attempt alone. None for a point of a grid that cannot be built, which nothing can
    replace.
    """
    failures: list[str] = []
    for attempt in range(MOST_ATTEMPTS):
        point = replacement(sweep, number, attempt) if attempt else first
        try:
            model = sweep.sample_model(point)
            mesh = sample_mesh(sweep, model, cache)
            circuit = circuit_of(sweep, model, mesh)
        except (ModelError, MeshError, ConvergenceError) as error:
            failures.append(str(error).removeprefix(f"{sweep.model.path}: "))
            if sweep.file.method == "grid":
                return None
            continue
        values = {"values": sweep.changes(point), "failures": failures}
        return replace(circuit, point=point, record={**circuit.record, **values})
    raise ModelError(
        f"{sweep.path}: none of {MOST_ATTEMPTS} points for sample {number} can be built; the last: "
        f"{failures[-1]}"
    )


def nominal_circuit(sweep: Sweep, cache: Cache) -> SolvedSample:
    """Return the circuit of the model as it is, on the samples' mesh."""
    return circuit_of(sweep, sweep.model, sample_mesh(sweep, sweep.model, cache))


def sample_mesh(sweep: Sweep, model: Model, cache: Cache) -> Mesh:
    """Return the mesh of a sample: the model's own for its own shapes, else one that is built."""
    if model.shape_hash != sweep.model.shape_hash:
        return built_mesh(model, sweep.sizes, cache)
    key = ("mesh", sweep.model.shape_hash, sweep.file.mesh)
    mesh: Mesh = _remember(key, lambda: load_mesh(sweep.model, sweep.file.mesh)[0])
    return mesh


def circuit_of(sweep: Sweep, model: Model, mesh: Mesh) -> SolvedSample:
    """Solve a model on a mesh and return its circuit; the point is empty."""
    solved = _solved(sweep, model, mesh)
    record = {
        "drive": {"mode": model.drive.mode, "fractions": shares(model)},
        "mesh": mesh.hash,
        "residual": float(solved.residuals.max()),
        "iterations": solved.iterations,
    }
    return SolvedSample(solved.gram_of(model.measure.kind), solved.admittance, np.zeros(0), record)


def _solved(sweep: Sweep, model: Model, mesh: Mesh) -> LeadField:
    """Return the lead field of a sample; that of the sample before if only the region differs."""
    tolerance = max(sweep.file.tolerance, model.solver.tolerance)
    frame = (mesh.hash, model.solver.order, model.contacts.model, model.boundary.outer)

    def solve() -> LeadField:
        skeleton = _remember(("skeleton", frame), lambda: skeleton_of(model, mesh))
        return compute_lead_field(model, mesh, tolerance=tolerance, skeleton=skeleton)

    key = key_of({**physics(model, mesh, model.solver.order), "tolerance": tolerance})
    solved: LeadField = _remember(("field", key), solve)
    return replace(solved, region=compared_region(model, mesh))


_last: dict[str, tuple[Any, Any]] = {}  # kind -> (key, value) of what was made last


def _remember(key: tuple[Any, ...], make: Any) -> Any:
    """Return what was made last for this key, or make it; one thing of each kind is kept."""
    known = _last.get(key[0])
    if known is None or known[0] != key:
        _last.pop(key[0], None)  # before the next one is made: each takes much memory
        _last[key[0]] = (key, make())
    return _last[key[0]][1]
