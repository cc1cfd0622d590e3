"""``fieldcorr simulate``: the paper's experiment, and the same on an electrode space.

Prints a table of stepwise regret, and writes curves, a table of all trials and a plot on request.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldcorr.cli._common import (
    DaskOption,
    ThreadsOption,
    command_group,
    note,
    progress,
    refuse_picture,
    show_table,
)
from fieldcorr.cli.duel import parse_pairs
from fieldcorr.errors import DuelError, ExportError
from fieldcorr.files import refuse_existing, write_beside

if TYPE_CHECKING:
    from fieldcorr.correlation.sources import Via
    from fieldcorr.duel.simulate import Player
    from fieldcorr.duel.worlds import World

HELP = """Try engines on simulated preferences.

\b
Examples:
  fieldcorr simulate paper                            1000 trials of all algorithms
  fieldcorr simulate paper --trials 10000 --plot regret.png --csv regret.csv
  fieldcorr simulate store my.h5 --utility linear     on an electrode space
  fieldcorr simulate store my.h5 --engine BayesDuel --engine mymodule:MyEngine
"""

group = command_group(HELP)

_BOTH = {"noise": 0.5, "seed": 0, "amplitude": 1.0, "rater": {}, "engines": [], "options": {}}
PAPER: dict[str, Any] = {
    "trials": 1000,
    "horizon": 100,
    **_BOTH,
    "length": 0.2,
    "side": 50,
}
STORE: dict[str, Any] = {
    "trials": 200,
    "horizon": 400,
    **_BOTH,
    "length": 1.0,
    "utility": "linear",
    "damped": False,
}

Trials = Annotated[int | None, typer.Option(min=1, help="Number of trials.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Duels per trial.")]
Noise = Annotated[float | None, typer.Option(help="Standard deviation of a value, 0.5.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Fixes everything random.")]
Amplitude = Annotated[float | None, typer.Option(help="Standard deviation of the utility, 1.")]
Delta = Annotated[float | None, typer.Option(help="Width of CorrDuel's intervals, 0.9.")]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="BayesDuel, CorrDuel, KernelSelfSparring, LinearThompson, ..., or module:factory with "
        "ask and tell. May be repeated; the paper's five if none.",
    ),
]
RaterOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--rater",
        metavar="KEY=VALUE",
        help="How the simulated person errs: lapse=0.1, ties=0.3, drift=0.2, habit=left or coin.",
    ),
]
Table = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write one row per trial and checkpoint: .csv or .json."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="Any option of CorrDuel. May be repeated."),
]
Settings = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TOML file with any of these; the command line wins."),
]
Csv = Annotated[Path | None, typer.Option(metavar="FILE", help="Write mean and deviation.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw regret: .png, .svg, .pdf.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


@group.command("paper")
def paper(
    trials: Trials = None,
    horizon: Horizon = None,
    length: Annotated[
        float | None, typer.Option(help="Length scale of the Gaussian process, 0.2.")
    ] = None,
    side: Annotated[int | None, typer.Option(help="Points per side of the grid, 50.")] = None,
    amplitude: Amplitude = None,
    noise: Noise = None,
    delta: Delta = None,
    option: Options = None,
    engine: Engines = None,
    rater: RaterOptions = None,
    seed: Seed = None,
    settings: Settings = None,
    csv: Csv = None,
    table: Table = None,
    plot: Plot = None,
    force: Force = False,
    threads: ThreadsOption = None,
    dask: DaskOption = None,
) -> None:
    """Repeat the paper's simulation with five algorithms.

    Utilities are Gaussian processes on a grid. The algorithms are CorrDuel (all dominated arms
    removed, history kept), Beat-the-Mean, RUCB, Sparring with UCB1, and CorrDuel exactly as
    printed. The paper has 10 000 trials of 100 duels on 50 x 50 points.

    \b
    Examples:
      fieldcorr simulate paper --trials 10000
      fieldcorr simulate paper --length 0.1 --delta 0.9 --option radius=arm
      fieldcorr simulate paper --settings experiment.toml --plot regret.svg
    """
    from fieldcorr.duel.worlds import Grid

    _refuse(csv, plot, table, force=force, inputs=[settings])
    given: dict[str, object] = {"trials": trials, "horizon": horizon, "length": length}
    given |= {"side": side, "amplitude": amplitude, "noise": noise, "seed": seed, "engines": engine}
    pairs = {"options": parse_pairs(option, delta=delta), "rater": parse_pairs(rater)}
    chosen = _merged(PAPER, settings, given, pairs)
    world = Grid(side=chosen["side"], length=chosen["length"], amplitude=chosen["amplitude"])
    _play(world, chosen, threads, csv, plot, table, dask)


@group.command("store")
def store_command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to play on.")],
    utility: Annotated[
        str | None,
        typer.Option(
            help="linear, magnitude, smooth, matern, bumps, target, recruitment, roots or sample."
        ),
    ] = None,
    trials: Trials = None,
    horizon: Horizon = None,
    length: Annotated[
        float | None, typer.Option(help="Length scale of smooth, matern and bumps, 1.")
    ] = None,
    amplitude: Amplitude = None,
    noise: Noise = None,
    delta: Delta = None,
    damped: Annotated[
        bool | None,
        typer.Option("--damped", help="CorrDuel learns from r less its spread over a sweep."),
    ] = None,
    option: Options = None,
    engine: Engines = None,
    rater: RaterOptions = None,
    seed: Seed = None,
    settings: Settings = None,
    csv: Csv = None,
    table: Table = None,
    plot: Plot = None,
    force: Force = False,
    threads: ThreadsOption = None,
    dask: DaskOption = None,
) -> None:
    """Play on the configurations of a store, with random utilities.

    Utilities have mean 0 and standard deviation --amplitude over the configurations: linear in the
    field (magnitude: its absolute value), Gaussian processes (smooth, matern), six bumps, linear in
    the potential at three places of the cord (target), or sigmoid recruitment of four wanted and
    three unwanted places (recruitment) or dorsal roots (roots). On a store of a sweep, "sample" is
    linear in the field of a random sample, while the engines know the mean.

    On a store that lists no configurations utilities are linear or magnitude, and CorrDuel and
    BayesDuel play.

    \b
    Examples:
      fieldcorr simulate store my.h5
      fieldcorr simulate store my.h5 --utility recruitment --engine BayesDuel --engine CorrDuel
      fieldcorr simulate store my.h5 --utility smooth --length 0.7 --trials 1000
      fieldcorr simulate store my.h5 --utility magnitude --horizon 200 --csv regret.csv
      fieldcorr simulate store my.h5 --engine BayesDuel --trials 5000 --dask tcp://head-node:8786
      fieldcorr simulate store sure.h5 --utility sample --engine CorrDuel --damped
    """
    from fieldcorr.correlation.sources import source_from_store
    from fieldcorr.duel.worlds import ElectrodeSpace, WholeSpace
    from fieldcorr.store import open_store

    _refuse(csv, plot, table, force=force, inputs=[settings, store])
    given: dict[str, object] = {"trials": trials, "horizon": horizon, "length": length}
    given |= {
        "utility": utility,
        "amplitude": amplitude,
        "noise": noise,
        "seed": seed,
        "engines": engine,
        "damped": damped,
    }
    pairs = {"options": parse_pairs(option, delta=delta), "rater": parse_pairs(rater)}
    chosen = _merged(STORE, settings, given, pairs)
    with open_store(store) as opened:
        via: Via = "damped" if chosen["damped"] else "auto"
        source_from_store(opened, via=via)  # refuses a store that cannot be read so
        world: World
        if opened.is_whole:
            world = WholeSpace(opened, chosen["utility"], chosen["amplitude"])
            chosen["engines"] = chosen["engines"] or ["CorrDuel", "BayesDuel"]
        else:
            shape = {key: chosen[key] for key in ("length", "amplitude")}
            world = ElectrodeSpace.of_store(opened, chosen["utility"], via=via, **shape)
        _play(world, chosen, threads, csv, plot, table, dask)


def _merged(
    defaults: Mapping[str, object],
    path: Path | None,
    given: Mapping[str, object],
    pairs: Mapping[str, Mapping[str, object]],
) -> dict[str, Any]:
    """Return defaults, overridden by a TOML file, overridden by the command line."""
    file: dict[str, Any] = {}
    try:
        if path:
            file = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DuelError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DuelError(f"{path}: is no TOML: {error}") from error
    for key, value in file.items():
        if key not in defaults:
            raise DuelError(f"{path}: {key} is not one of {', '.join(defaults)}")
        whole = isinstance(defaults[key], float) and type(value) is int
        if type(value) is not type(defaults[key]) and not whole:
            raise DuelError(f"{path}: {key} = {value!r} has the wrong type")
    said = {key: value for key, value in given.items() if value is not None}
    merged = {**defaults, **file, **said}
    return merged | {key: {**file.get(key, {}), **own} for key, own in pairs.items()}


def _refuse(*outputs: Path | None, force: bool, inputs: Sequence[Path | None]) -> None:
    """Refuse to replace files before time is spent on what would be written to them."""
    read = [path for path in inputs if path]
    for path in outputs:
        if path:
            refuse_existing(path, error=ExportError, force=force, inputs=read)


def players(options: Mapping[str, object], engines: Sequence[str] = ()) -> list[Player]:
    """Return the players named; without names, CorrDuel, its printed listing and the baselines."""
    from fieldcorr.duel import DuelOptions
    from fieldcorr.duel.simulate import BASELINES, PRINTED, Player

    corrduel = Player("CorrDuel", "CorrDuel", DuelOptions.from_record(options))
    if not engines:
        return [corrduel, *BASELINES, PRINTED]
    known = {player.algorithm: player for player in (corrduel, *BASELINES)}
    return [known.get(name, Player(name, name)) for name in dict.fromkeys(engines)]


def _play(
    world: World,
    chosen: Mapping[str, Any],
    threads: int | None,
    csv: Path | None,
    plot: Path | None,
    table: Path | None,
    dask: str | None,
) -> None:
    """Simulate with the chosen settings, show the table, write what was asked for."""
    from fieldcorr._parallel import available_threads
    from fieldcorr.cluster import workers
    from fieldcorr.duel.export import write_rows
    from fieldcorr.duel.simulate import simulate
    from fieldcorr.duel.trials import Rater

    if plot is not None:
        refuse_picture(plot)
    numbers = {key: chosen[key] for key in ("trials", "horizon", "seed")}
    for key in chosen["rater"]:
        if key not in (known := ("lapse", "ties", "drift", "habit")):
            raise DuelError(f"rater: {key} is not one of {', '.join(known)}")
    rater = Rater(noise=chosen["noise"], **chosen["rater"])
    with (
        progress() as report,
        workers(dask, count=threads, progress=report) as crew,
    ):
        taking_part = players(chosen["options"], chosen["engines"])
        here = threads or available_threads()
        experiment = simulate(
            world,
            taking_part,
            **numbers,
            rater=rater,
            threads=here,
            processes=here,
            crew=crew if dask else None,
            progress=report,
        )
    settings = experiment.settings
    title = (
        f"Regret on {settings['world']}; {settings['trials']} trials, noise {settings['noise']}, "
        f"seed {settings['seed']}"
    )
    show_table(title, *experiment.table())
    for name in ("rater", "CorrDuel"):
        if name in settings:
            note(f"{name}: {settings[name]}")
    if table is not None:
        write_rows(experiment.rows(), table, force=True)
        note(f"wrote {table}")
    if csv is not None:
        experiment.write_csv(csv, force=True)
        note(f"wrote {csv}")
    if plot is not None:
        from fieldcorr.plot import regret

        with write_beside(plot, error=ExportError, force=True) as draft:
            regret(experiment).savefig(draft)
        note(f"wrote {plot}")
