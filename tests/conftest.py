"""What all tests share: reproducible hypothesis runs, the bundled model, gmsh or a skip."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fieldcorr.model import Model, load_model

# A shared machine may stall for seconds: time limits per example would fail by chance, and runs
# must not differ from one another.
settings.register_profile(
    "fieldcorr",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile("fieldcorr")

# A run in the background of a shell ignores Ctrl-C, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _gmsh_problem() -> str:
    """Return why gmsh cannot be used, or an empty string."""
    try:
        import gmsh  # noqa: F401
    except (ImportError, OSError) as error:
        return f"gmsh cannot be loaded: {str(error).splitlines()[0]}"
    return ""


@pytest.hookimpl(tryfirst=True)  # before "-m" chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count tests marked gmsh as slow; skip them, with the reason, where gmsh cannot be loaded."""
    marked = [item for item in items if item.get_closest_marker("gmsh")]
    for item in marked:
        item.add_marker(pytest.mark.slow)
    problem = _gmsh_problem() if marked else ""
    if not problem:
        return
    for item in marked:
        item.add_marker(pytest.mark.skip(reason=problem))


@pytest.fixture(scope="session")
def bundled_model() -> Model:
    """Return the bundled model."""
    return load_model("lumbosacral-565")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).resolve().parent.parent
