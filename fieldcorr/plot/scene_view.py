"""The spine, the array and the field of a configuration in three dimensions, by pyvista.

pyvista is imported only when it is used. Without a screen it renders into memory.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.errors import ConfigurationError
from fieldcorr.plot.array_view import Configuration
from fieldcorr.plot.style import ANODE, CATHODE, DIVERGING, FAINT, PADDLE, TISSUES, scaled
from fieldcorr.plot.volume import Drive, Shown, import_pyvista, shown

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

SHOWS = ("cord", "isosurfaces", "slice")
MARGIN_M = 12e-3
"""What is shown along the cord beyond the contacts."""
BESIDE_MM = 15.0
"""What is shown to each side, dorsal and ventral of the sac's centre."""
PADDLE_MM = 2.0
"""Thickness that the paddle is drawn with."""
SHARE = 98.0
"""Percentile of |potential| in the cord at which the colours end."""
_CUT_AWAY = ("bone", "fat", "dura", "csf")
"""Tissues of which only the patient's right half is drawn, from outside in."""
_SOLID: dict[str, Any] = {"smooth_shading": True, "ambient": 0.45, "diffuse": 0.65}
_OPACITY = {"bone": 1.0, "fat": 1.0, "dura": 1.0, "csf": 0.4, "white": 0.3, "grey": 1.0}


def scene(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    show: str = "cord",
    drive: Drive | None = None,
    amplitude: float = 1.0,
    caption: bool = True,
    size: tuple[int, int] = (900, 700),
    off_screen: bool | None = None,
) -> Any:
    """Return a ``pyvista.Plotter`` with the spine cut open, the array and a field.

    ``.screenshot("picture.png")`` writes a picture, ``.show()`` opens a window. With
    ``pyvista[jupyter]`` a notebook shows a view that can be turned, without it a picture,
    and ``.export_html("scene.html")`` writes a page of it.

    Parameters
    ----------
    source
        A lead field, or a store that is not slim.
    configuration
        Text such as "0- 5+", polarity (E,), or row of a store.
    show
        The potential on the surface of the "cord", its "isosurfaces" in cord and CSF, or a sagittal
        "slice" of all tissues.
    drive, amplitude
        As for :func:`fieldcorr.plot.sections`.
    caption
        Write configuration, colour bar and axes beside the spine.
    size
        Width and height of the picture in pixels.
    off_screen
        Render into memory; None for pyvista's own choice.

    Raises
    ------
    MissingExtraError
        pyvista is not installed.
    """
    if show not in SHOWS:
        raise ConfigurationError(f"show {show!r} is not one of {', '.join(SHOWS)}")
    pyvista = import_pyvista()
    what = shown(source, configuration, drive=drive, amplitude=amplitude)
    plotter = pyvista.Plotter(off_screen=off_screen, window_size=list(size))
    plotter.set_background("white")
    grid = _around_array(pyvista, what)
    for name, surface in _opened(grid, what, show):
        look = {"color": TISSUES[name], "opacity": _OPACITY[name]}
        plotter.add_mesh(surface, split_sharp_edges=True, **look, **_SOLID)
    _add_field(plotter, grid, what, show, caption=caption)
    _add_array(pyvista, plotter, what)
    if caption:
        plotter.add_text(what.title, font_size=11, color="black")
        zero = f"0 = {what.volume.zero}"
        plotter.add_text(zero, position="lower_right", font_size=8, color="black")
        plotter.add_axes(xlabel="left", ylabel="dorsal", zlabel="rostral", color="black")
    _look(plotter, what)
    return plotter


def _around_array(pyvista: Any, what: Shown) -> Any:
    """Return the mesh around the array, in mm, with the potential in V and tissue numbers."""
    space = what.volume.space
    contacts = what.layout.corners[what.layout.on_array]
    low, high = contacts[..., 2].min() - MARGIN_M, contacts[..., 2].max() + MARGIN_M
    middle = space.vertices[space.cells].mean(axis=1)
    is_near = (middle[:, 2] > low - 5e-3) & (middle[:, 2] < high + 5e-3)
    is_near &= np.all(np.abs(middle[:, :2]) < 2e-3 * BESIDE_MM, axis=1)
    used, cells = np.unique(space.cells[is_near], return_inverse=True)
    # Vertices alone: in a picture nobody misses the midpoints of the edges.
    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: cells.reshape(-1, 4)},
                                    1e3 * space.vertices[used])  # fmt: skip
    grid.cell_data["tissue"] = space.mesh.cell_tags[is_near]
    grid.point_data["potential"] = what.field.values[used]
    for axis, first, last in (("x", -BESIDE_MM, BESIDE_MM), ("y", -BESIDE_MM, BESIDE_MM),
                              ("z", 1e3 * low, 1e3 * high)):  # fmt: skip
        place = dict(zip("xyz", (0.0, 0.0, 0.0), strict=True))
        for end, invert in ((first, False), (last, True)):
            grid = grid.clip(axis, origin=tuple((place | {axis: end}).values()), invert=invert)
    return grid


