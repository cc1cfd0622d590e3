"""How a duel is read: the options of the update rule, each with one name and one reason.

What flows in: nothing. What flows out: :class:`UpdatePolicy`, used by every form of the rule.
"""

from dataclasses import dataclass
from typing import Self

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
