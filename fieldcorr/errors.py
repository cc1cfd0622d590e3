"""Every error that fieldcorr raises on purpose.

All are below one root, :class:`FieldcorrError`. A message is one line and names the file, the key
and the value that are wrong; the command line prints it as it is and ends with exit code 2.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fieldcorr.model.device import Device
    from fieldcorr.model.geometry import Geometry
    from fieldcorr.model.tables import ArrayTable


class FieldcorrError(Exception):
    """Root of every error raised on purpose."""


class ModelError(FieldcorrError):
    """A model or device file that cannot be used."""


class MisfitError(ModelError):
    """Parts of a model that do not fit into each other; carries them, so that they can be drawn.

    ``geometry`` is the anatomy, ``array`` and ``device`` the paddle, None where the anatomy alone
    is at fault.
    """

    def __init__(
        self,
        message: str,
        *,
        geometry: "Geometry",
        array: "ArrayTable | None",
        device: "Device | None",
    ) -> None:
        super().__init__(message)
        self.geometry, self.array, self.device = geometry, array, device


class MeshError(FieldcorrError):
    """A mesh that cannot be used, or that could not be built."""


class MissingExtraError(FieldcorrError):
    """An optional package that the task needs is not installed."""


def missing_extra(what: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for a missing package, with the one command that adds it."""
    is_checkout = (Path(__file__).resolve().parent.parent / "scripts/set-up").is_file()
    command = "scripts/set-up all" if is_checkout else f'pip install "fieldcorr[{extra}]"'
    return MissingExtraError(f"{what} needs {package}, which is not installed: {command} adds it")


class ClusterError(FieldcorrError):
    """Workers that cannot be reached, that were lost, or that run something else."""


class ConvergenceError(FieldcorrError):
    """The linear solver did not reach its tolerance; carries the residual it did reach."""

    def __init__(self, message: str, *, residual: float, iterations: int) -> None:
        super().__init__(message)
        self.residual = residual
        self.iterations = iterations


class IdentityError(FieldcorrError):
    """A physical identity (symmetry, current balance, energy) fails beyond its tolerance."""


class FieldError(FieldcorrError):
    """A field that cannot be computed or evaluated as asked: order, method, measure, points."""


class ConfigurationError(FieldcorrError):
    """A polarity configuration, its text form, or a set of rules that cannot be used."""


class DriveError(FieldcorrError):
    """Contact currents that cannot be made, or that do not balance."""


class CorrelationError(FieldcorrError):
    """A correlation that is not defined: no variance, no samples, not finite."""


class StoreError(FieldcorrError):
    """A store that is damaged, unfinished, hostile, in use or not a store."""


class DuelError(FieldcorrError):
    """A duel, an option of the engine or an answer that cannot be used."""


class JournalError(DuelError):
    """A session journal that is damaged, in use, or belongs to another store."""


class ExportError(FieldcorrError):
    """An export that cannot be written."""
