"""Stores in the formats of other programs.

The ending of the file name chooses the format. ``.vtu`` and ``.xdmf`` hold the mesh with the
fields of named configurations, for ParaView and pyvista; ``.npz``, ``.mat`` and ``.h5ad`` hold
configurations, r and neighbourhoods; ``.csv`` and ``.parquet`` hold one table of them.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ExportError, missing_extra
from fieldcorr.export.vtk import write_fields
from fieldcorr.files import write_beside
from fieldcorr.layout import CASE
from fieldcorr.stimulation import stimulation_of
from fieldcorr.store import Store

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TABLES = ("configurations", "neighbourhoods", "matrix", "stimsets")

BLOCK_ROWS = 256

Columns = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Choice:
    """What of a store is written, see :func:`export_store`."""

    configurations: list[str]
    table: str
    top: int | None

    def rows(self, store: Store) -> Sequence[int]:
        """Return the numbers of the rows to write."""
        if self.configurations:
            return [store.index_of(text) for text in self.configurations]
        if store.is_whole:
            raise ExportError(
                f"{store.path}: {len(store):,} configurations are not listed: choose rows by "
                'configurations such as "0- 5+"'
            )
        return range(len(store))


def export_store(
    store: Store,
    path: str | Path,
    *,
    configurations: Sequence[str] = (),
    table: str = "configurations",
    top: int | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a store, or part of it, in another format.

    Parameters
    ----------
    store
        The open store.
    path
        File to write; its ending chooses the format.
    configurations
        Texts such as "0- 5+". For ``.vtu`` and ``.xdmf`` they need not be rows of the store; for
        ``.csv`` and ``.parquet`` they are the rows to write, all by default.
    table
        For ``.csv`` and ``.parquet``: "configurations", "neighbourhoods" or "matrix", whose columns
        are those of the rows chosen. For ``.csv``, "stimsets": the file ``StimSetsFile`` of
        OSS-DBS, with the current of every contact in mA, 1 mA in total; the case is its ground.
    top
        For the table "neighbourhoods": so many of largest r per row; all that are stored by
        default.
    force
        Replace existing files; never the store itself.

    Returns
    -------
    list of Path
        The files written. XDMF keeps its numbers in a second one; ``.vtu`` and ``.xdmf`` have the
        surfaces of the contacts beside them, in a file of the same name with "-contacts".

    Notes
    -----
    Potentials are in V for a unit drive. Zero is the mean over the compared region, as in pictures
    and in ``store.potential``; with a grounded outer boundary it is the ground. ``.vtu`` and
    ``.xdmf`` say which in a comment at their end, with the names of tissues by number. E and the
    activating function are those of the cells' centroids.
    """
    target = Path(path)
    write = WRITERS.get(target.suffix.lower())
    if write is None:
        raise ExportError(f"{target}: unknown ending; known are {', '.join(WRITERS)}")
    if table not in TABLES:
        raise ExportError(f"table {table!r}: must be one of {', '.join(TABLES)}")
    if table == "stimsets" and (target.suffix.lower() != ".csv" or len(configurations) == 1):
        raise ExportError(
            f"{target}: OSS-DBS reads StimSets from .csv, two configurations at least"
        )
    with write_beside(target, error=ExportError, force=force, inputs=[store.path]) as draft:
        write(store, draft, Choice(list(configurations), table, top))
        return [target.parent / file.name for file in sorted(draft.parent.iterdir())]


def _write_fields(store: Store, path: Path, choice: Choice) -> None:
    write_fields(store, path, choice.configurations)


# -- arrays ---------------------------------------------------------------------------------------


def store_arrays(store: Store) -> Columns:
    """Return configurations, r and neighbourhoods as arrays by name."""
    require_listed(store)
    arrays: Columns = {
        "contact_name": np.array(store.contact_names),
        "contact_position_m": store.contact_positions,
        "id": store.ids,
        "text": np.array(store.texts),
        "polarity": store.polarity,
        "current_A": store.current,
        "embedding": store.embedding,
        "neighbour_indptr": store.indptr,
        "neighbour_indices": store.array("/neighbourhoods/indices"),
        "neighbour_r": store.array("/neighbourhoods/data"),
        "neighbour_threshold": np.array(store.threshold),
    }
    if store.has_matrix:
        arrays["r"] = store.array("/correlation/matrix")
    return arrays


def require_listed(store: Store) -> None:
    """Refuse to write arrays of all rows where there are too many to list."""
    if store.is_whole:
        raise ExportError(
            f"{store.path}: {len(store):,} configurations are not listed: .csv and .parquet take "
            "chosen ones, .vtu and .xdmf their fields"
        )


def sparse_neighbourhoods(store: Store) -> "csr_matrix":
    """Return the neighbourhoods as a scipy CSR matrix."""
    from scipy.sparse import csr_matrix

    parts = (store.array("/neighbourhoods/data"), store.array("/neighbourhoods/indices"))
    return csr_matrix((*parts, store.indptr), shape=(len(store), len(store)))


def _write_npz(store: Store, path: Path, _choice: Choice) -> None:
    np.savez(path, **store_arrays(store))  # type: ignore[arg-type]


