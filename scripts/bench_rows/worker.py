"""Measure one task in this process and print its figures as one line of JSON.

The task comes as JSON on the command line; the figures are seconds, memory and its own.
"""

import importlib
import json
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench_rows import Measured

MEBI = 1024.0
Clocks = tuple[float, float]
"""Wall and processor seconds of one run."""


def _status(key: str) -> float:
    """Return a memory figure of this process in MiB from the kernel (VmRSS, VmHWM)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return float(line.split()[1]) / MEBI
    raise KeyError(key)


def _reset_peak() -> bool:
    """Set the peak of this process back to what it holds now; False where the kernel refuses."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _first_run(measured: Measured) -> tuple[Clocks, float, Mapping[str, float]]:
    """Return clocks, MiB of growth and figures of the first run."""
    before = _status("VmRSS")
    reset = _reset_peak()
    clocks, figures = _timed(measured)
    peak = _status("VmHWM") if reset else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBI
    return clocks, max(0.0, peak - before), figures


def _timed(measured: Measured) -> tuple[Clocks, Mapping[str, float]]:
    """Return clocks and figures of one run; processes that it starts and ends are counted."""
    wall, processor = time.perf_counter(), _processor()
    figures = measured()
    return (time.perf_counter() - wall, _processor() - processor), figures


def _processor() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main(text: str) -> None:
    """Prepare, run and print."""
    task = json.loads(text)
    module, function = task["prepare"].split(":")
    prepare = getattr(importlib.import_module(f"bench_rows.{module}"), function)
    measured: Measured = prepare(**task["arguments"])
    first, growth, figures = _first_run(measured)
    runs = [first, *(_timed(measured)[0] for _ in range(task["repeat"] - 1))]
    wall, processor = zip(*runs, strict=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBI
    result = {
        "best": min(wall),
        "median": median(wall),
        "cpu": min(processor),
        "extra_mb": growth,
        "peak_mb": peak,
        "figures": dict(figures),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
