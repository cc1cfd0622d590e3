"""What a model, mesh, lead field, store or duel engine looks like in a notebook: HTML.

The classes call these from ``_repr_html_``; nothing is computed that takes time. Colours are left
to the notebook's theme, but for the pictures, which bring a white background.
"""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import format_configuration
from fieldcorr.layout import CASE, layout_of
from fieldcorr.notebook.svg import array_svg
from fieldcorr.notebook.units import count, prefix, quantity

if TYPE_CHECKING:
    from fieldcorr.duel.engine import Engine
    from fieldcorr.leadfield import LeadField
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model
    from fieldcorr.store import Store

SHOWN_SURVIVORS = 5
_CUBE_STEPS = ((1e-3, "L", 1e-3), (1e-7, "cm\u00b3", 1e-6), (0.0, "mm\u00b3", 1e-9))


def model_card(model: "Model") -> str:
    """Return the summary of a model."""
    geometry, array, region = model.geometry, model.array, model.region
    cord, sac = geometry.cord, geometry.sac
    rows = {
        "cord": f"{cord.width_mm:g} \u00d7 {cord.depth_mm:g} mm, "
        f"{cord.dorsal_csf_mm:g} mm of CSF behind it",
        "dural sac": f"{sac.width_mm:g} \u00d7 {sac.depth_mm:g} mm, "
        f"dura {sac.dura_thickness_mm:g} mm",
        "array": f"{model.device.name}, {len(model.device.contacts)} contacts, "
        f"left {array.offset_left_mm:g} mm, rostral {array.offset_rostral_mm:g} mm, "
        f"yaw {array.yaw_degree:g}\u00b0",
        "tissues": _conductivities(model),
        "contacts": f"{model.contacts.model}; outer boundary {model.boundary.outer}",
        "drive": model.drive.mode,
        "compared": f"{model.measure.kind} in {', '.join(region.tissues)} ({region.half}), "
        f"\u00b1{region.window_half_length_mm:g} mm around the array",
        "configurations": f"preset {model.rules.preset}",
        "hash": model.hash[:12],
    }
    return _card(f"Model {model.name}", rows, _array_of(model), note=model.description)


def _conductivities(model: "Model") -> str:
    texts = []
    for name, tissue in model.tissues.items():
        across, _, along = tissue.principal_S_per_m
        texts.append(f"{name} {across:g}" if across == along else f"{name} {along:g} / {across:g}")
    return ", ".join(texts) + " S/m (along / across)"


def mesh_card(mesh: "Mesh") -> str:
    """Return the summary of a mesh."""
    volumes = np.bincount(mesh.cell_tags, mesh.volumes(), minlength=len(mesh.tissues))
    parts = [f"{name} {_volume(v)}" for name, v in zip(mesh.tissues, volumes, strict=True)]
    areas = np.bincount(mesh.facet_tags, mesh.facet_areas(), minlength=len(mesh.facet_names))
    contacts = [k for k, name in enumerate(mesh.facet_names) if name not in ("outer", CASE)]
    size = np.ptp(mesh.points, axis=0) if mesh.n_points else np.zeros(3)
    rows = {
        "tetrahedra": count(mesh.n_cells),
        "points": count(mesh.n_points),
        "extent": " \u00d7 ".join(f"{1e3 * s:.3g}" for s in size) + " mm (left, dorsal, rostral)",
        "volumes": ", ".join(parts),
        "hash": mesh.hash[:12],
    }
    if contacts:
        mean = float(areas[contacts].mean())
        rows["contacts"] = f"{len(contacts)} of {1e6 * mean:.3g} mm\u00b2 on average"
    return _card("Mesh", rows, _array_of(mesh))


def lead_field_card(field: "LeadField") -> str:
    """Return the summary of a lead field."""
    diagonal = np.diagonal(field.admittance)
    worst = max(field.identities.items(), key=lambda item: item[1], default=("none", 0.0))
    rows = {
        "electrodes": str(len(field.contact_names)),
        "elements": f"P{field.order} on {count(field.mesh.n_cells)} tetrahedra, "
        f"{count(field.nodal.shape[1])} nodes",
        "solver": f"{field.iterations} steps, largest residual {field.residuals.max():.1e}",
        "largest defect": f"{worst[1]:.1e} ({worst[0]})",
        "own admittance": f"{_span(diagonal, 'S')} per contact",
        "compared region": f"{count(len(field.weight))} samples, "
        f"{_volume(float(field.weight.sum()))} (weighted)",
        "time": ", ".join(f"{name} {seconds:.2g} s" for name, seconds in field.times.items()),
    }
    return _card("Lead field", rows, _array_of(field))


