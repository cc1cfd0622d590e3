"""The commands precompute, info and check, and batches that are killed from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fieldcorr.cli import build_app
from fieldcorr.cli.precompute import parse_memory
from fieldcorr.model import Model
from fieldcorr.store import Store, check_store
from tests.store.synthetic import content_hash

TINY = ["--mesh", "tiny", "--set", "configurations.preset=up-to-two"]


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(build_app(), list(arguments))
    return result.exit_code, result.output


def command(output: Path, cache: Path) -> list[str]:
    start = [sys.executable, "-m", "fieldcorr", "precompute", "--output", str(output)]
    return [*start, "--cache", str(cache), *TINY]


def test_precompute_summarises_and_says_what_next(
    store: Store, cache: Path, tmp_path: Path
) -> None:
    output = tmp_path / "my.h5"
    code, text = invoke("precompute", "--output", str(output), "--cache", str(cache), *TINY)
    assert code == 0, text
    assert "240 configurations" in text
    assert f"fieldcorr info {output}" in text
    assert content_hash(output) == content_hash(store.path)
    code, text = invoke("precompute", "--output", str(output), "--cache", str(cache), *TINY)
    assert code == 2
    assert "exists already; use --force" in text


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    code, text = invoke("precompute", "--dry-run", "--output", str(tmp_path / "a.h5"))
    assert code == 0
    assert re.search(r"left by the rules\s+3,600", text)
    assert list(tmp_path.iterdir()) == []


def test_an_output_is_needed() -> None:
    code, text = invoke("precompute")
    assert code == 2
    assert "--output" in text


@pytest.mark.parametrize(
    ("text", "size"),
    [("2G", 2 << 30), ("512MiB", 512 << 20), ("1.5gb", 3 << 29), ("1000", 1000), ("64 K", 1 << 16)],
)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert parse_memory(text) == size


def test_an_amount_that_is_none(tmp_path: Path) -> None:
    code, text = invoke("precompute", "--output", str(tmp_path / "a.h5"), "--memory", "lots")
    assert code == 2
    assert "no amount of memory" in text


def test_info_on_a_store(store: Store) -> None:
    code, text = invoke("info", str(store.path))
    assert code == 0
    for word in ("lumbosacral-565", "240", "rank 15", "r > 0.9", "reciprocity", "loose bound"):
        assert word in text
    code, text = invoke("info", "--json", str(store.path))
    assert json.loads(text)["configurations"] == 240


def test_info_on_a_model(bundled_model: Model) -> None:
    code, text = invoke("info", str(bundled_model.path))
    assert code == 0
    assert "43,046,721" in text
    assert "3,600" in text
    code, text = invoke("info", "--json", "--set", "configurations.preset=up-to-two")
    assert json.loads(text)["configurations"] == 240


def test_rules_that_leave_nothing_are_an_error() -> None:
    code, text = invoke("info", "--set", "configurations.active_max=1")
    assert code == 2
    assert "active_max" in text


@pytest.mark.slow
def test_check_says_sound_or_names_what_is_not(store: Store, tmp_path: Path) -> None:
    code, text = invoke("check", str(store.path))
    assert (code, text.strip()) == (0, f"{store.path}: sound")
    damaged = tmp_path / "damaged.h5"
    content = bytearray(store.path.read_bytes())
    content[store.dataset("/correlation/matrix").id.get_chunk_info(0).byte_offset + 99] ^= 1
    damaged.write_bytes(content)
    code, text = invoke("check", str(damaged))
    assert code == 1
    assert "/correlation/matrix" in text
    code, text = invoke("check", str(tmp_path / "absent.h5"))
    assert code == 2


@pytest.mark.slow
def test_killed_from_outside_at_random_times(store: Store, tmp_path: Path) -> None:
    """SIGKILL at any time: during imports, solving, tiles or the move."""
    rng = np.random.default_rng(9)
    output, cache = tmp_path / "killed.h5", tmp_path / "cache"
    started = time.perf_counter()
    subprocess.run(command(tmp_path / "whole.h5", tmp_path / "other"), check=True, timeout=600)
    whole = time.perf_counter() - started
    for _ in range(3):
        process = subprocess.Popen(command(output, cache), stderr=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.3, 1.0) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        output.unlink(missing_ok=True)
    subprocess.run(command(output, cache), check=True, timeout=600)
    assert content_hash(output) == content_hash(tmp_path / "whole.h5") == content_hash(store.path)
    assert not output.with_name("killed.h5.partial").exists()


@pytest.mark.slow
def test_an_interrupted_batch_says_so_and_goes_on(
    store: Store, cache: Path, tmp_path: Path
) -> None:
    output = tmp_path / "stopped.h5"
    program = (
        "import os, signal, sys\n"
        "from fieldcorr.store.write import Writer\n"
        "def stop(*_): os.kill(os.getpid(), signal.SIGINT)\n"
        "Writer.write = stop\n"
        "sys.argv = ['fieldcorr'] + sys.argv[1:]\n"
        "from fieldcorr.cli import main; main()\n"
    )
    arguments = [sys.executable, "-c", program, *command(output, cache)[3:]]
    stopped = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert stopped.returncode in (130, -signal.SIGINT), stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert os.path.exists(f"{output}.partial/store.h5")
    subprocess.run(command(output, cache), check=True, timeout=300)
    assert content_hash(output) == content_hash(store.path)
    assert check_store(output) == []
