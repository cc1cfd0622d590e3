"""Commands for a user who can write nowhere but to the temporary folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fieldcorr

MESHES = Path(__file__).resolve().parents[2] / "meshes"


def test_kernels_run_without_a_place_for_compiled_kernels(tmp_path: Path) -> None:
    package = tmp_path / "fieldcorr"
    kept_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(fieldcorr.__file__).parent, package, ignore=kept_out)
    shutil.copytree(MESHES, tmp_path / "meshes", ignore=shutil.ignore_patterns("*.fcmesh"))
    # Files in the place of folders: nobody can write there, whatever their rights.
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    variables = {k: v for k, v in os.environ.items() if k not in unset}
    variables |= {"HOME": str(home), "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-m", "fieldcorr", "precompute", "--dry-run"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "3,600" in run.stdout
