"""Make the pictures of README and documentation: ``scripts/figures [STORE]``.

From a store of the bundled model: ``overview.png``, ``anatomy.png`` and ``which-r.png`` beside this
file, ``picker.png`` and ``session*.png`` as chromium shows report and session page, and in
``gallery/`` what the Python blocks of ``docs/gallery.md`` save, run in their order.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import image
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

import fieldcorr as fc
from fieldcorr import plot
from fieldcorr.plot.style import FAINT, SERIES

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from notebook_runner import few_colours  # noqa: E402

from tests.docs.blocks import blocks_of  # noqa: E402

CONFIGURATION = "6- 8+"
SESSIONS, DUELS = 40, 200
STIMULATOR = """
[stimulator]
control = "voltage"
pulse_width_us = 210
rate_Hz = 40
amplitude_V = { largest = 10.5, step = 0.05, planned = 3.0 }
[configurations]
charge_density_max_uC_per_cm2 = 30
"""
LARGE = 12.5
"""Font size of titles, points: the picture is seven inches wide, and a telephone half of that."""


def overview(store: fc.Store) -> Figure:
    """Draw the story: a field, others that are like it, and how sessions narrow."""
    figure = Figure(figsize=(7.0, 7.2), layout="constrained", facecolor="white")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1.3, 1.0])
    left, right = upper.subfigures(1, 2, width_ratios=[1.0, 1.15])
    draw_spine(store, left)
    draw_alike(store, right)
    draw_sessions(store, lower)
    return figure


def draw_spine(store: fc.Store, part: SubFigure) -> None:
    """Put a 3-D picture of the field on the cord into a part of the figure."""
    size = (1000, 1200)
    plotter = plot.scene(store, CONFIGURATION, size=size, caption=False, off_screen=True)
    with tempfile.TemporaryDirectory() as folder:
        plotter.screenshot(f"{folder}/scene.png")
        pixels = image.imread(f"{folder}/scene.png")
    plotter.close()
    inside = np.argwhere((pixels[..., :3] < 0.99).any(axis=2))
    (top, first), (bottom, last) = inside.min(axis=0), inside.max(axis=0)
    ax = part.subplots()
    ax.imshow(pixels[top:bottom, first:last])
    ax.set_axis_off()
    part.suptitle(f"1  A configuration\nmakes a field: {CONFIGURATION}", fontsize=LARGE)


def draw_alike(store: fc.Store, part: SubFigure) -> None:
    """Draw three configurations that make nearly the same field."""
    row = store.index_of(CONFIGURATION)
    r = store.row(row).astype(np.float64)
    r[row] = -1.0
    nearest = np.argsort(-r, kind="stable")
    # Not all of them look alike on the array: take those that use other contacts.
    others = [k for k in nearest if not np.any(store.polarity[k] * store.polarity[row])][:2]
    rows = [nearest[0], *others]
    titles = [f"{store.texts[k]}\nr = {r[k]:.2f}" for k in rows]
    plot.arrays(store, rows, titles=titles, columns=3, figure=part)
    for ax in part.axes:
        ax.set_title(ax.get_title(), fontsize=LARGE - 2.5)
    part.suptitle("2  Others make nearly\nthe same field", fontsize=LARGE)


def draw_sessions(store: fc.Store, part: SubFigure) -> None:
    """Draw how many configurations simulated sessions have left, and how good the leader is."""
    left, better = played(store)
    ax = part.subplots()
    t = np.arange(DUELS + 1)
    low, middle, high = np.percentile(left, [25, 50, 75], axis=0)
    ax.fill_between(t, low, high, color=SERIES[0], alpha=0.2, linewidth=0)
    ax.plot(t, middle, color=SERIES[0], linewidth=2.5)
    ax.axhline(len(store), color=FAINT, linewidth=1, linestyle=":")
    ax.set_yscale("log")
    ax.set_ylim(0.8, 1.6 * len(store))
    ax.set_yticks([1, 10, 100, 1000, len(store)], ["1", "10", "100", "1000", f"{len(store)}"])
    ax.minorticks_off()
    ax.set_xlim(0, DUELS)
    ax.tick_params(labelsize=LARGE - 2)
    ax.set_xlabel("comparisons of two configurations", fontsize=LARGE - 1)
    ax.set_ylabel("configurations left", fontsize=LARGE - 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.text(
        0.98, 0.93,
        f"the leader after {DUELS} is better than {100 * np.median(better):.1f} % of all\n"
        f"in half of the sessions, than {100 * np.percentile(better, 25):.1f} % in three quarters",
        transform=ax.transAxes, ha="right", va="top", fontsize=LARGE - 2,
    )  # fmt: skip
    part.suptitle(
        f"3  So every answer counts for all: {SESSIONS} simulated sessions", fontsize=LARGE
    )


def which_r(folder: Path) -> Figure:
    """Draw one configuration and the four nearest to it, for each of the four measures."""
    figure = Figure(figsize=(7.4, 10.4), layout="constrained", facecolor="white")
    kinds = ("potential", "field", "activating", "magnitude")
    for kind, part in zip(kinds, figure.subfigures(4, 1), strict=True):
        model = fc.load_model().replace({"measure.kind": kind})
        with fc.precompute(model, folder / f"{kind}.h5", estimate=False, slim=True) as store:
            plot.neighbours(store, "1- 2+", count=4, figure=part)
        part.suptitle(f'measure.kind = "{kind}"', fontsize=LARGE - 2)
    return figure


def played(store: fc.Store) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number left (sessions, duels + 1), and what share the last leader beats."""
    left, better = np.empty((SESSIONS, DUELS + 1)), np.empty(SESSIONS)
    for seed in range(SESSIONS):
        rng = np.random.default_rng(seed)
        utility = store.embedding @ rng.standard_normal(store.rank)
        utility /= utility.std()
        duel = fc.CorrDuel(store, horizon=DUELS, seed=seed)
        left[seed] = len(store)
        while not duel.done:
            first, second = duel.ask()
            gap = utility[first] - utility[second] + np.sqrt(0.5) * rng.standard_normal()
            winner, loser = (first, second) if gap > 0.0 else (second, first)
            duel.tell(winner=winner, loser=loser)
            left[seed, duel.duels :] = duel.progress.left
        better[seed] = np.mean(utility < utility[duel.best])
    return left, better


