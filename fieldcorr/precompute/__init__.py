"""The batch: a model file in, a store out.

What flows in: a model. What flows out: a finished store. ``plan`` counts, ``fields`` solves or
takes from the ``cache``, ``embed`` turns lead fields into unit vectors, ``estimate`` says how sure
r is, ``content`` records, ``batch`` puts the stages in order.
"""

import sys
from types import ModuleType
from typing import Any

from fieldcorr.precompute.batch import precompute
from fieldcorr.precompute.plan import Plan, plan_batch

__all__ = ["Plan", "plan_batch", "precompute"]


class _CallableModule(ModuleType):
    """Lets ``fieldcorr.precompute(...)`` work after this module has been imported.

    Importing a submodule binds its name in the package, where the function of the same name is
    expected.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return precompute(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
