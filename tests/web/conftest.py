"""A store on the tiny mesh, and Debian's chromium (or another one named by CHROMIUM)."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fieldcorr.batch import precompute
from fieldcorr.model import Model
from fieldcorr.store import Store

PLACES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def store(bundled_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store of the 240 configurations with one anode and one cathode, tiny mesh."""
    folder: Path = tmp_path_factory.mktemp("web")
    model = bundled_model.replace({"configurations.preset": "up-to-two"})
    with precompute(model, folder / "store.h5", mesh="tiny", cache=folder / "cache") as opened:
        yield opened


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return a running browser, or skip with the reason."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PLACES)), None)
    if path is None:
        pytest.skip("no chromium: apt-get install chromium, or name one in CHROMIUM")
    with sync_api.sync_playwright() as driver:
        # Without the sandbox of its own, which a container does not allow.
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page; a message in its console is a failure at the end."""
    contexts, said = [], []

    def heard(text: str, ignored: str) -> None:
        if ignored not in text:
            said.append(text)

    def opened(
        url: str = "about:blank", *, width: int = 1280, ignored: str = "\n", **options: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: heard(message.text, ignored))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