def _opened(grid: Any, what: Shown, show: str) -> Iterator[tuple[str, Any]]:
    """Yield the surface of each tissue by name; the outer ones lack their left half."""
    names = what.volume.space.mesh.tissues
    for name in ("bone", "fat", "dura", "csf", "white", "grey"):
        is_hidden = show == "cord" and name in ("white", "grey")
        if name not in names or is_hidden or (show == "slice" and name not in ("white", "grey")):
            continue
        # White matter is a hull around the grey: of two surfaces in one place each shows in spots.
        part = _only(grid, names, ("white", "grey") if name == "white" else (name,))
        if part.n_cells == 0:
            continue
        if name == "csf":  # for the same reason as a plane only
            part = part.slice("x", origin=(-0.01, 0, 0))
        elif name in _CUT_AWAY:
            part = part.clip("x", origin=(0, 0, 0), invert=True)
        if part.n_cells:
            yield name, part.extract_surface(algorithm=None)


def _add_field(plotter: Any, grid: Any, what: Shown, show: str, *, caption: bool) -> None:
    names = what.volume.space.mesh.tissues
    cord = _only(grid, names, ("grey", "white"))
    values = np.abs(np.asarray(cord.point_data["potential"]))
    limit = float(np.percentile(values, SHARE)) or 1.0
    factor, unit = scaled(limit, "V")
    bar = {
        "title": f"potential ({unit})\n", "color": "black", "vertical": True, "position_x": 0.85,
        "position_y": 0.25, "width": 0.06, "height": 0.5, "title_font_size": 16,
        "label_font_size": 15, "fmt": "%.3g", "n_labels": 5,
    }  # fmt: skip
    end = limit / factor
    look: dict[str, Any] = {"cmap": DIVERGING, "clim": (-end, end), "show_scalar_bar": caption}
    look |= {"scalar_bar_args": bar}
    for part in (grid, cord):
        part.point_data["shown"] = np.asarray(part.point_data["potential"]) / factor
    if show == "cord":
        plotter.add_mesh(cord.extract_surface(algorithm=None), scalars="shown", ambient=0.4, **look)
    elif show == "slice":
        at = 1e3 * float(what.layout.centres[np.abs(what.currents).argmax(), 0])
        cut = grid.slice("x", origin=(at + 0.01, 0, 0))
        plotter.add_mesh(cut, scalars="shown", lighting=False, **look)
    else:
        inner = _only(grid, names, ("grey", "white", "csf"))
        steps = np.array([0.15, 0.3, 0.6, 1.0]) * limit / factor
        surfaces = inner.contour(np.concatenate([-steps[::-1], steps]), scalars="shown")
        look |= {"opacity": 0.6, "smooth_shading": True, "ambient": 0.4}
        plotter.add_mesh(surfaces, scalars="shown", **look)


def _only(grid: Any, names: tuple[str, ...], wanted: tuple[str, ...]) -> Any:
    """Return the cells of some tissues."""
    tags = [names.index(name) for name in wanted if name in names]
    return grid.extract_cells(np.flatnonzero(np.isin(grid.cell_data["tissue"], tags)))


def _add_array(pyvista: Any, plotter: Any, what: Shown) -> None:
    """Add contacts, active ones with name and sign, and the paddle's face."""
    layout = what.layout
    if layout.paddle is not None:
        face = pyvista.PolyData(1e3 * layout.paddle, [4, 0, 1, 2, 3])
        body = face.extrude((0.0, PADDLE_MM, 0.0), capping=True)
        plotter.add_mesh(body, color=PADDLE, opacity=0.2, ambient=0.4)
    colours = {1: ANODE, -1: CATHODE, 0: FAINT}
    for e in layout.on_array:
        sign = int(what.signs[e])
        box = pyvista.PolyData(1e3 * layout.corners[e], [4, 0, 1, 2, 3])
        box = box.extrude((0.0, 0.8, 0.0), capping=True)
        plotter.add_mesh(box, color=colours[sign], ambient=0.4)
    active = [e for e in layout.on_array if what.signs[e]]
    plotter.add_point_labels(
        1e3 * layout.centres[active] + [0.0, 2.5, 0.0],
        [layout.names[e] + ("+" if what.signs[e] > 0 else "-") for e in active],
        font_size=round(plotter.window_size[1] / 34), bold=True, shape_color="white",
        text_color="black", always_visible=True, show_points=False, margin=3,
    )  # fmt: skip


def _look(plotter: Any, what: Shown) -> None:
    """Look from the patient's left, dorsal and a little rostral; rostral is up."""
    contacts = 1e3 * what.layout.centres[what.layout.on_array]
    centre = contacts.mean(axis=0) * [0.0, 0.5, 1.0]
    eye = centre + np.array([120.0, 75.0, 45.0])
    plotter.camera_position = [tuple(eye), tuple(centre), (0.0, 0.0, 1.0)]
    plotter.enable_parallel_projection()
    corners = np.stack(np.meshgrid(*np.reshape(plotter.bounds, (3, 2))), axis=-1).reshape(-1, 3)
    away = eye - centre
    upward = np.array([0.0, 0.0, 1.0]) - away * away[2] / (away @ away)
    reach = (corners - centre) @ upward / np.linalg.norm(upward)
    plotter.camera.parallel_scale = 1.04 * float(np.abs(reach).max())
    plotter.enable_depth_peeling()  # what lies behind something translucent, in its order
    plotter.enable_anti_aliasing("ssaa")
