"""The update rule: what a duel tells about every arm, and the options of that rule.

:func:`kappa_tau_reference` is the definition in plain NumPy, slow, short and obvious; the kernels
in :mod:`fieldcorr.correlation.sources` are judged against it.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation import _update_kernels as kernels
from fieldcorr.correlation.numbers import real_number
from fieldcorr.errors import CorrelationError


@dataclass(frozen=True, kw_only=True)
class UpdatePolicy:
    """Options of the update of all arms k after arm i has won against arm j.

    With r~ = min(1, max(r, floor)) the rule (Eqs. 5 and 6 of the CorrDuel paper) is ::

        tau_k   = (r~_ik + r~_jk) / (1 + r~_ij)
        kappa_k = tau_k log r~_jk / (log r~_ik + log r~_jk)

    where kappa is added to the wins and tau to the plays of arm k. The share of kappa in tau is 1/2
    where both logarithms vanish (k a duplicate of i and of j; the printed rule has 0 / 0 there),
    and r above 1, which only rounding makes, is read as 1.

    Parameters
    ----------
    floor : float
        Least value of r~, in (0, 1). A negative or missing r is read as this. Without it an arm
        close to the winner and unrelated to the loser, the most informative case, gets nothing.
        -1 reads r as it is and needs ``require_positive``, since log r must exist.
    clip : bool
        Whether tau is limited to 1. The printed tau reaches sqrt(2 / (1 + r_ij)) for an arm between
        i and j, and so counts one duel as more than one.
    require_positive : bool
        Whether only arms with r_ik > 0 and r_jk > 0 are updated, as printed.
    pin_duelled : bool
        Whether the duelled arms always get (kappa, tau) = (1, 1) and (0, 1). The printed guard
        skips both of them when r_ij <= 0, although the paper requires these very values.
    """

    floor: float = 0.01
    clip: bool = True
    require_positive: bool = False
    pin_duelled: bool = True

    def __post_init__(self) -> None:
        """Refuse values without meaning."""
        object.__setattr__(self, "floor", real_number(self.floor, "floor", CorrelationError))
        for name in ("clip", "require_positive", "pin_duelled"):
            if not isinstance(getattr(self, name), bool):
                raise CorrelationError(f"{name}: {getattr(self, name)!r} is not true or false")
        if not -1.0 <= self.floor < 1.0:
            raise CorrelationError(f"floor = {self.floor}: must be at least -1 and below 1")
        if self.floor <= 0.0 and not self.require_positive:
            raise CorrelationError(
                f"floor = {self.floor}: must be above 0 unless require_positive is set, "
                "because the rule takes the logarithm of r"
            )

    @classmethod
    def paper(cls) -> Self:
        """Return the rule exactly as printed: raw r, raw tau, arms with both r positive only."""
        return cls(floor=-1.0, clip=False, require_positive=True, pin_duelled=False)

    def as_rule(self, *, tie: bool = False) -> kernels.Rule:
        """Return the options as the numbers that kernels take."""
        return kernels.Rule(
            floor=self.floor,
            cap=1.0 if self.clip else np.inf,
            need=0.0 if self.require_positive else -np.inf,
            pin=float(self.pin_duelled),
            tie=float(tie),
        )


DEFAULT = UpdatePolicy()


def kappa_tau_reference(
    r: ArrayLike, winner: int, loser: int, *, policy: UpdatePolicy = DEFAULT
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (kappa, tau), each (K,), after ``winner`` (i) has won against ``loser`` (j).

    They are added to the wins and to the plays of each arm, by the equations of
    :class:`UpdatePolicy`. ``r`` (K, K) is rounded to float32 first, as in a store.
    """
    stored = np.asarray(r).astype(np.float32).astype(np.float64)
    shaped = np.clip(stored, policy.floor, 1.0)
    x, y, pair = shaped[winner], shaped[loser], shaped[winner, loser]
    touched = np.ones(len(x), bool)
    if policy.require_positive:
        touched = (stored[winner] > 0) & (stored[loser] > 0)

    tau = np.where(touched, (x + y) / (1.0 + pair), 0.0) if pair > -1.0 else np.zeros(len(x))
    if policy.clip:
        tau = np.minimum(1.0, tau)
    log_x, log_y = np.log(np.where(touched, x, 1.0)), np.log(np.where(touched, y, 1.0))
    total = log_x + log_y
    share = np.where(total < 0.0, log_y / np.where(total < 0.0, total, 1.0), 0.5)
    kappa = share * tau

    if policy.pin_duelled:
        kappa[winner], tau[winner] = 1.0, 1.0
        kappa[loser], tau[loser] = 0.0, 1.0
    return kappa, tau


def log_table(r: NDArray[np.float32], policy: UpdatePolicy) -> NDArray[np.float64]:
    """Return log2 of r~ for a matrix of r, never positive; 1 marks entries the rule leaves out.

    The logarithms are most of the cost of an update, and a simulation needs them many times.
    """
    logs = np.empty(r.shape)
    kernels.fill_logs(policy.as_rule(), r, logs)
    return logs