def _write_mat(store: Store, path: Path, _choice: Choice) -> None:
    from scipy.io import savemat

    arrays: dict[str, Any] = dict(store_arrays(store))
    for name in ("neighbour_indptr", "neighbour_indices", "neighbour_r"):
        del arrays[name]
    # MATLAB's sparse matrices are of double precision.
    arrays["neighbourhoods"] = sparse_neighbourhoods(store).astype(np.float64)
    for name in ("text", "contact_name"):
        arrays[name] = arrays[name].astype(object)
    if any(getattr(array, "nbytes", 0) >= 2**31 for array in arrays.values()):
        raise ExportError(f"{path.name}: an array of 2 GiB or more does not fit into a .mat file")
    savemat(path, arrays, do_compression=False)


def _write_h5ad(store: Store, path: Path, _choice: Choice) -> None:
    require_listed(store)
    anndata, pandas = _extra("anndata"), _extra("pandas")
    data = anndata.AnnData(
        X=store.current,
        obs=pandas.DataFrame({"id": store.ids}, index=pandas.Index(list(store.texts))),
        var=pandas.DataFrame(
            dict(zip(("x_m", "y_m", "z_m"), store.contact_positions.T, strict=True)),
            index=pandas.Index(list(store.contact_names)),
        ),
        layers={"polarity": np.array(store.polarity)},
        obsm={"embedding": np.array(store.embedding)},
        obsp={"neighbourhoods": sparse_neighbourhoods(store)},
        uns={"fieldcorr": {"hash": store.hash, "settings": store.text("settings")}},
    )
    if store.has_matrix:
        data.obsp["correlation"] = store.array("/correlation/matrix")
    data.write_h5ad(path)


# -- tables ---------------------------------------------------------------------------------------


def table_blocks(store: Store, choice: Choice) -> Iterator[Columns]:
    """Yield a table in blocks of rows, as columns by name."""
    rows = choice.rows(store)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = np.array(rows[start : start + BLOCK_ROWS], dtype=np.int64)
        if choice.table == "configurations":
            yield _configuration_block(store, part)
        elif choice.table == "neighbourhoods":
            yield _neighbour_block(store, part, choice.top)
        elif choice.table == "stimsets":
            yield _stimset_block(store, part)
        else:
            yield _matrix_block(store, part, rows)


def _configuration_block(store: Store, rows: NDArray[np.int64]) -> Columns:
    names, polarity, current = store.contact_names, store.polarity[rows], store.current[rows]
    stimulation, delivered = stimulation_of(store), {}
    if stimulation is not None:
        unit = stimulation.stimulator.unit
        delivered = stimulation.doses(polarity, current).columns(names, unit)
    return {
        "row": rows,
        "id": store.ids[rows],
        "configuration": np.array([store.texts[row] for row in rows]),
        **{f"polarity {name}": polarity[:, e] for e, name in enumerate(names)},
        **{f"current {name} (A)": current[:, e] for e, name in enumerate(names)},
        **delivered,
    }


def _neighbour_block(store: Store, rows: NDArray[np.int64], top: int | None) -> Columns:
    found = [store.neighbours(int(row), top=top) for row in rows]
    return {
        "row": np.repeat(rows, [len(indices) for indices, _ in found]),
        "neighbour": np.concatenate([indices for indices, _ in found]),
        "r": np.concatenate([r for _, r in found]),
    }


def _stimset_block(store: Store, rows: NDArray[np.int64]) -> Columns:
    """Return columns that are numbered as OSS-DBS numbers contacts, in the order of the store."""
    current = store.current[rows]
    unit = 2.0 * current / np.abs(current).sum(axis=1, keepdims=True)
    contacts = [e for e, name in enumerate(store.contact_names) if name != CASE]
    return {f"Contact{n}": unit[:, e] for n, e in enumerate(contacts)}


def _matrix_block(store: Store, rows: NDArray[np.int64], every: Sequence[int]) -> Columns:
    r = np.stack([store.row(int(row))[list(every)] for row in rows])
    names = [store.texts[row] for row in every]
    columns = dict(zip(names, r.T, strict=True))
    return {"configuration": np.array([store.texts[row] for row in rows]), **columns}


def _write_csv(store: Store, path: Path, choice: Choice) -> None:
    blocks = table_blocks(store, choice)
    first = next(blocks)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(first)
        for block in chain([first], blocks):
            writer.writerows(zip(*map(_texts, block.values()), strict=True))


def _texts(column: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return numbers as texts, nothing for NaN."""
    # str of a numpy float32 is its shortest exact text, that of its Python value is not.
    texts = column.astype(str)
    return np.where(column == column, texts, "")


def _write_parquet(store: Store, path: Path, choice: Choice) -> None:
    arrow, parquet = _extra("pyarrow"), _extra("pyarrow.parquet")
    parts = (arrow.table(block) for block in table_blocks(store, choice))
    first = next(parts)
    with parquet.ParquetWriter(path, first.schema) as writer:
        for part in chain([first], parts):
            writer.write_table(part)


def _extra(name: str) -> ModuleType:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise missing_extra("this export", name, "export") from error


WRITERS: Mapping[str, Callable[[Store, Path, Choice], None]] = {
    ".vtu": _write_fields,
    ".xdmf": _write_fields,
    ".npz": _write_npz,
    ".mat": _write_mat,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".h5ad": _write_h5ad,
}
