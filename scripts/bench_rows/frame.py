"""Run the rows of the benchmark and print one table.

The markdown table goes to the standard output and to ``results/bench.md``, all figures to
``results/bench.json``. Own task and peers take turns, round
after round, so that a noisy minute hits all of them.
"""

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import bench_rows
from bench_rows import Row, Task

SCRIPTS = Path(__file__).resolve().parent.parent
RESULTS = SCRIPTS.parent / "results"
Figures = dict[str, object]


def row_modules(only: list[str]) -> list[str]:
    """Return the names of the row modules, in alphabetical order."""
    names = [module.name for module in pkgutil.iter_modules(bench_rows.__path__)]
    return [n for n in names if _has_rows(n) and (not only or n in only)]


def _has_rows(name: str) -> bool:
    """Tell whether a module of the folder defines rows, without importing it."""
    return "\ndef rows(" in (SCRIPTS / "bench_rows" / f"{name}.py").read_text()


def run_task(task: Task) -> Figures:
    """Measure one task in its own process; a failure becomes an ``error`` figure."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = _environment(task, scratch)
        if task.prepare.startswith("command:"):
            return _run_command(task, environment)
        command = [sys.executable, "-m", "bench_rows.worker", json.dumps(asdict(task))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": _last_line(done.stderr, done.returncode)}
    figures: Figures = json.loads(lines[-1])
    return figures


def _environment(task: Task, scratch: str) -> dict[str, str]:
    """Return the environment of a task: thread counts, import path, its own variables."""
    count = str(task.threads)
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    path = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent)])
    own = {key: value.replace("{scratch}", scratch) for key, value in task.environment.items()}
    fixed = {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": path, "TMPDIR": scratch}
    return {**os.environ, **dict.fromkeys(names, count), **fixed, **own}


def _run_command(task: Task, environment: Mapping[str, str]) -> Figures:
    """Time ``python -c`` from start to end, with the peak memory of that process."""
    command = [sys.executable, "-c", task.prepare.removeprefix("command:")]
    seconds, processor, peak = [], [], 0.0
    for _ in range(task.repeat):
        with tempfile.TemporaryFile("w+") as errors:
            start = time.perf_counter()
            child = subprocess.Popen(command, env=dict(environment), stderr=errors)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            seconds.append(time.perf_counter() - start)
            errors.seek(0)
            if child.returncode:
                return {"error": _last_line(errors.read(), child.returncode)}
        processor.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024.0)
    memory = {"extra_mb": peak, "peak_mb": peak}
    return {"best": min(seconds), "cpu": min(processor), **memory, "figures": {}}


def _last_line(errors: str, code: int) -> str:
    """Return the last line of what a process complained about."""
    return (errors.strip().splitlines() or [f"exit code {code}"])[-1]


def measure(row: Row, rounds: int) -> list[Figures]:
    """Measure own task and peers in turns (peers of long rows once); return the best of each."""
    tasks = (row.own, *row.peers)
    best: list[Figures] = [{} for _ in tasks]
    for turn in range(rounds):
        for position, task in enumerate(tasks):
            if "error" in best[position] or (row.long and turn and position):
                continue
            found = run_task(task)
            if not best[position] or "error" in found or _best(found) < _best(best[position]):
                best[position] = found
            print(f"  {row.subject}: {task.name}: {_figure(found)}", file=sys.stderr, flush=True)
    return best


def _best(figures: Figures, clock: str = "best") -> float:
    """Return the best time in s by the wall clock ("best") or by processor seconds ("cpu")."""
    return float(str(figures[clock]))


def _figure(figures: Figures, clock: str = "best") -> str:
    """Return "seconds s, growth MB" or the error."""
    if "error" in figures:
        return f"failed: {figures['error']}"
    return f"{_best(figures, clock):.3g} s, {float(str(figures['extra_mb'])):.0f} MB"


def table_lines(row: Row, measured: list[Figures], *, clock: str = "best") -> list[str]:
    """Return the lines of the table for one row.

    Processor seconds say nothing about threads: rows with more than one use the wall clock.
    """
    if any(task.threads > 1 for task in (row.own, *row.peers)):
        clock = "best"
    own = measured[0]
    against = [(p.name, _figure(f, clock), f) for p, f in zip(row.peers, measured[1:], strict=True)]
    if row.budget is not None:
        against.append(("budget", f"{row.budget:g} s", {clock: row.budget}))
    lines = []
    for name, figure, peer in against:
        ratio = "-"
        if "error" not in own and "error" not in peer:
            ratio = f"{row.scale * _best(peer, clock) / _best(own, clock):.2f}"
        wanted = 1.0 if name == "budget" else row.aim  # a budget is there to be kept
        aim = "" if row.aim is None else f">= {wanted:.3g}"
        cells = (row.subject, _figure(own, clock), name, figure, ratio, aim)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Measure every row and print the table."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="row modules, such as fe correlation")
    parser.add_argument("--match", default="", help="only rows whose subject contains this text")
    parser.add_argument("--rounds", type=int, default=2, help="turns of every task (default 2)")
    parser.add_argument("--quick", action="store_true", help="leave out the long rows")
    parser.add_argument(
        "--cpu", action="store_true", help="processor seconds in one-thread rows (busy machines)"
    )
    options = parser.parse_args()
    clock = "cpu" if options.cpu else "best"
    lines = [
        "| what | fieldcorr | against | it takes | ratio | aim |",
        "|---|---|---|---|---|---|",
    ]
    record = []
    for name in row_modules(options.only):
        for row in importlib.import_module(f"bench_rows.{name}").rows():
            if (options.quick and row.long) or options.match not in row.subject:
                continue
            measured = measure(row, options.rounds)
            lines += table_lines(row, measured, clock=clock)
            record.append({"row": asdict(row), "measured": measured})
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench.json").write_text(json.dumps(record, indent=1))
    (RESULTS / "bench.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
