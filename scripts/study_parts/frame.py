"""Run the mesh study and print its table.

The table is also written to ``results/study.md`` and, with more digits, to ``results/study.json``.
Meshes of the variants are built with gmsh once and kept in ``results/study``.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

from fieldcorr.mesh import read_mesh
from fieldcorr.model import load_model, resolve_mesh
from study_parts.compare import Spread, spread, up_to_three
from study_parts.variants import (
    CACHE,
    VARIANTS,
    Result,
    Variant,
    solve,
    variant_mesh,
    variant_model,
)

DRIVES = ("voltage", "current")
HEAD = (
    "| change | what | tets | dofs "
    "| voltage: max, p99, median | current: max, p99, median | aim: max |\n"
    "|---|---|---|---|---|---|---|"
)


def say(text: str) -> None:
    """Report progress on the standard error."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def reporter(name: str) -> Callable[[str, float], None]:
    """Return a progress function that reports the end of each stage."""
    finished: set[str] = set()

    def report(stage: str, done: float) -> None:
        if done >= 1.0 and stage not in finished:
            finished.add(stage)
            say(f"  {name}: {stage} done")

    return report


def line(variant: Variant, result: Result, spreads: dict[str, Spread]) -> str:
    """Return one line of the table."""
    figures = [
        f"{s.maximum:.1e}, {s.p99:.1e}, {s.median:.1e}" for s in (spreads[d] for d in DRIVES)
    ]
    aim = "" if variant.aim is None else f"{variant.aim[0]:.0e}, median {variant.aim[1]:.0e}"
    cells = (variant.name, variant.effect, result.cells, result.dofs, *figures, aim)
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main() -> None:
    """Solve every variant and compare it with the mesh under study."""
    parser = argparse.ArgumentParser(prog="scripts/study", description=__doc__.splitlines()[0])
    parser.add_argument("--mesh", default="standard", help="bundled mesh under study")
    parser.add_argument("--only", nargs="*", default=[], help="names of variants")
    parser.add_argument("--quick", action="store_true", help="leave out the long variants")
    options = parser.parse_args()
    model = load_model("lumbosacral-565")
    studied = read_mesh(resolve_mesh(model, options.mesh))
    polarity = up_to_three(len(model.electrode_names))
    say(f"{len(polarity)} configurations on the {options.mesh} mesh, {studied.n_cells} tetrahedra")
    base = solve(model, studied, 2, reporter(options.mesh))
    lines, record = [HEAD], []
    for variant in VARIANTS:
        if (options.quick and variant.long) or (options.only and variant.name not in options.only):
            continue
        changed = variant_model(variant, model)
        say(f"{variant.name}: {variant.effect}")
        result = solve(changed, variant_mesh(variant, changed, studied), variant.order)
        spreads = {drive: spread(base, result, polarity, drive) for drive in DRIVES}
        lines.append(line(variant, result, spreads))
        say("  " + lines[-1])
        record.append(
            {
                "variant": asdict(variant),
                "tets": result.cells,
                "dofs": result.dofs,
                "seconds": result.seconds,
                "spread": {drive: asdict(s) for drive, s in spreads.items()},
            }
        )
    CACHE.parent.mkdir(exist_ok=True)
    summary = {"mesh": studied.hash, "tets": base.cells, "dofs": base.dofs, "variants": record}
    (CACHE.parent / "study.json").write_text(json.dumps(summary, indent=1))
    (CACHE.parent / "study.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
