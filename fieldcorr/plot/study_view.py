"""Pictures of accuracy: the mesh study, and convergence under refinement."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fieldcorr.errors import FieldcorrError
from fieldcorr.plot.style import (
    DASHES,
    FAINT,
    INK,
    MARKS,
    SERIES,
    SMALL,
    WIDTH,
    Axes,
    Figure,
    axes_or_new,
    finish,
)

_FIGURES = ("median", "p99", "maximum")
_LABELS = {"median": "median", "p99": "99th percentile", "maximum": "largest"}


def mesh_study(
    study: Mapping[str, object] | str | Path,
    *,
    drive: str = "voltage",
    ax: Axes | None = None,
) -> Figure:
    """Draw how much r moves when one thing about the discretisation changes.

    Parameters
    ----------
    study
        The JSON file that ``scripts/study`` writes, or its content.
    drive
        "voltage" or "current".
    """
    variants = _read_study(study)
    ax = axes_or_new(ax, (WIDTH, 1.3 + 0.36 * len(variants)))
    for place, entry in enumerate(variants):
        spread = entry["spread"][drive]
        values = [spread[name] for name in _FIGURES]
        ax.plot(values, [place] * 3, color=FAINT, linewidth=1.0, zorder=1)
        for name, value, mark, colour in zip(_FIGURES, values, MARKS, SERIES, strict=False):
            label = _LABELS[name] if place == 0 else None
            ax.scatter(value, place, marker=mark, color=colour, s=28, zorder=2, label=label)
        _mark_aims(ax, place, entry["variant"].get("aim"), labelled=place == 0)
    ax.set_yticks(range(len(variants)), [entry["variant"]["effect"] for entry in variants])
    ax.tick_params(axis="y", labelsize=SMALL)
    ax.set_ylim(len(variants) - 0.5, -0.5)
    ax.set_xscale("log")
    ax.legend(frameon=False, fontsize=SMALL, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return finish(ax, f"what moves r ({drive} drive)", "change of r over all pairs, |\u0394r|", "")


def _read_study(study: Mapping[str, Any] | str | Path) -> list[Any]:
    if not isinstance(study, Mapping):
        try:
            study = json.loads(Path(study).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FieldcorrError(f"{study}: cannot be read as a study: {error}") from error
    variants = study.get("variants") if isinstance(study, Mapping) else None
    if not variants:
        raise FieldcorrError("mesh study: no variants in it; scripts/study writes them")
    return list(variants)


def _mark_aims(ax: Axes, place: int, aim: Sequence[float] | None, *, labelled: bool) -> None:
    """Mark the largest and the median change aimed at with short strokes."""
    for value, name, colour in zip(
        aim or (), ("largest", "median"), (SERIES[2], SERIES[0]), strict=False
    ):
        label = f"aim: {name}" if labelled else None
        ax.plot([value, value], [place - 0.3, place + 0.3], color=colour, linewidth=2, label=label)


def convergence(
    sizes: ArrayLike,
    errors: Mapping[str, ArrayLike],
    *,
    theory: Mapping[str, float] | None = None,
    unit: str = "",
    ax: Axes | None = None,
) -> Figure:
    """Draw errors against element size on logarithmic axes.

    Parameters
    ----------
    sizes
        (n,) element sizes h, m or relative.
    errors
        Errors (n,) by name.
    theory
        Orders by name; a dashed line of that slope goes through the finest point.
    unit
        Unit of ``sizes``, for the label.
    """
    h = np.asarray(sizes, dtype=np.float64)
    ax = axes_or_new(ax, (WIDTH * 0.7, 3.4))
    for k, (name, values) in enumerate(errors.items()):
        error = np.asarray(values, dtype=np.float64)
        colour = SERIES[k % len(SERIES)]
        label = f"{name}, order {observed_order(h, error):.2f}"
        ax.plot(h, error, marker=MARKS[k % len(MARKS)], color=colour, label=label)
        if theory and name in theory:
            finest = int(h.argmin())
            line = error[finest] * (h / h[finest]) ** theory[name]
            ax.plot(h, line, color=colour, linewidth=0.9, linestyle=DASHES[1])
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(h, [f"{value:.3g}" for value in h])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=SMALL, labelcolor=INK)
    title = "convergence; dashed: theory" if theory else "convergence"
    return finish(ax, title, "element size h" + (f" ({unit})" if unit else ""), "relative error")


def observed_order(sizes: ArrayLike, errors: ArrayLike) -> float:
    """Return the slope of log error over log size between the two finest sizes."""
    h, error = np.asarray(sizes, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    fine, coarse = np.argsort(h)[:2]
    return float(np.log(error[coarse] / error[fine]) / np.log(h[coarse] / h[fine]))
