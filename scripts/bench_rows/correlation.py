"""Rows of the correlation side: r, neighbourhoods, |E| features, one update, counting rules.

All get random unit rows of the size of the real problem (10^4 configurations, 16 columns), or the
same sampled fields.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bench_rows import Measured, Row, Task

K = 10_000
RANK = 16
SAMPLES = 2000
FEATURES = 4096
UPDATES = 200
TOP = 100


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [*_matrix_rows(), *_neighbour_rows(), *_update_rows(), *_feature_rows(), *_rule_rows()]


def _task(name: str, prepare: str, threads: int = 2, repeat: int = 5, **arguments: object) -> Task:
    return Task(name, f"correlation:{prepare}", arguments, threads=threads, repeat=repeat)


def _matrix_rows() -> list[Row]:
    """Compare r in memory with filling that memory, with corrcoef, and with half the work."""
    own = _task("fieldcorr", "matrix_fieldcorr", k=K)
    fill = _task("fill 400 MB", "matrix_fill", threads=1, k=K)
    fields = _task("numpy.corrcoef", "matrix_corrcoef", repeat=2, k=K, samples=SAMPLES)
    half = _task(f"K = {K // 2}", "matrix_fieldcorr", k=K // 2)
    return [
        Row(f"r, K = {K}, rank {RANK}, 2 threads", own, (fill,), 0.25),
        Row(f"r, K = {K}, against {SAMPLES} samples", own, (fields,), 40.0),
        Row(f"growth of r, K = {K}, per entry", own, (half,), 0.8, scale=4.0),
    ]


def _neighbour_rows() -> list[Row]:
    """Compare the positive part with scikit-learn's neighbour search on the same rows."""
    own = _task("fieldcorr", "neighbours_fieldcorr", repeat=3, k=K, top=0)
    top = _task("fieldcorr", "neighbours_fieldcorr", repeat=3, k=K, top=TOP)
    radius = _task("scikit-learn radius", "neighbours_radius", repeat=1, k=K)
    nearest = _task("scikit-learn kneighbors", "neighbours_nearest", repeat=2, k=K, top=TOP)
    return [
        Row(f"neighbours r > 0, K = {K}", own, (radius,), 5.0, long=True),
        Row(f"{TOP} nearest, K = {K}", top, (nearest,), 1.0),
    ]


def _update_rows() -> list[Row]:
    """Measure one update of all arms, on one thread, against 0.1 ms and against NumPy."""
    result = []
    for k in (3600, K):
        for source in ("embedding", "rows", "neighbours"):
            own = _task("fieldcorr", "update", threads=1, k=k, source=source)
            subject = f"{UPDATES} updates from {source}, K = {k}, 1 thread"
            aim = 1.0 if source == "embedding" else None
            result.append(Row(subject, own, budget=1e-4 * UPDATES, aim=aim))
    own = _task("fieldcorr", "update", threads=1, k=K, source="rows")
    plain = _task("NumPy definition", "update_numpy", threads=1, repeat=2, k=K)
    return [*result, Row(f"{UPDATES} updates from rows, K = {K}", own, (plain,), 2.0)]


def _feature_rows() -> list[Row]:
    """Compare |E| with BLAS on its features, whose bytes depend on threads and tiles."""
    result = []
    for k in (3600, K):
        own = _task("fieldcorr", "features_fieldcorr", repeat=2, k=k)
        peers = tuple(
            _task(f"BLAS {kind}", "features_blas", repeat=2, k=k, kind=kind)
            for kind in ("float32", "float64")
        )
        result.append(Row(f"abs E: r from {FEATURES} samples, K = {k}", own, peers, long=k == K))
    return result


def _rule_rows() -> list[Row]:
    """Count what rules leave of 3^16 configurations."""
    own = _task("fieldcorr", "count_rules", threads=1, repeat=2)
    return [Row("count connected groups in 3^16", own, budget=2.0, aim=1.0)]


