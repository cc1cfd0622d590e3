"""The batch: from a model file to a finished store.

Stages: mesh, configurations, lead fields, drive, embedding, error estimate, blocks of rows, file.
Lead fields are kept in a cache, finished blocks of a large batch in the work folder beside the
store; a batch that was interrupted goes on from there and ends in the same bytes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from fieldcorr._parallel import available_threads
from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.batch.cache import Cache, code_hash, default_folder
from fieldcorr.batch.content import companion_values, lead_field_values, texts
from fieldcorr.batch.embed import (
    Floats,
    Signs,
    direct_defect,
    drive_currents,
    embed,
    spread,
    summary,
    within_limits,
)
from fieldcorr.batch.fields import lead_field
from fieldcorr.batch.plan import contacts_of, stores_matrix, unlisted_space
from fieldcorr.batch.sweep_mean import SweepMean
from fieldcorr.cluster import Crew, workers
from fieldcorr.configurations.rules import count, enumerate_configurations
from fieldcorr.configurations.space import ProductSpace
from fieldcorr.configurations.text import configuration_ids
from fieldcorr.errors import ConfigurationError, StoreError
from fieldcorr.leadfield import LeadField
from fieldcorr.mesh import Mesh, load_mesh
from fieldcorr.model import Model, load_model
from fieldcorr.progress import Progress, silent
from fieldcorr.store import Options, Store, WorkFolder, open_store, write_store
from fieldcorr.store.blocks import DEFAULT_MEMORY
from fieldcorr.store.sweeps import SweepStore


def precompute(
    model: Model | str | Path,
    output: str | Path,
    *,
    mesh: str = "standard",
    threshold: float = 0.0,
    top_k: int = 0,
    memory: int = DEFAULT_MEMORY,
    threads: int | None = None,
    force: bool = False,
    slim: bool = False,
    estimate: bool = True,
    sweep: SweepStore | str | Path | None = None,
    weight: Floats | None = None,
    cache: Path | None = None,
    dask: str | None = None,
    progress: Progress = silent,
) -> Store:
    """Compute a store and open it.

    Parameters
    ----------
    model
        A model, or the path or name of one.
    output
        The store to be written; an existing one is refused unless ``force``.
    mesh
        "standard", "companion" or "tiny" of the model, or the path of a mesh.
    threshold
        Neighbours are pairs with r above it.
    top_k
        At most so many neighbours per configuration; 0 for all.
    memory
        Bytes for blocks of rows. The result does not depend on it.
    threads
        Threads; None for all. The result does not depend on it.
    force
        Replace an existing store.
    slim
        Leave out mesh and nodal lead fields.
    estimate
        Estimate the error of r with a companion mesh and with elements of order 1.
    sweep
        A sweep store of the same model: r is then its mean over the samples, and their spread is
        kept. ``weight`` (M,) says how much each sample counts; all the same by default.
    cache
        Folder for solved lead fields; by default that of the user.
    dask
        Who makes the blocks of rows: "local" for processes of their own, as many as ``threads``,
        or the address of a dask scheduler. The result does not depend on it.
    progress
        Called with (stage, share done).
    """
    chosen = model if isinstance(model, Model) else load_model(model)
    options = checked_options(threshold, top_k, memory, threads)
    samples = None if sweep is None else SweepMean(chosen, sweep, weight)
    with (
        WorkFolder(Path(output), force=force) as folder,
        workers(dask, count=threads, progress=progress) as crew,
    ):
        fields = Cache(cache or default_folder(), fallback=folder.fields)
        others = crew if dask else None  # this process needs no files to pass blocks on
        batch = Batch(chosen, mesh, folder, options, slim, estimate, fields, progress, others)
        batch.samples = samples
        batch.run()
    return open_store(output)


def checked_options(threshold: float, top_k: int, memory: int, threads: int | None) -> Options:
    """Check the numbers of a batch at the border."""
    if not -1.0 <= threshold < 1.0:
        raise StoreError(f"threshold = {threshold}: must be at least -1 and below 1")
    if top_k < 0:
        raise StoreError(f"top-k = {top_k}: must not be negative (0 for no limit)")
    if memory < 1 << 24:
        raise StoreError(f"memory = {memory} bytes: at least 16 MiB are needed")
    if threads is not None and threads < 1:
        raise StoreError(f"threads = {threads}: at least 1 is needed")
    return Options(
        threshold=float(threshold), top_k=int(top_k), memory=int(memory), threads=threads
    )


@dataclass(frozen=True, eq=False)
class Solved:
    """Lead fields of a batch: on its mesh, and more coarsely for the estimate."""

    main: LeadField
    companion: LeadField | None
    order_one: LeadField | None
    meshes: dict[str, str]


@dataclass(eq=False)
class Batch:
    """One run from model to store, in a locked work folder; the rest as for :func:`precompute`."""

    model: Model
    mesh: str
    folder: WorkFolder
    options: Options
    slim: bool
    estimate: bool
    cache: Cache
    progress: Progress
    crew: Crew | None = None
    samples: SweepMean | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """Make the store."""
        with self._stage("mesh"):
            mesh, path = load_mesh(self.model, self.mesh)
        with kernel_threads(self.options.threads):
            with self._stage("configurations"):
                contacts = contacts_of(self.model)
                total = count(self.model.rules, contacts)
                chosen: ProductSpace | Signs | None = unlisted_space(self.model, total)
                if chosen is None:
                    chosen = enumerate_configurations(self.model.rules, contacts)
            solved = self._solve(mesh, str(path))
            if isinstance(chosen, ProductSpace):
                values = self._unlisted(chosen, solved)
            else:
                chosen = within_limits(self.model, chosen, solved.main)
                values = self._listed(chosen, solved)
        write_store(
            self.folder,
            values,
            options=replace(self.options, matrix=stores_matrix(len(chosen))),
            key=code_hash(),
            run=self._run_record,
            crew=self.crew,
            progress=self._timed,
        )

    # -- stages -----------------------------------------------------------------------------------

    def _solve(self, mesh: Mesh, name: str) -> Solved:
        meshes = {"main": mesh.hash}
        main = self._lead_field("lead fields", mesh, name)
        companion = order_one = None
        if self.estimate:
            if self.model.solver.order == 2:
                order_one = self._lead_field("order 1", mesh, name, order=1)
            if self.mesh == "standard" and self.model.mesh.companion:
                coarse, coarse_path = load_mesh(self.model, "companion")
                meshes["companion"] = coarse.hash
                companion = self._lead_field("companion", coarse, str(coarse_path))
        return Solved(main, companion, order_one, meshes)

    def _lead_field(
        self, stage: str, mesh: Mesh, name: str, *, order: int | None = None
    ) -> LeadField:
        with self._stage(stage):
            return lead_field(
                self.model,
                mesh,
                name=name,
                cache=self.cache,
                order=order,
                threads=self.options.threads,
                report=lambda done: self.progress(stage, done),
            )

    def _listed(self, polarity: Signs, solved: Solved) -> dict[str, object]:
        """Return what a store of listed configurations (K, E) holds."""
        with self._stage("embedding"):
            current = drive_currents(self.model, polarity, solved.main)
            embedding = embed(self.model, polarity, current, solved.main)
        rows = spread(len(polarity))
        described = self._described(polarity[rows], embedding[rows], solved)
        if self.samples is not None:
            with self._stage("mean over samples"):
                embedding = self.samples.embedding(polarity, self.options.threads)
            described |= self.samples.values()
        return {
            "/configurations/id": configuration_ids(polarity),
            "/configurations/polarity": polarity,
            "/configurations/current": current,
            "/correlation/embedding": embedding,
            **described,
        }

    def _unlisted(self, space: ProductSpace, solved: Solved) -> dict[str, object]:
        """Return what a store holds whose configurations are defined by rules and not listed."""
        if self.samples is not None:
            raise ConfigurationError(
                f"the rules leave {len(space):,} configurations, too many for a mean over samples; "
                "set active_max, cathodes_max or anodes_max"
            )
        with self._stage("embedding"):
            sample = space.polarity(spread(len(space)))
            current = drive_currents(self.model, sample, solved.main)
            embedding = embed(self.model, sample, current, solved.main)
        return {
            "/space/allowed": space.allowed,
            "/space/limits": space.limits,
            **self._described(sample, embedding, solved),
        }

    def _described(self, sample: Signs, embedding: Floats, solved: Solved) -> dict[str, object]:
        """Return lead fields and provenance; the sample (k, E) and its unit rows stand for all."""
        identities = dict(solved.main.identities)
        estimate = None
        if self.estimate:
            with self._stage("error estimate"):
                estimate = self._estimate(sample, embedding, solved)
                if solved.order_one is not None:
                    identities |= direct_defect(self.model, solved.order_one, sample, self.cache)
        return {
            **lead_field_values(self.model, solved.main, slim=self.slim),
            **companion_values(self.model, solved.companion),
            **texts(
                self.model,
                self.options,
                solved.main,
                meshes=solved.meshes,
                identities=identities,
                estimate=estimate,
                sweep=None if self.samples is None else self.samples.record(),
            ),
        }

    def _estimate(self, sample: Signs, embedding: Floats, solved: Solved) -> dict[str, object]:
        def other(field: LeadField | None) -> Floats | None:
            if field is None:
                return None
            return embed(self.model, sample, drive_currents(self.model, sample, field), field)

        companion, order_one = other(solved.companion), other(solved.order_one)
        return summary(embedding, companion=companion, order_one=order_one)

    # -- progress and time ------------------------------------------------------------------------

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._timed(name, 0.0)
        yield
        self._timed(name, 1.0)

    def _timed(self, stage: str, done: float) -> None:
        """Report a stage, and record the time since it was first reported."""
        now = time.perf_counter()
        self._began.setdefault(stage, now)
        self.seconds[stage] = now - self._began[stage]
        self.progress(stage, done)

    def _run_record(self) -> dict[str, object]:
        """Return the one record that differs between two runs of the same batch."""
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "threads": self.options.threads or available_threads(),
            "memory_bytes": self.options.memory,
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }
