"""The report in a browser, from a file and without a network."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fieldcorr.batch import plan, precompute
from fieldcorr.cli import build_app
from fieldcorr.duel import Session
from fieldcorr.model import Model
from fieldcorr.store import Store, open_store
from fieldcorr.web import data as web_data
from fieldcorr.web.report import report_page
from fieldcorr.web.sections import section_records
from tests.store.synthetic import make_store, values

AXE = Path(os.environ.get("AXE", Path(__file__).resolve().parents[2] / ".venv/axe.min.js"))


def findings(page: Any) -> list[str]:
    """Return what axe-core finds serious in a page; skip the test where axe-core is not there."""
    if not AXE.is_file():
        pytest.skip(f"no axe-core in {AXE}: scripts/test fetches it with npm")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag22aa'] })")
    grave = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    return [f"{v['id']}: {node['html'][:200]}" for v in grave for node in v["nodes"]]


@pytest.fixture(scope="module")
def report(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report with a session of twelve answers, written by the command line."""
    folder = tmp_path_factory.mktemp("report")
    journal, path = folder / "my.journal", folder / "report.html"
    meta = {"rater": "<b>A</b>"}
    with Session.new(journal, store, horizon=40, seed=2, meta=meta) as session:
        for answer in ("left", "right", "same", "skip") * 3:
            session.engine.answer(answer, meta={"amplitude_V": 2.5})
        session.engine.void(2)
        session.engine.undo()
        session.engine.void(1)
    result = CliRunner().invoke(
        build_app(), ["report", str(store.path), str(journal), "-o", str(path)]
    )
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def page(report: Path, open_page: Callable[..., Any]) -> Any:
    opened = open_page(report.as_uri(), offline=True)
    opened.wait_for_selector("body[data-ready]")
    return opened


def contact(page: Any, name: str) -> Any:
    return page.locator(f"button[aria-label^='contact {name}:']")


def test_a_page_fetches_nothing(report: Path, open_page: Callable[..., Any]) -> None:
    opened = open_page(offline=True)
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    opened.wait_for_selector("body[data-ready]")
    assert asked == [report.as_uri()]
    assert report.stat().st_size < 3e6


def test_contacts_are_pressed_by_mouse_and_keys(page: Any, store: Store) -> None:
    text = page.get_by_label("Configuration", exact=True)
    text.fill("off")
    text.press("Enter")
    contact(page, "5").click()
    assert contact(page, "5").get_attribute("aria-pressed") == "true"
    assert page.locator(".figures").inner_text().startswith("A cathode and an anode")
    contact(page, "5").press("ArrowDown")
    assert page.evaluate("document.activeElement.ariaLabel") == "contact 6: off"
    page.keyboard.press("+")
    assert text.input_value() == "5- 6+"
    row = store.index_of("5- 6+")
    assert f"row {row}" in page.locator(".figures").inner_text()
    ohm = 1.0 / store.current[row].max()
    assert f"{ohm / 1e3:.3g}" in page.locator(".figures").inner_text()
    best, r = store.nearest(row, 1)
    first = page.locator("button.near").first
    assert f"{r[0]:.3f}" in first.inner_text()
    first.click()
    page.keyboard.press("Tab")
    assert text.input_value() in {store.texts[k] for k in store.nearest(row, 8)[0]}
    assert best.size == 1


def test_a_wrong_text_is_told(page: Any) -> None:
    text = page.get_by_label("Configuration", exact=True)
    text.fill("5- 99+")
    text.press("Enter")
    assert page.get_by_role("alert").inner_text() == 'there is no contact "99"'


def test_sections_change_with_what_is_shown(page: Any) -> None:
    picture = "document.querySelector('.axial-part canvas.section').toDataURL()"
    seen = [page.evaluate(picture)]

    def drawn_anew() -> None:
        page.wait_for_function(f"seen => !seen.includes({picture})", arg=seen)
        seen.append(page.evaluate(picture))

    for kind in ("|E|", "Activating function"):
        page.get_by_label(kind, exact=True).check()
        drawn_anew()
    slider = page.get_by_label("Axial", exact=False).first
    slider.fill("1" if slider.input_value() == "0" else "0")
    drawn_anew()


def test_the_table_is_searched_and_sorted(page: Any, store: Store) -> None:
    rows = page.locator("#configurations tbody tr")
    assert rows.count() == 25
    page.get_by_label("Contacts to look for", exact=False).fill("5- 7")
    shown = [text.replace("\u2212", "-") for text in rows.locator("button").all_inner_texts()]
    assert shown == [text for text in store.texts if {"5-"} <= set(text.split()) and "7" in text
                     and text.split()[1][:-1] == "7"]  # fmt: skip
    page.get_by_label("Contacts to look for", exact=False).fill("")
    page.get_by_role("button", name="impedance").click()
    least = min(range(len(store)), key=lambda k: (-store.current[k].max(), k))
    assert rows.first.locator("td").first.inner_text() == str(least)
    rows.first.locator("button").click()
    picked = page.get_by_label("Configuration", exact=True).input_value()
    assert picked == store.texts[least]


