"""Output files that appear complete or not at all, and never in the place of something else."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fieldcorr.errors import FieldcorrError


@contextmanager
def write_beside(
    target: Path,
    *,
    error: type[FieldcorrError],
    force: bool = False,
    inputs: Iterable[Path] = (),
) -> Iterator[Path]:
    """Yield a path to write to; it takes the target's place when the block ends well.

    The path lies in a new folder beside the target. Whatever is written into that folder is moved
    next to the target, so that a format may keep its numbers in a second file.

    Parameters
    ----------
    target
        Where the file is to be.
    error
        Raised, with one line, when a file exists and ``force`` is not set, when it is one of the
        inputs, and when it cannot be written.
    force
        Replace files that exist.
    inputs
        Files that are being read: never replaced, whatever their names.
    """
    kept = list(inputs)
    _refuse(target, error, kept, force=force)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
            yield Path(folder) / target.name
            written = sorted(Path(folder).iterdir())
            for file in written:
                _refuse(target.parent / file.name, error, kept, force=force)
            for file in written:
                _flush(file)
                os.replace(file, target.parent / file.name)
    except OSError as problem:
        raise error(f"{target}: cannot be written: {problem.strerror or problem}") from problem


def _refuse(target: Path, error: type[FieldcorrError], inputs: list[Path], *, force: bool) -> None:
    if any(target.exists() and file.exists() and target.samefile(file) for file in inputs):
        raise error(f"{target}: is being read and cannot be replaced; choose another name")
    if target.exists() and not force:
        raise error(f"{target}: exists already; use --force to replace it")


def _flush(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
