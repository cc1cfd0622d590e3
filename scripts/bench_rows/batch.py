"""Rows of the batch: from the bundled model to a store, one thread, against version 0.1.0.

Measure with ``--cpu``: processor seconds. Version 0.1.0 is taken from the history of the repository
into ``results/batch``, where the kernels and fields of both versions are kept as well.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_rows import Measured, Row, Task

REPOSITORY = Path(__file__).resolve().parent.parent.parent
KEPT = REPOSITORY / "results" / "batch"
FIRST = "3c264ade6cb7"
"""The last commit of version 0.1.0."""

STATES = ("cold", "kernels warm", "all warm")
RUN = (
    "import sys, fieldcorr as fc; fc.precompute(fc.load_model('lumbosacral-565'), sys.argv[1], "
    "force=True).close()"
)


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [
        Row(
            f"batch, {state}, processor seconds",
            _task("fieldcorr", state, ""),
            (_task("fieldcorr 0.1.0", state, FIRST),),
            aim,
            long=True,
        )
        for state, aim in zip(STATES, (72 / 45, 25 / 17, 6.4 / 3.5), strict=True)
    ]


def _task(name: str, state: str, commit: str) -> Task:
    return Task(name, "batch:batch", {"state": state, "commit": commit}, repeat=1)


def batch(state: str, commit: str) -> Measured:
    """Make a store in a new process, with nothing, with kernels, or with fields too at hand."""
    kept, scratch = KEPT / (commit or "now"), Path(tempfile.mkdtemp())
    kept.mkdir(parents=True, exist_ok=True)
    source = _unpacked(commit, kept / "source") if commit else REPOSITORY
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "NUMBA_CACHE_DIR": str((scratch if state == "cold" else kept) / "kernels"),
        "FIELDCORR_CACHE": str(kept / "fields" if state == "all warm" else scratch / "fields"),
    }

    def run() -> dict[str, float]:
        command = [sys.executable, "-c", RUN, str(scratch / "store.h5")]
        subprocess.run(command, env=environment, cwd=scratch, check=True)
        return {"bytes": float((scratch / "store.h5").stat().st_size)}

    if state != "cold":
        run()
    if state == "kernels warm":
        shutil.rmtree(scratch / "fields")
    return run


def _unpacked(commit: str, folder: Path) -> Path:
    """Return a folder with the package and the meshes of a commit."""
    if not folder.exists():
        folder.mkdir()
        archive = ["git", "archive", commit, "fieldcorr", "meshes"]
        packed = subprocess.run(archive, cwd=REPOSITORY, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    return folder
