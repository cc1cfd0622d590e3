"""Everything a store promises, verified.

What flows in: the path of a store. What flows out: a list of findings, empty when the store is
sound. The structure comes first, then the digest of every dataset, then what the numbers mean:
polarities and ids, currents and admittance, unit rows, r against the embedding, symmetry,
neighbourhoods against r, fields against samples.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.errors import FieldcorrError, StoreError
from fieldcorr.store import layout
from fieldcorr.store.digest import combine, digest_array, digest_block
from fieldcorr.store.findings import Finding
from fieldcorr.store.layout import Entry
from fieldcorr.store.reader import Store
from fieldcorr.store.structure import damage_is_store_error, encoding_of

Report = Callable[[str, float], None]
DEFAULT_MEMORY = 1 << 28


def check_store(
    path: str | Path,
    *,
    memory: int = DEFAULT_MEMORY,
    threads: int | None = None,
    progress: Report = lambda stage, done: None,
) -> list[Finding]:
    """Verify a store completely.

    Parameters
    ----------
    path
        The store.
    memory
        Bytes for tiles of r.
    threads
        Threads of the kernels; None for all.
    progress
        Called with the stage and the share that is done.

    Returns
    -------
    Findings, empty when the store is sound.
    """
    try:
        store = Store(Path(path))
    except StoreError as error:
        return [Finding("structure", _without_path(error, path))]
    with store, kernel_threads(threads):
        findings = _guarded("checksums", store, lambda: _check_digests(store, progress))
        if not findings:
            # Numbers that are not what was written are not worth interpreting.
            findings += _check_values(store, memory, progress)
    return findings


def _check_values(store: Store, memory: int, progress: Report) -> list[Finding]:
    from fieldcorr.store import check_rows, check_values

    findings: list[Finding] = []
    for name, check in check_values.CHECKS.items():
        progress(name, 0.0)
        findings += _guarded(name, store, lambda check=check: check(store))  # type: ignore[misc]
        progress(name, 1.0)
    findings += _guarded(
        "rows", store, lambda: check_rows.check_rows(store, memory=memory, progress=progress)
    )
    return findings


def _guarded(name: str, store: Store, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check; whatever goes wrong on the way is a finding too."""
    try:
        # Numbers of a forged file may overflow: what counts is the comparison in the end.
        with np.errstate(all="ignore"):
            return list(check())
    except FieldcorrError as error:
        return [Finding(name, _without_path(error, store.path))]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [Finding(name, f"cannot be evaluated: {error!r}")]


def _check_digests(store: Store, progress: Report) -> Iterator[Finding]:
    yield from _unknown_members(store)
    yield from _check_encodings(store)
    entries = [e for e in store.entries if e.path not in layout.LATE]
    extra = set(store.digests) - {entry.path for entry in entries}
    for name in sorted(extra):
        yield Finding("/provenance/sha256", f"names {name}, which is not in the file")
    for number, entry in enumerate(entries):
        yield from _check_digest(store, entry)
        progress("checksums", (number + 1) / len(entries))


def _check_digest(store: Store, entry: Entry) -> Iterator[Finding]:
    try:
        with damage_is_store_error(store.path):
            found = _digest_in_file(store.dataset(entry.path), entry)
    except StoreError as error:
        yield Finding(entry.path, _without_path(error, store.path))
        return
    recorded = store.digests.get(entry.path)
    if recorded is None:
        yield Finding(entry.path, "has no recorded sha256")
    elif found != recorded:
        yield Finding(entry.path, "does not match its recorded sha256")


def _digest_in_file(dataset: h5py.Dataset, entry: Entry) -> str:
    """Digest a dataset without holding more than a block of it in memory."""
    if dataset.chunks is None:
        return digest_array(entry, dataset[()])
    blocks = layout.blocks(dataset.chunks, dataset.shape)
    return combine(entry, dataset.shape, (digest_block(entry, dataset[block]) for block in blocks))


def _check_encodings(store: Store) -> Iterator[Finding]:
    """Compare the attributes that anndata reads with the declaration."""
    groups = [(g.path, g.encoding) for g in layout.GROUPS if store.has_group(g.path)]
    with store.path.open("rb") as raw:
        for name, want in groups + [(e.path, e.encoding) for e in store.entries]:
            try:
                with damage_is_store_error(store.path):
                    found = encoding_of(store.dataset(name), raw)
            except StoreError as error:
                yield Finding(name, _without_path(error, store.path))
                continue
            if found != want:
                yield Finding(name, f"is encoded as {found}, not {want}")


def _unknown_members(store: Store) -> Iterator[Finding]:
    """Members that the format does not know; a newer minor version may have them."""
    if store.format != layout.FORMAT:
        return
    known = {group.path for group in layout.GROUPS} | {entry.path for entry in layout.ENTRIES}
    for group in layout.GROUPS:
        for name in store.members(group.path):
            member = f"{group.path.rstrip('/')}/{name}"
            if member not in known:
                yield Finding(member, f"is not part of format {layout.FORMAT}")


def _without_path(error: Exception, path: str | Path) -> str:
    return str(error).removeprefix(f"{path}: ")
