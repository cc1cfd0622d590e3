"""The store: r, neighbourhoods, configurations and fields in one HDF5 file.

A batch writes its arrays, block of rows by block of rows (:mod:`~fieldcorr.store.write`,
:mod:`~fieldcorr.store.blocks`); :class:`Store` serves them to consumers, who need numpy, h5py and
numba only; :func:`check_store` verifies them. FORMAT.md specifies the file, and
:mod:`~fieldcorr.store.layout` is its one declaration in code.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fieldcorr.store.blocks import Options
    from fieldcorr.store.check import Finding, check_apart, check_store
    from fieldcorr.store.reader import Store, open_store
    from fieldcorr.store.work import WorkFolder
    from fieldcorr.store.write import write_store

__all__ = [
    "Finding",
    "Options",
    "Store",
    "WorkFolder",
    "check_apart",
    "check_store",
    "open_store",
    "write_store",
]

_HOMES = {
    "Finding": "check",
    "Options": "blocks",
    "Store": "reader",
    "WorkFolder": "work",
    "check_apart": "check",
    "check_store": "check",
    "open_store": "reader",
    "write_store": "write",
}


def __getattr__(name: str) -> Any:
    # Writing and checking load numba, reading h5py; nobody waits for what they do not use.
    if name not in _HOMES:
        raise AttributeError(f"module 'fieldcorr.store' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fieldcorr.store.{_HOMES[name]}"), name)
