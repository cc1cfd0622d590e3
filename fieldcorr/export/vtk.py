"""Fields for ParaView and pyvista: the mesh with tissues, potentials, E and activating function.

Beside the volume, a second file holds the surfaces of the contacts. meshio writes the numbers; what
its formats have no place for, the names of tissues and contacts, is added to the XML.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements import EDGE_ENDS, NodalField, Space
from fieldcorr.errors import ExportError
from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.store import Store

if TYPE_CHECKING:
    import meshio

VTK_EDGES = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Order of the edge nodes of a quadratic tetrahedron in VTK."""
FIBRE_STEP_M = 1e-3
"""Step of the second difference along the cord, as in the measure "activating"."""
NEAR_M = 2e-5
"""A face of the mesh that lies within this of the plane of a contact may belong to it."""
_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def write_fields(store: Store, path: Path, configurations: list[str]) -> None:
    """Write the fields of configurations, and beside them the surfaces of the contacts."""
    import meshio

    if not configurations:
        raise ExportError(f'{path.name}: name at least one configuration, such as "0- 5+"')
    volume = store.fields.volume
    space = volume.space
    fields = {text: store.fields.field_of(text) for text in configurations}
    potentials = {f"potential {text} (V)": field.values for text, field in fields.items()}
    cell_data: dict[str, list[NDArray[np.generic]]] = {"tissue": [space.mesh.cell_tags]}
    for text, field in fields.items():
        cell_data[f"E {text} (V/m)"] = [electric_field(field)]
        cell_data[f"activating function {text} (V/m2)"] = [activating(store, field)]
    kind = f"tetra{10 if space.order == 2 else ''}"
    mesh = meshio.Mesh(space.points, [(kind, vtk_cells(space.cell_dofs))], potentials, cell_data)
    remark = f"points in m, potentials in V, 0 = {volume.zero}"
    _write(mesh, path, "tissue", space.mesh.tissues, remark)
    surfaces = contact_surfaces(space, layout_of(store), potentials)
    beside = path.with_name(f"{path.stem}-contacts{path.suffix}")
    _write(surfaces, beside, "contact", store.contact_names, remark)


def _write(mesh: "meshio.Mesh", path: Path, kind: str, names: Sequence[str], remark: str) -> None:
    """Write a mesh, and into its XML what meshio has no place for: names by number, a remark."""
    mesh.write(path)
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() == ".vtu":
        arrays = "".join(
            f'<DataArray type="Int32" Name="{escape(f"{kind} {name}")}" NumberOfTuples="1" '
            f'format="ascii">{number}</DataArray>'
            for number, name in enumerate(names)
        )
        head = "<UnstructuredGrid>"
        text = text.replace(head, f"{head}<FieldData>{arrays}</FieldData>", 1)
    else:  # pyvista opens an XDMF grid only if it has a time
        text = text.replace('<Grid Name="Grid">', '<Grid Name="Grid"><Time Value="0"/>', 1)
    numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names))
    path.write_text(f"{text}<!-- {kind}: {numbered}; {remark} -->\n", encoding="utf-8")


def electric_field(field: NodalField) -> NDArray[np.float64]:
    """Return E (T, 3) V/m at the centroids of all cells, where it has one value."""
    cells = np.arange(len(field.space.mesh.cells))
    return field.electric_field(field.space.centroids(cells))


def activating(store: Store, field: NodalField) -> NDArray[np.float64]:
    """Return the activating function (T,) V/m2 at centroids; NaN outside the compared tissues.

    (phi(z + h) - 2 phi(z) + phi(z - h)) / h^2 along the cord, h = FIBRE_STEP_M.
    """
    mesh = field.space.mesh
    compared = store.record("settings")["region"].get("tissues", mesh.tissues)
    tags = [k for k, name in enumerate(mesh.tissues) if name in compared]
    cells = np.flatnonzero(np.isin(mesh.cell_tags, tags))
    points = mesh.points[mesh.cells[cells]].mean(axis=1)
    shift = np.array([0.0, 0.0, FIBRE_STEP_M])
    ahead, here, behind = (field.potential(points + s * shift) for s in (1.0, 0.0, -1.0))
    out = np.full(len(mesh.cells), np.nan)
    out[cells] = (ahead - 2.0 * here + behind) / FIBRE_STEP_M**2
    return out


def contact_surfaces(
    space: Space, layout: ArrayLayout, potentials: dict[str, NDArray[Any]]
) -> "meshio.Mesh":
    """Return the faces of the mesh on the contacts, with the number of the contact of each.

    The case, and contacts whose outlines are not known, have none.
    """
    import meshio

    faces = _surface(space.cells)
    middle = space.vertices[faces].mean(axis=1)
    found, number = [], []
    for e in layout.on_array:
        mine = faces[_is_on(middle, layout.corners[e])]
        found.append(mine)
        number.append(np.full(len(mine), e))
    triangles = np.concatenate(found)
    used, cells = np.unique(triangles, return_inverse=True)
    return meshio.Mesh(
        space.vertices[used],
        [("triangle", cells.reshape(-1, 3))],
        {name: values[used] for name, values in potentials.items()},
        {"contact": [np.concatenate(number)]},
    )


def _surface(cells: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the faces (F, 3) that belong to one cell only."""
    faces = cells[:, _FACES].reshape(-1, 3)
    order = np.sort(faces, axis=1).astype(np.int64)
    size = int(cells.max()) + 1
    keys = (order[:, 0] * size + order[:, 1]) * size + order[:, 2]
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    surface: NDArray[np.int32] = faces[first[count == 1]]
    return surface


def _is_on(points: NDArray[np.float64], corners: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which points (n, 3) lie on a rectangle with corners (4, 3), going round."""
    centre, across, along = corners.mean(axis=0), corners[0] - corners[1], corners[0] - corners[3]
    on = np.abs((points - centre) @ _unit(np.cross(across, along))) < NEAR_M
    for side in (across, along):
        on &= np.abs((points - centre) @ _unit(side)) < 0.5 * np.linalg.norm(side)
    return np.asarray(on)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    unit: NDArray[np.float64] = vector / np.linalg.norm(vector)
    return unit


def vtk_cells(dofs: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the nodes of every cell in VTK's order."""
    if dofs.shape[1] == 4:
        return dofs
    ours = [tuple(sorted(map(int, ends))) for ends in EDGE_ENDS]
    return dofs[:, [0, 1, 2, 3, *(4 + ours.index(edge) for edge in VTK_EDGES)]]
