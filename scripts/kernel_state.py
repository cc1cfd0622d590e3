"""Print a hash of what compiled kernels depend on: their files, versions, settings, the processor.

tests/test_architecture.py holds that every compiled function is in a kernel file.
"""

import hashlib
import os
import sys
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm

PACKAGE = Path(__file__).resolve().parent.parent / "fieldcorr"


def kernel_state() -> str:
    """Return the hash."""
    state = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("_*kernels.py")):
        state.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    made_by = [sys.version, *(version(name) for name in ("numba", "llvmlite", "numpy"))]
    # numba's cache does not look at them: kernels compiled with NUMBA_BOUNDSCHECK stay so.
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    settings.pop("NUMBA_CACHE_DIR", None)
    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    state.update(repr((made_by, sorted(settings.items()), processor)).encode())
    return state.hexdigest()[:16]


if __name__ == "__main__":
    print(kernel_state())
