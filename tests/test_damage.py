"""Every parser, with damaged files: one line of error, or what was written."""

from collections import Counter
from pathlib import Path

import pytest

from tests.damage import ATTEMPTS, Attempt, attempt_mesh


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_damaged_file_is_refused_or_read_as_it_was(attempt: Attempt, tmp_path: Path) -> None:
    # A mesh file that has lost its checksum is read in a process of its own, which takes a second.
    tries = 10 if attempt is attempt_mesh else 150
    outcomes = Counter(attempt(seed, tmp_path) for seed in range(tries))
    assert outcomes["refused"] > tries // 4
