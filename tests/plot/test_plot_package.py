"""The package as a whole: every public function is documented, and matplotlib is optional."""

import inspect
import subprocess
import sys

import pytest

from fieldcorr import plot


@pytest.mark.parametrize("name", plot.__all__)
def test_options_are_keyword_only(name: str) -> None:
    parameters = inspect.signature(getattr(plot, name)).parameters.values()
    assert all(
        p.kind is inspect.Parameter.KEYWORD_ONLY
        for p in parameters
        if p.default is not p.empty and p.name != "configuration"
    )
    assert (getattr(plot, name).__doc__ or "").strip()


def test_without_matplotlib_one_line_says_so() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from fieldcorr.errors import MissingExtraError\n"
        "try:\n    import fieldcorr.plot\n"
        "except MissingExtraError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "fieldcorr.plot needs matplotlib, which is not installed: scripts/set-up all adds it"
    )


def test_plots_leave_pyplot_alone() -> None:
    """Figures must not pile up in pyplot, nor may its settings change."""
    code = "import sys; from fieldcorr import plot; print('matplotlib.pyplot' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
