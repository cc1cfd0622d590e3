"""The store: r, neighbourhoods, configurations and fields in one HDF5 file.

What flows in: the arrays of a finished batch. What flows out: :class:`Store` for consumers, who
need numpy, h5py and numba only. FORMAT.md specifies the file; :mod:`~fieldcorr.store.layout` is
its one declaration in code.
"""

from typing import TYPE_CHECKING, Any

from fieldcorr.store.reader import Store, open_store

if TYPE_CHECKING:
    from fieldcorr.store.check import check_store
    from fieldcorr.store.findings import Finding
    from fieldcorr.store.work import WorkFolder
    from fieldcorr.store.writer import Options, write_store

__all__ = [
    "Finding",
    "Options",
    "Store",
    "WorkFolder",
    "check_store",
    "open_store",
    "write_store",
]

_HOMES = {
    "Finding": "findings",
    "Options": "writer",
    "WorkFolder": "work",
    "check_store": "check",
    "write_store": "writer",
}


def __getattr__(name: str) -> Any:
    # Writing and checking load numba; who only opens a store need not wait for it.
    if name not in _HOMES:
        raise AttributeError(f"module 'fieldcorr.store' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fieldcorr.store.{_HOMES[name]}"), name)