def unit_rows(k: int, rank: int) -> NDArray[np.float64]:
    """Return random unit rows with a falling spectrum, as embeddings of real fields have."""
    z = np.random.default_rng(1).standard_normal((k, rank))
    z *= 0.8 ** np.arange(rank) if rank <= 64 else 1.0
    return np.asarray(z / np.linalg.norm(z, axis=1)[:, None])


def matrix_fieldcorr(k: int) -> Measured:
    """Prepare rows of r into existing memory."""
    from fieldcorr.correlation.tiles import correlation_rows

    z, out = unit_rows(k, RANK), np.zeros((k, k), np.float32)
    correlation_rows(z, 0, 16, out[:16])

    def run() -> Mapping[str, float]:
        correlation_rows(z, 0, k, out)
        return {"r[0, 1]": float(out[0, 1])}

    return run


def matrix_fill(k: int) -> Measured:
    """Prepare filling the same memory with a number."""
    out = np.zeros((k, k), np.float32)

    def run() -> Mapping[str, float]:
        out.fill(0.5)
        return {"bytes": float(out.nbytes)}

    return run


def matrix_corrcoef(k: int, samples: int) -> Measured:
    """Prepare numpy.corrcoef of sampled fields, few samples compared with a real region."""
    fields = unit_rows(k, RANK) @ np.random.default_rng(2).standard_normal((RANK, samples))

    def run() -> Mapping[str, float]:
        return {"r[0, 1]": float(np.asarray(np.corrcoef(fields))[0, 1])}

    return run


def neighbours_fieldcorr(k: int, top: int) -> Measured:
    """Prepare neighbourhoods in memory; ``top`` 0 takes all with r > 0."""
    z, limit = unit_rows(k, RANK), top or None
    csr_neighbours(z[:100], limit)

    def run() -> Mapping[str, float]:
        return {"entries": float(len(csr_neighbours(z, limit)[1]))}

    return run


