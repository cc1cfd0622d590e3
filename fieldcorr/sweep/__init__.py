"""Sweeps: how sure r is, given what is not known exactly of a patient.

``file`` reads which keys of a model vary and how, ``distributions`` and ``design`` turn that into
samples, ``solve`` into circuits, ``run`` into a sweep store; ``analysis`` says what is in it, and
``calibration`` weights its samples by measured impedances.
"""

from fieldcorr.sweep.file import Sweep, load_sweep
from fieldcorr.sweep.run import run_sweep

__all__ = ["Sweep", "load_sweep", "run_sweep"]
