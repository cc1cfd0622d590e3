"""Every notebook runs from top to bottom in a fresh kernel, and is committed with its figures."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 400_000
SECONDS = 300
"""Time limit of a single cell: far above what is needed, for a loaded machine."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the name of a kernel that runs the interpreter of this test."""
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels" / "of-this-test"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    record = {"argv": command, "display_name": "of this test", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(record))
    changed = pytest.MonkeyPatch()
    changed.setenv("JUPYTER_PATH", str(folder))
    changed.setenv("FIELDCORR_CACHE", str(folder / "fields"))
    yield spec.name
    changed.undo()


def test_all_six_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "01_fields",
        "02_correlation",
        "03_duel",
        "04_verification",
        "05_your_patient",
        "06_how_sure",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, kernel: str, tmp_path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name=kernel,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute()
    assert not os.listdir(tmp_path), "a notebook leaves files behind"
    assert "all hold" in _printed(notebook)
    assert _figures(notebook) == _figures(read(path)) > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_with_its_results(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    notebook = read(path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "not run from top to bottom"
    assert not any(out.output_type == "error" for cell in cells for out in cell.outputs)
    assert "all hold" in _printed(notebook)


def read(path: Path) -> Any:
    reader: Any = nbformat.read
    return reader(path, as_version=4)


def _figures(notebook: Any) -> int:
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return sum("image/png" in out.get("data", {}) for out in outputs)


def _printed(notebook: Any) -> str:
    return "".join(
        out.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for out in cell.outputs
        if out.output_type == "stream" and out.name == "stdout"
    )