def csr_neighbours(
    z: NDArray[np.float64], top: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return indptr, indices and data of all neighbourhoods: tiles are counted, then filled."""
    from fieldcorr.correlation.tiles import (
        correlation_rows,
        neighbour_counts,
        neighbour_fill,
        pack_embedding,
        tiles,
    )

    packed, counts = pack_embedding(z), np.empty(len(z), dtype=np.int64)
    cut = list(tiles(len(z)))
    for start, stop in cut:
        rows = correlation_rows(packed, start, stop)
        counts[start:stop] = neighbour_counts(rows, start, top=top)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for start, stop in cut:
        rows = correlation_rows(packed, start, stop)
        near, r = (array[indptr[start] : indptr[stop]] for array in (indices, data))
        neighbour_fill(rows, start, counts[start:stop], top=top, indices=near, data=r)
    return indptr, indices, data


def neighbours_radius(k: int) -> Measured:
    """Prepare scikit-learn's radius_neighbors_graph: cosine distance below 1 is r > 0."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(metric="cosine", radius=1.0, n_jobs=2).fit(unit_rows(k, RANK))

    def run() -> Mapping[str, float]:
        return {"entries": float(found.radius_neighbors_graph(mode="distance").nnz)}

    return run


def neighbours_nearest(k: int, top: int) -> Measured:
    """Prepare scikit-learn's kneighbors_graph by cosine distance."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=top, metric="cosine", n_jobs=2).fit(unit_rows(k, RANK))

    def run() -> Mapping[str, float]:
        return {"entries": float(found.kneighbors_graph(mode="distance").nnz)}

    return run


def update(k: int, source: str) -> Measured:
    """Prepare streaming updates of wins and plays from one of the sources."""
    from fieldcorr.correlation.sources import (
        CorrelationSource,
        EmbeddingSource,
        NeighbourSource,
        RowSource,
        Tally,
    )
    from fieldcorr.correlation.tiles import correlation_rows

    z = unit_rows(k, RANK)
    if source == "embedding":
        arms: CorrelationSource = EmbeddingSource(z)
    elif source == "rows":
        arms = RowSource(correlation_rows(z, 0, k))
    else:
        arms = NeighbourSource.from_csr(*csr_neighbours(z))
    tally = Tally.zeros(k)
    arms.add(tally, 0, 1)

    def run() -> Mapping[str, float]:
        tally.clear()
        for n in range(UPDATES):
            arms.add(tally, n, n + 1)
        return {"wins": float(tally.all_wins.sum())}

    return run


def update_numpy(k: int) -> Measured:
    """Prepare the same updates by the definition in NumPy, two rows at a time."""
    from fieldcorr.correlation.rule import kappa_tau_reference
    from fieldcorr.correlation.tiles import correlation_rows

    r = correlation_rows(unit_rows(k, RANK), 0, k)

    def run() -> Mapping[str, float]:
        wins = np.zeros(k)
        for n in range(UPDATES):
            # The definition takes a matrix; two rows of it are all that it reads.
            pair = r[n : n + 2].copy()
            pair[:, [0, n]] = pair[:, [n, 0]]
            pair[:, [1, n + 1]] = pair[:, [n + 1, 1]]
            kappa, _ = kappa_tau_reference(pair, 0, 1)
            wins += kappa
        return {"wins": float(wins.sum())}

    return run


def magnitudes(k: int) -> NDArray[np.float64]:
    """Return the unit rows of |E| for k random tripoles of 16 point sources beside a cord."""
    from fieldcorr.correlation.embedding import embedding_from_features

    rng = np.random.default_rng(3)
    points = rng.uniform((-5, -5, -30), (5, 3, 30), (FEATURES, 3))
    sources = np.array([[x, 7.0, z] for x in (-2.5, 2.5) for z in np.linspace(-20, 20, 8)])
    away = points - sources[:, None]
    field = away / np.linalg.norm(away, axis=2)[..., None] ** 3
    currents = np.zeros((k, 16))
    for row in currents:
        row[rng.permutation(16)[:3]] = rng.permutation([1.0, -0.5, -0.5])
    flat = (currents @ field.reshape(16, -1)).reshape(k, FEATURES, 3)
    return embedding_from_features(np.sqrt((flat**2).sum(axis=2)), np.ones(FEATURES))


def features_fieldcorr(k: int) -> Measured:
    """Prepare r of |E|: fewer columns first, then rows of r."""
    from fieldcorr.correlation.compress import compress_embedding
    from fieldcorr.correlation.tiles import correlation_rows

    z, out = magnitudes(k), np.zeros((k, k), np.float32)
    correlation_rows(compress_embedding(z[:100], tolerance=1e-2), 0, 16, out[:16, :100].copy())

    def run() -> Mapping[str, float]:
        short = compress_embedding(z, tolerance=1e-5)
        correlation_rows(short, 0, k, out)
        return {"r[0, 1]": float(out[0, 1]), "columns": float(short.shape[1])}

    return run


def features_blas(k: int, kind: str) -> Measured:
    """Prepare the product of all features by BLAS."""
    z = magnitudes(k).astype(kind)
    out = np.zeros((k, k), kind)

    def run() -> Mapping[str, float]:
        np.matmul(z, z.T, out=out)
        return {"r[0, 1]": float(out[0, 1])}

    return run


def count_rules() -> Measured:
    """Prepare counting the configurations of the bundled array whose groups hang together."""
    from fieldcorr.configurations.rules import ContactGrid, count
    from fieldcorr.model import Rules, load_model

    model = load_model("lumbosacral-565")
    contacts = ContactGrid(model.electrode_names, model.electrode_positions_m)
    table = {"preset": "all", "connected": ["cathodes", "anodes"]}
    rules, small = Rules.model_validate(table), Rules.model_validate(table | {"active_max": 2})
    count(small, contacts)

    def run() -> Mapping[str, float]:
        return {"configurations": float(count(rules, contacts))}

    return run
