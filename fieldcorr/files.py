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
    next to the target, so that a format may keep its numbers in a second file. An ``error`` of one
    line says that it cannot be written, or what :func:`refuse_existing` refuses.
    """
    kept = list(inputs)
    refuse_existing(target, error=error, force=force, inputs=kept)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
            yield Path(folder) / target.name
            # The file of the target's name comes last: it refers to the others.
            written = sorted(Path(folder).iterdir(), key=lambda file: file.name == target.name)
            for file in written:
                beside = target.parent / file.name
                refuse_existing(beside, error=error, force=force, inputs=kept)
            for file in written:
                _flush(file)
                os.replace(file, target.parent / file.name)
    except OSError as problem:
        reason = " ".join(str(problem.strerror or problem).split())
        raise error(f"{target}: cannot be written: {reason}") from problem


def refuse_existing(
    target: Path, *, error: type[FieldcorrError], force: bool, inputs: Iterable[Path] = ()
) -> None:
    """Refuse to replace a file that exists, unless ``force``, and one that is read in any case."""
    if any(target.exists() and file.exists() and target.samefile(file) for file in inputs):
        raise error(f"{target}: is being read and cannot be replaced; choose another name")
    if os.path.lexists(target) and not force:
        raise error(f"{target}: exists already; use --force to replace it")


def _flush(file: Path) -> None:
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
