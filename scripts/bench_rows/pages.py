"""Rows of the pages: the report on the bundled store in a browser, opened and pressed.

"Opened" ends when the array and both sections are on the screen and can be pressed; "pressed" is a
press of a contact until both sections show its field. Needs chromium, or another one in CHROMIUM.
"""

import os
import shutil
import tempfile
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

from bench_rows import Measured, Row, Task

PRESSED = ("6", "8", "2", "12")
PRESS = """async (name) => {
  document.querySelector(`button[aria-label^='contact ${name}:']`).click();
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
}"""


def rows() -> list[Row]:
    """Return the rows of this module; none where there is no browser."""
    if not browser_path() or not find_spec("playwright"):
        return []
    opened = Task("fieldcorr", "pages:open_report", threads=2, repeat=5)
    pressed = Task("fieldcorr", "pages:press_contact", threads=2, repeat=12)
    return [
        Row("report opened in chromium, K = 3600", opened, budget=1.0, aim=1.0),
        Row("contact pressed until the fields are drawn", pressed, budget=0.1, aim=1.0),
    ]


def browser_path() -> str | None:
    """Return the browser, if there is one."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


def _report() -> tuple[Any, str]:
    """Return a page of a running browser and the address of a fresh report."""
    from playwright.sync_api import sync_playwright

    from fieldcorr.batch import precompute
    from fieldcorr.web.report import report_page

    folder = Path(tempfile.mkdtemp())
    with precompute("lumbosacral-565", folder / "store.h5", estimate=False) as store:
        (folder / "report.html").write_text(report_page(store), encoding="utf-8")
    driver = sync_playwright().start()
    browser = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
    return browser.new_page(), (folder / "report.html").as_uri()


def open_report() -> Measured:
    """Prepare opening the report."""
    page, address = _report()

    def measured() -> dict[str, float]:
        page.goto(address, wait_until="commit")
        page.wait_for_selector("body[data-drawn]")
        return {"canvases": page.locator("canvas.section").count()}

    return measured


def press_contact() -> Measured:
    """Prepare pressing contacts of the report, one at a time."""
    page, address = _report()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(3000)
    names = cycle(PRESSED)

    def measured() -> dict[str, float]:
        page.evaluate(PRESS, next(names))
        return {"canvases": page.locator("canvas.section").count()}

    return measured
