"""Make the pictures of README and documentation: ``scripts/figures [STORE]``.

From a store of the bundled model, ``overview.png`` beside this file.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import fieldcorr as fc
from fieldcorr import plot
from fieldcorr.duel.simulate import BASELINES, Experiment, Player, simulate
from fieldcorr.duel.worlds import ElectrodeSpace

CONFIGURATION = "6- 8+"
TRIALS, DUELS = 200, 400
SIZE_INCH, DOTS_PER_INCH = (12.0, 3.9), 100


def simulated(store: fc.Store) -> Experiment:
    """Play duels with preferences that are linear in the field."""
    players = (Player("CorrDuel", "CorrDuel"), BASELINES[1])
    world = ElectrodeSpace(store.embedding, "linear")
    return simulate(world, players, trials=TRIALS, horizon=DUELS, seed=1)


def overview(store: fc.Store) -> Figure:
    """Draw the story from left to right: a field, its neighbours, the duels."""
    figure = plt.figure(figsize=SIZE_INCH, layout="constrained")
    field, alike, duels = figure.subfigures(1, 3, width_ratios=[1.3, 2.15, 1.65])
    plot.section(store, CONFIGURATION, plane="sagittal", ax=field.subplots())
    plot.neighbours(store, CONFIGURATION, count=4, figure=alike)
    axes = duels.subplots()
    plot.regret(simulated(store), band=0.0, ax=axes)
    axes.set_title(f"{TRIALS} simulated sessions, {len(store)} configurations", fontsize=10)
    return figure


def main() -> None:
    """Write the pictures."""
    with fc.open_store(sys.argv[1]) as store:
        overview(store).savefig(Path(__file__).parent / "overview.png", dpi=DOTS_PER_INCH)


if __name__ == "__main__":
    main()
