"""Files that come with the package: models, devices, meshes.

What flows in: a name. What flows out: a path in ``meshes/`` of the checkout, or in
``fieldcorr/meshes/`` of an installed package.
"""

from pathlib import Path


def bundled_folder() -> Path:
    """Return the folder of the bundled models, devices and meshes."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "meshes"
    return installed if installed.is_dir() else package.parent / "meshes"


def bundled_models() -> dict[str, Path]:
    """Return the bundled model files by name."""
    return {path.stem: path for path in sorted(bundled_folder().glob("*.toml"))}


def bundled_devices() -> dict[str, Path]:
    """Return the bundled device files by name."""
    return {path.stem: path for path in sorted((bundled_folder() / "devices").glob("*.toml"))}
