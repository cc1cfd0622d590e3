"""The batch: a model file in, a store out.

``plan`` counts, ``fields`` solves or takes from the ``cache``, ``embed`` turns lead fields into
unit vectors and says how sure r is, ``content`` records, ``run`` puts all in order.
"""

from fieldcorr.batch.plan import Plan, plan_batch
from fieldcorr.batch.run import precompute

__all__ = ["Plan", "plan_batch", "precompute"]