def store_card(store: "Store") -> str:
    """Return the summary of a store; its arrays are not read, but for one polarity."""
    settings = store.record("settings")
    kept = ["matrix"] * store.has_matrix + ["fields"] * store.has_fields
    rows = {
        "file": f"{store.path.name}, {quantity(store.path.stat().st_size, 'B')}",
        "configurations": f"{count(len(store))} of {len(store.contact_names)} electrodes",
        "embedding": f"rank {store.rank}",
        "compared": str(_entry(settings, "measure", "kind")),
        "drive": str(_entry(settings, "drive", "mode")),
        "neighbours": "computed when asked for"
        if store.is_whole
        else f"{count(store.nnz)} pairs with r > {store.threshold:g}"
        + (f", at most {store.top_k} each" if store.top_k else ""),
        "also kept": ", ".join(kept) or "nothing (slim)",
        "error of r": _estimate(store.record("error_estimate")),
        "format, hash": f"{store.format}, {store.hash[:12]}",
    }
    example = len(store) // 2
    polarity = store.polarity[example]
    caption = f"{example}: {format_configuration(polarity, store.contact_names)}"
    picture = array_svg(layout_of(store), polarity)
    return _card(f"Store {_entry(settings, 'model')}", rows, picture, caption=caption)


def duel_card(engine: "Engine") -> str:
    """Return the summary of a duel engine: how far it is, and who leads."""
    progress, ranked = engine.progress, engine.survivors
    shown = {
        key: "given" if isinstance(value, dict) else value
        for key, value in engine.settings.items()
        if value is not None
    }
    rows = {
        "duels": f"{progress.duels} of {progress.horizon}"
        + (f", {progress.skipped} skipped" if progress.skipped else "")
        + (f", {progress.voided} void" if progress.voided else ""),
        engine.kept_as: f"{count(progress.left)} of {count(progress.allowed)} configurations"
        + (f", {progress.excluded} excluded" if progress.excluded else ""),
        "settings": ", ".join(f"{key} {value}" for key, value in shown.items()),
    }
    for rank in range(min(SHOWN_SURVIVORS, len(ranked))):
        arm = ranked[rank]
        label = engine.source.label(arm.arm)
        name = label if label == str(arm.arm) else f"{label} (row {arm.arm})"
        wins = f"{arm.estimate:.2f} \u00b1 {arm.radius:.2f}"
        rows[f"{rank + 1}."] = f"{name}: {engine.estimates} {wins}, n = {arm.count:.1f}"
    if engine.warning:
        rows["note"] = engine.warning
    picture, caption = "", "no duel yet"
    if len(ranked):
        leader = ranked[0].arm
        store = engine.source.store
        picture = "" if store is None else array_svg(layout_of(store), store.polarity[leader])
        caption = f"leads: {engine.source.label(leader)}" if progress.duels else caption
    return _card(type(engine).__name__, rows, picture, caption=caption)


def _array_of(source: "Model | Mesh | LeadField") -> str:
    """Return the picture of the array; nothing for a mesh without contacts."""
    return array_svg(layout_of(source))


def _span(values: NDArray[np.float64], unit: str) -> str:
    """Return the range of some values with their unit."""
    letter, factor = prefix(float(np.max(np.abs(values))))
    low, high = np.min(values) / factor, np.max(values) / factor
    return f"{low:.3g}\u2013{high:.3g} {letter}{unit}"


def _volume(cubic_metres: float) -> str:
    for least, unit, factor in _CUBE_STEPS:
        if cubic_metres >= least:
            return f"{cubic_metres / factor:.3g} {unit}"
    return f"{cubic_metres:.3g} m\u00b3"


def _entry(record: object, *keys: str) -> object:
    """Return an entry of the provenance, which other programs may have written in other shapes."""
    for key in keys:
        record = record.get(key) if isinstance(record, dict) else None
    return "unknown" if record is None else record


def _estimate(record: object) -> str:
    """Return the error estimate in a few words."""
    for key, way in (("companion", "companion mesh"), ("order_one", "bound by order 1")):
        largest, usual = _entry(record, key, "max"), _entry(record, key, "p99")
        if isinstance(largest, int | float) and isinstance(usual, int | float):
            return f"{largest:.1e} at most, p99 {usual:.1e} ({way})"
    return "not estimated"


def _card(
    heading: str, rows: Mapping[str, str], picture: str, *, note: str = "", caption: str = ""
) -> str:
    """Return a card: heading, note, names and values; an SVG with its caption at the right."""
    sentence = f'<div style="max-width:34em;margin-bottom:4px">{escape(note)}</div>' if note else ""
    below = f'<div style="text-align:center">{escape(caption)}</div>' if caption else ""
    drawn = f'<div><div style="background:#ffffff">{picture}</div>{below}</div>' if picture else ""
    cells = "".join(
        '<tr><td style="text-align:left;padding:1px 10px 1px 0;vertical-align:top;opacity:0.7">'
        f'{escape(name)}</td><td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return (
        '<div style="display:flex;gap:16px;align-items:flex-start;font-size:90%">'
        f"<div><div><b>{escape(heading)}</b></div>{sentence}"
        f'<table style="border-collapse:collapse;margin:0">{cells}</table></div>{drawn}</div>'
    )


def region_text(region: Mapping[str, Any]) -> str:
    """Say in words on which tissues and on which window r was computed."""
    if not region:
        return "a region that is not recorded"
    text = f"{' and '.join(region['tissues'])}, "
    text += "dorsal half, " if region.get("half") == "dorsal" else ""
    text += (
        f"within {region['window_half_length_mm']:g} mm of the array's centre along the cord, "
        f"the last {region['taper_mm']:g} mm tapered"
    )
    return f"{text}, box {region['box_mm']} mm" if region.get("box_mm") else text
