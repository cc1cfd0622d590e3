"""Commands for a user who can write nowhere but to the temporary folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fieldcorr

ARCHIVE = Path(__file__).parent.parent / "archives" / "store-1.0.h5"


def test_a_store_is_checked_without_a_place_for_compiled_kernels(tmp_path: Path) -> None:
    package = tmp_path / "fieldcorr"
    kept_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(fieldcorr.__file__).parent, package, ignore=kept_out)
    # Files in the place of folders: nobody can write there, whatever their rights.
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    variables = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    variables |= {"HOME": str(home), "XDG_CACHE_HOME": "", "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-m", "fieldcorr", "check", str(ARCHIVE)],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("sound\n")
