"""Whatever is sent to the session page, the journal holds what was acknowledged."""

from pathlib import Path

import pytest

from tests.web.page_fuzz import try_requests


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["BayesDuel", "CorrDuel"])
def test_requests_that_no_page_sends(engine: str, tmp_path: Path) -> None:
    first = 1000 * len(engine)
    assert list(try_requests(first, first + 120, tmp_path, engines=(engine,))) == []