def test_the_session_is_told(page: Any) -> None:
    told = page.locator("#part-course").inner_text()
    assert "12 answers" in told or "Every answer that was not taken back: 12" in told
    assert "<b>A</b>" in told
    assert "left (void)" in told
    assert "9 of 40 planned" not in told
    assert "8 of 40 planned" in told
    assert page.locator(".ranked li").count() == 12


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_report_is_for_everyone(
    report: Path, open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    opened = open_page(report.as_uri(), width=width, color_scheme=scheme, bypass_csp=True)
    opened.wait_for_selector("body[data-ready]")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    small = """[...document.querySelectorAll('button, input:not([type=radio]), select')]
      .map((e) => [e.getBoundingClientRect(), e.ariaLabel || e.textContent || e.id])
      .filter(([box]) => box.width && (box.width < 43.9 || box.height < 43.9)).map((x) => x[1])"""
    assert opened.evaluate(small) == []
    assert findings(opened) == []


def test_configurations_that_are_not_listed(
    bundled_model: Model,
    tmp_path: Path,
    open_page: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page of a whole space holds some of it and says so; its picker draws any pattern."""
    monkeypatch.setattr(plan, "MOST_LISTED", 100)
    monkeypatch.setattr(web_data, "WHOLE_ROWS", 60)
    model = bundled_model.replace({"configurations.preset": "up-to-two"})
    with precompute(model, tmp_path / "w.h5", mesh="tiny", estimate=False, cache=tmp_path) as whole:
        assert whole.is_whole
        (tmp_path / "w.html").write_text(report_page(whole), encoding="utf-8")
    page = open_page((tmp_path / "w.html").as_uri(), offline=True)
    page.wait_for_selector("body[data-ready]")
    assert "holds 60 of 240 configurations" in page.locator("#configurations .notice").inner_text()
    page.get_by_label("Configuration", exact=True).fill("0- 1- 2+ 3+ 9-")
    page.get_by_label("Configuration", exact=True).press("Enter")
    assert "Nearest of the 60 on this page" in page.locator(".nearest").inner_text()
    assert "not on this page" in page.locator(".figures").inner_text()


@pytest.mark.slow
def test_only_what_is_near_the_array_is_drawn(bundled_model: Model, tmp_path: Path) -> None:
    """A compared region as large as the body makes no page of its size."""
    whole = {"region.tissues": list(bundled_model.tissues), "region.window_half_length_mm": 200.0}
    model = bundled_model.replace(whole)
    with precompute(model, tmp_path / "s.h5", mesh="tiny", estimate=False, cache=tmp_path) as store:
        shown = section_records(store)
    widths = [end - start for record in shown for start, end in (record["across"], record["up"])]
    assert max(widths) < 60  # mm; the torso has 300


STIMULATOR = """
[stimulator]
control = "voltage"
pulse_width_us = 200
rate_Hz = 40
amplitude_V = { largest = 10, step = 0.1, planned = 3.0 }
impedance_ohm = { 0 = 700, 1 = 900, 2 = 800 }
[configurations]
charge_density_max_uC_per_cm2 = 20
"""


def test_charges_follow_from_what_was_measured(
    store: Store, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    runner, names = CliRunner(), [str(tmp_path / name) for name in ("a.journal", "a.html")]
    (tmp_path / "today.toml").write_text(STIMULATOR)
    new = [
        "duel",
        "new",
        names[0],
        str(store.path),
        "--horizon",
        "9",
        "--rater",
        "A",
        "--actor",
        "C",
    ]
    told = runner.invoke(build_app(), [*new, "--stimulator", str(tmp_path / "today.toml")])
    assert told.exit_code == 0, told.output
    assert "6 configurations are within the limits" in told.output
    said = "left\nadverse right numb toe\nz 0 500\nvoid 1 wrong lead\nundo slipped\nvoid 1 again\n"
    (tmp_path / "said.txt").write_text(said)
    run = [
        "duel",
        "run",
        names[0],
        "--answers",
        str(tmp_path / "said.txt"),
        "--store",
        str(store.path),
    ]
    assert runner.invoke(build_app(), run).exit_code == 0
    assert (
        runner.invoke(build_app(), ["report", str(store.path), names[0], "-o", names[1]]).exit_code
        == 0
    )
    page = open_page(Path(names[1]).as_uri(), offline=True)
    page.wait_for_selector("body[data-ready]")
    page.get_by_label("Configuration", exact=True).fill("0- 2+")
    page.get_by_label("Configuration", exact=True).press("Enter")
    # 3 V, 800 ohm: 3.75 mA, 0.75 uC, 12.5 uC/cm2, k = log10(12.5) + log10(0.75); at most 6 mA.
    figures = page.locator(".figures").inner_text()
    for text in ("800 \u03a9", "4.8 V", "3.75\t0.75\t12.5\t0.97", "Each contact may carry"):
        assert text in figures
    page.get_by_label("Amplitude, V").fill("5")
    assert "5 V is above the ceiling" in page.locator(".figures").inner_text()
    page.get_by_label("Configuration", exact=True).fill("3- 2+")
    page.get_by_label("Configuration", exact=True).press("Enter")
    assert "no impedance of 2+ 3- was measured" in page.locator(".figures").inner_text()
    page.get_by_role("button", name="ceiling, V").click()
    page.get_by_role("button", name="ceiling, V").click()
    row = page.locator("#configurations tbody tr").first.inner_text()
    assert "\t5.4\t" in row  # by the 900 ohm of contact 1
    decisions = page.get_by_role("region", name="Decisions").inner_text()
    for text in ("adverse event: numb toe", "impedance\t0: 500 ohm", "void (undone)", "wrong lead",
                 "undo\tthe entry before it\tC\tslipped"):  # fmt: skip
        assert text in decisions


def test_a_store_without_a_region_has_a_report(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "foreign.h5", values(slim=True, count=60))) as store:
        assert "in a region that is not recorded" in report_page(store)
