"""Whether r of the whole space is r: against the definition, the listed path and brute force.

At full size, on the bundled model: what the tests show on small spaces. Prints one table, and
writes it to ``results/whole/agreement.md``.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from build_meshes import SIZES

from fieldcorr import CorrDuel, build_mesh, load_model, open_store, precompute, write_mesh
from fieldcorr.batch import plan
from fieldcorr.correlation import _tree_kernels as tree
from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel import Engine, Session, read_session
from fieldcorr.model import Model
from fieldcorr.store import Store

RESULTS = Path(__file__).resolve().parent.parent.parent / "results" / "whole"
DRIVES = ("voltage", "current")
PAIRS = 100_000
Line = tuple[str, str]
"""What was compared, and what was found."""


def stores(name: str, model: Model, mesh: str = "standard") -> tuple[Store, Store]:
    """Return the stores of a model, listed by its rules, and of all its configurations."""
    listed, whole = RESULTS / f"{name}-listed.h5", RESULTS / f"{name}-whole.h5"
    options: dict[str, Any] = {"mesh": mesh, "estimate": False, "slim": True}
    if not listed.exists():
        precompute(model, listed, **options).close()
    if not whole.exists():
        most = plan.MOST_LISTED
        plan.MOST_LISTED = 0  # small spaces take the path of large ones
        try:
            every = model.replace({"configurations.preset": "all"})
            precompute(every, whole, **options).close()
        finally:
            plan.MOST_LISTED = most
    return open_store(listed), open_store(whole)


def members_of(source: WholeSource, rows: Any) -> tree.Members:
    """Return some rows, ascending, as members: r of them alone is computed."""
    space = source.whole.space
    blocks = np.searchsorted(space.offsets, rows, side="right") - 1
    leaves = [
        space.lists[space.heads.kind[p]][row - space.offsets[p]]
        for p, row in zip(blocks, rows, strict=True)
    ]
    offsets = np.searchsorted(blocks, np.arange(len(space.offsets))).astype(np.int64)
    return source.whole.all._replace(offsets=offsets, listed=np.array(leaves, dtype=np.uint16))


def on_listed(listed: Store, whole: Store) -> float:
    """Return the largest difference of r among all listed configurations."""
    source = whole.source
    rows = whole.space.rows(listed.polarity[:])
    assert (rows >= 0).all()
    order = np.argsort(rows)
    members, back = members_of(source, rows[order]), np.argsort(order)
    worst = 0.0
    for start in range(0, len(listed), 240):
        stop = min(start + 240, len(listed))
        r = source.whole.r(listed.polarity[start:stop], members)[:, back]
        r[np.arange(stop - start), np.arange(start, stop)] = 1.0
        worst = max(worst, float(np.abs(r - listed.rows(start, stop)).max()))
    dense = source.row(int(rows[0]))[rows[order]]
    few = source.whole.r(listed.polarity[:1], members)[0]
    few[back[0]] = 1.0
    np.testing.assert_array_equal(dense, few)
    return worst


def on_pairs(whole: Store) -> tuple[float, float]:
    """Return the largest error of r of random pairs, and the largest sum of r and mirrored r."""
    rng, gram = np.random.default_rng(1), whole.gram
    worst = mirrored = 0.0
    for arm in rng.integers(len(whole), size=20).tolist():
        others = rng.integers(len(whole), size=PAIRS // 20)
        row, a = whole.row(arm), whole.current[np.r_[arm, others]]
        lead = np.einsum("ke,ef->kf", a, gram)
        norm = np.sqrt(np.einsum("kf,kf->k", lead, a))
        want = np.einsum("kf,f->k", lead, a[0]) / norm / norm[0]
        worst = max(worst, float(np.abs(row[others] - want[1:]).max()))
        mirror = whole.space.rows(-whole.polarity[others])
        both = row[mirror] + row[others]
        mirrored = max(mirrored, float(np.abs(both[mirror >= 0]).max(initial=0.0)))
    return worst, mirrored


def nearest_is_brute_force(whole: Store) -> bool:
    """Tell whether the 100 nearest of an arm are those of its sorted row."""
    arm = len(whole) // 3
    row = whole.row(arm)
    row[arm] = -2.0
    best = np.argpartition(-row, 200)[:200]
    order = best[np.lexsort((best, -row[best]))][:100]
    found, r = whole.nearest(arm, 100)
    return np.array_equal(found, order) and np.array_equal(r, row[order])


class Dense:
    """A duel that keeps all arms to the end: a mask, and a tally of everyone."""

    def __init__(self, engine: CorrDuel, source: WholeSource) -> None:
        self.source, self.tally, self.policy = source, source.tally(), engine.options.policy
        self.active = np.ones(len(source), dtype=np.bool_)
        self.log_term = np.float32(engine.options.choices.log_term)

    def tell(self, winner: int, loser: int) -> None:
        """Update everyone, and take the dominated out of the mask."""
        self.source.add(self.tally, winner, loser, policy=self.policy)
        known = self.tally.plays > 0.0
        safe = np.where(known, self.tally.plays, np.float32(1.0))
        estimate = np.where(known, self.tally.wins / safe, np.float32(0.5))
        radius = np.where(known, np.sqrt(self.log_term / safe), np.float32(1.0))
        floor = (estimate - radius)[self.active].max()
        self.active &= estimate + radius > floor


def duels_agree(whole: Store, duels: int) -> tuple[int, bool]:
    """Play with survivor lists and densely; return the survivors and whether undo undoes.

    Every duel the sets are compared, every twentieth all bits of the tallies.
    """
    source = whole.source
    rng, wanted = np.random.default_rng(5), np.random.default_rng(6).standard_normal(16)
    engine = CorrDuel(whole, horizon=duels + 1, seed=1, patience=0)
    dense = Dense(engine, source)
    for number in range(duels):
        pair = engine.ask()
        value = whole.current[list(pair)] @ whole.gram @ wanted
        told = pair if rng.random() < 1.0 / (1.0 + np.exp(value[1] - value[0])) else pair[::-1]
        engine.tell(*told)
        dense.tell(*told)
        np.testing.assert_array_equal(engine._active, dense.active)
        if number % 20 == 19:
            for own, other in zip(
                _bits(engine), (dense.tally.wins, dense.tally.plays), strict=True
            ):
                np.testing.assert_array_equal(own, other[dense.active])
    left, wins, plays = len(engine.survivors), *map(np.copy, _bits(engine))
    engine.tell(*engine.ask())
    changed = not np.array_equal(plays, _bits(engine)[1])
    engine.undo()
    undone = np.array_equal(wins, _bits(engine)[0]) and np.array_equal(plays, _bits(engine)[1])
    return left, changed and undone and np.array_equal(engine._active, dense.active)


def sessions_agree(whole: Store, kind: str, answers: int) -> bool:
    """Tell whether undo, exclusions and replay of a session are what they should be.

    A session with an answer taken back, a contact excluded and readmitted, and one excluded for
    good is compared with one that was told only what counts, and with the replay of its journal.
    """
    path = RESULTS / "session.journal"
    path.unlink(missing_ok=True)
    wanted = np.random.default_rng(6).standard_normal(16)

    def answer(engine: Engine) -> None:
        value = whole.current[list(engine.ask())] @ whole.gram @ wanted
        engine.answer("left" if value[0] > value[1] else "right")

    with Session.new(path, whole, horizon=100, seed=3, algorithm=kind) as session:
        engine = session.engine
        plain = type(engine)(whole, horizon=100, seed=3)
        plain.exclude_contact(11)
        for number in range(answers):
            if number == answers // 2:
                answer(engine)
                engine.undo()
                engine.exclude_contact(5, -1)
                engine.include_contact(5, -1)
                engine.exclude_contact(11)
                # What was asked before contact 11 was excluded had been asked with it.
                for event in engine.history:
                    plain.record(event)
            answer(engine)
            if number >= answers // 2:
                answer(plain)
        replayed, _ = read_session(path, whole)
        found = [
            (e.ask(), e.best, e.survivors[:20].arm.tolist(), e.progress.left, e.warning)
            for e in (engine, plain, replayed)
        ]
    return found[0] == found[1] == found[2]


def _bits(engine: CorrDuel) -> tuple[Any, Any]:
    return engine._learnt.tally.wins, engine._learnt.tally.plays


def eight_contacts() -> tuple[Model, str]:
    """Return a model with a paddle of two columns of four contacts, and a coarse mesh of it."""
    head = (
        'format = 1\nname = "paddle-8"\ndescription = "two columns of four"\nsource = "example"\n'
        "[paddle]\nlength_mm = 44.0\nwidth_mm = 8.0\nthickness_mm = 2.0\n"
        "[contact]\nlength_mm = 3.0\nwidth_mm = 2.0\n"
    )
    places = [(left, 13.5 - 9.0 * row) for left in (2.0, -2.0) for row in range(4)]
    contact = '[[contacts]]\nname = "{}"\nleft_mm = {}\nrostral_mm = {}\n'
    device, mesh = RESULTS / "paddle-8.toml", RESULTS / "paddle-8.fcmesh"
    device.write_text(head + "".join(contact.format(n, *p) for n, p in enumerate(places)))
    changes = {"array.device": str(device), "configurations.preset": "all"}
    model = load_model("lumbosacral-565").replace(changes)
    if not mesh.exists():
        write_mesh(build_mesh(model, sizes=SIZES["tiny"]), mesh)
    return model, str(mesh)


def lines(duels: int) -> Iterator[Line]:
    """Yield every comparison as it is finished."""
    bundled = load_model("lumbosacral-565")
    for drive in DRIVES:
        listed, whole = stores(drive, bundled.replace({"drive.mode": drive}))
        with listed, whole:
            yield (
                f"r of all {len(listed):,} x {len(listed):,}, listed path, {drive}",
                _small(on_listed(listed, whole)),
            )
            worst, mirrored = on_pairs(whole)
            yield f"r of {PAIRS:,} random pairs, definition, {drive}", _small(worst)
            yield f"r + r of the mirrored polarity, {PAIRS:,} pairs, {drive}", _small(mirrored)
            equal = nearest_is_brute_force(whole)
            yield f"100 nearest, sorted row, {drive}", "equal" if equal else "DIFFERENT"
            if duels:
                left, undone = duels_agree(whole, duels)
                found = f"equal, {left:,} left; undo {'equal' if undone else 'DIFFERENT'}"
                yield f"{duels} duels, dense tally, {drive}", found
                for kind in ("CorrDuel", "BayesDuel"):
                    equal = sessions_agree(whole, kind, 20)
                    what = "with undo, exclusions, replay, against what counts alone"
                    name = f"{kind}, 20 answers {what}, {drive}"
                    yield name, "equal" if equal else "DIFFERENT"
    for drive in DRIVES:
        model = bundled.replace({"boundary.outer": "case", "drive.mode": drive})
        listed, whole = stores(f"case-{drive}", model)
        with listed, whole:
            worst, _ = on_pairs(whole)
            name = f"r of {PAIRS:,} random pairs of all {len(whole):,} with the case, definition"
            yield f"{name}, {drive}", _small(worst)
    eight, mesh = eight_contacts()
    for outer, drive in product(("insulated", "grounded", "case"), DRIVES):
        model = eight.replace({"boundary.outer": outer, "drive.mode": drive})
        listed, whole = stores(f"eight-{outer}-{drive}", model, mesh)
        with listed, whole:
            found = _small(on_listed(listed, whole))
            name = f"r of all {len(whole):,}, 8 contacts, {outer}, listed path, {drive}"
            yield name, found


def _small(value: float) -> str:
    return f"{value:.1e}"


def main() -> None:
    """Compare everything and print the table."""
    parser = argparse.ArgumentParser(prog="scripts/study agreement", description=__doc__)
    parser.add_argument("--duels", type=int, default=200, help="0 for none (they take minutes)")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    table = ["| compared | largest difference |", "|---|---|"]
    for what, found in lines(options.duels):
        table.append(f"| {what} | {found} |")
        print(f"[{time.process_time():6.0f} CPU s] {what}: {found}", flush=True)
        (RESULTS / "agreement.md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