def gallery(store: Path) -> None:
    """Run the blocks of the gallery in a folder of their own, and keep what they save."""
    page = ROOT / "docs/gallery.md"
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.link(store, Path(folder) / "my.h5")
        os.chdir(folder)
        for block in blocks_of(page):
            if block.language == "python":
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        for file in Path(folder).glob("*.[ps][nv]g"):
            save(file, HERE / "gallery" / file.name)
        os.chdir(ROOT)


def pages(path: Path, folder: Path) -> None:
    """Take pictures of the picker of a report, and of a session after four answers."""
    from playwright.sync_api import sync_playwright

    from fieldcorr.cli import build_app
    from tests.web.test_web_session import Server, ready

    journal, report, measured = (folder / name for name in ("my.journal", "r.html", "s.toml"))
    impedances = "\n".join(f"{contact} = {600 + 17 * contact}" for contact in range(16))
    measured.write_text(f"{STIMULATOR}\n[stimulator.impedance_ohm]\n{impedances}\n")
    new = ["duel", "new", f"{journal}", f"{path}", "--horizon", "40", "--seed", "3"]
    for words in ([*new, "--stimulator", f"{measured}"], ["report", f"{path}", "-o", f"{report}"]):
        build_app()(["--quiet", *words], standalone_mode=False)

    def opened(link: str, width: int, height: int, **options: Any) -> Any:
        size = {"width": width, "height": height}
        page = browser.new_page(viewport=size, device_scale_factor=1.5, **options)
        page.goto(link)
        page.wait_for_selector("body[data-ready]")
        return page

    def kept(place: Any, name: str) -> None:
        page.wait_for_timeout(1000)  # sections are drawn after the page is ready
        place.screenshot(path=HERE / name)

    server, chromium = Server(journal), os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = opened(report.as_uri(), 1280, 900)
        page.get_by_label("Configuration", exact=True).fill(CONFIGURATION)
        page.get_by_label("Configuration", exact=True).press("Enter")
        kept(page.locator("#picker"), "picker.png")
        page = opened(server.link, 1280, 860)
        page.get_by_label("Amplitude, V").fill("5.4")
        for line, answer in enumerate(("Left better", "Right better", "Same", "Left better")):
            page.get_by_role("button", name=answer, exact=True).click()
            ready(page, line + 2)
        page.evaluate("scrollTo(0, 0)")
        kept(page, "session.png")
        page = opened(server.link, 390, 844, color_scheme="dark")
        kept(page, "session-narrow.png")
    server.stop()


def save(file: Path, target: Path) -> None:
    """Keep a picture, a PNG one with few colours."""
    if file.suffix == ".png":
        target.write_bytes(few_colours(file.read_bytes()))
    else:
        shutil.copy(file, target)


def main() -> None:
    """Write the pictures."""
    path = Path(sys.argv[1]).resolve()
    only = sys.argv[2:] or ["overview", "anatomy", "which-r", "pages", "gallery"]
    with tempfile.TemporaryDirectory() as folder, fc.open_store(path) as store:
        draft = Path(folder) / "picture.png"
        if "overview" in only:
            overview(store).savefig(draft, dpi=200)
            save(draft, HERE / "overview.png")
        if "anatomy" in only:
            plot.anatomy(fc.load_model(), keys=True).savefig(draft, dpi=130)
            save(draft, HERE / "anatomy.png")
        if "which-r" in only:
            which_r(Path(folder)).savefig(draft, dpi=110)
            save(draft, HERE / "which-r.png")
        if "pages" in only:
            pages(path, Path(folder))
    if "gallery" in only:
        gallery(path)


if __name__ == "__main__":
    main()
