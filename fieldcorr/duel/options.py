"""Options of CorrDuel: what the paper leaves open, one name for each choice.

What flows in: values from Python, a TOML file or a journal. What flows out: a frozen, checked
:class:`DuelOptions`; its defaults are the reading of the paper that converges, and
:meth:`DuelOptions.paper` is the listing exactly as printed.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from fieldcorr.correlation.policy import UpdatePolicy
from fieldcorr.errors import CorrelationError, DuelError


@dataclass(frozen=True, kw_only=True)
class DuelOptions:
    """How CorrDuel reads its own listing.

    Attributes
    ----------
    delta : float in (0, 1)
        Sets the confidence radius c(n) = sqrt(log(1/delta) / n). The paper calls delta "the
        confidence", and values near 0.9 are what works: read as a failure probability (0.1), the
        radius is so wide that nothing is eliminated in hundreds of duels. 0.9 carries no guarantee:
        in simulated runs the best arm was still in the set in 30 to 61 % of the cases.
    eliminate : {"all", "one"}
        Remove every dominated arm after a duel, or only the worst one. The listing removes one
        (Algorithm 3, lines 8-10), at most T of K arms in T duels, and then does not converge; the
        text ("the inferior arm is eliminated") describes all.
    history : {"keep", "delete"}
        Whether duels against an eliminated arm still count. The listing deletes them (line 9); most
        of what was learnt about the survivors came from those duels.
    radius : {"arm", "global"}
        Each arm has the radius of its own count n_b, or all have that of the least count n*
        (Algorithm 2, lines 6-7). On an electrode space some arm always has a count near zero, so
        the global radius stays too wide.
    floor, clip, require_positive, pin_duelled
        The update rule, see :class:`fieldcorr.correlation.policy.UpdatePolicy`. The paper's own
        condition 0 <= kappa <= tau <= 1 needs ``clip`` and ``pin_duelled``; its guard
        (``require_positive``) leaves out the arms that resemble only one of the two, which are the
        most informative.
    chain : bool
        Ask for comparisons of the configuration that was just tried with one new configuration:
        one trial per duel instead of two.
    """

    delta: float = 0.9
    eliminate: Literal["all", "one"] = "all"
    history: Literal["keep", "delete"] = "keep"
    radius: Literal["arm", "global"] = "arm"
    floor: float = 0.01
    clip: bool = True
    require_positive: bool = False
    pin_duelled: bool = True
    chain: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range, once."""
        for name, hint in get_type_hints(DuelOptions).items():
            _check_type(name, getattr(self, name), hint)
        if not 0.0 < self.delta < 1.0:
            raise DuelError(f"option delta: {self.delta!r} is not between 0 and 1 (both excluded)")
        try:
            self.policy  # noqa: B018 - built once here so that a bad combination is named at once
        except CorrelationError as error:
            raise DuelError(f"option {error}") from error

    @classmethod
    def paper(cls, *, delta: float = 0.95) -> "DuelOptions":
        """Return the options that run the listing exactly as printed."""
        return cls(
            delta=delta,
            eliminate="one",
            history="delete",
            radius="global",
            **asdict(UpdatePolicy.paper()),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "DuelOptions":
        """Build options from a mapping, refusing names that do not exist."""
        known = [field.name for field in fields(cls)]
        for name in record:
            if name not in known:
                raise DuelError(f"option {name!r} does not exist; known are {', '.join(known)}")
        return cls(**record)

    def record(self) -> dict[str, Any]:
        """Return the options as plain values, for a journal."""
        return asdict(self)

    @property
    def log_term(self) -> float:
        """log(1/delta), the constant of the confidence radius."""
        return math.log(1.0 / self.delta)

    @property
    def policy(self) -> UpdatePolicy:
        """The part of the options that CorrUpdate needs."""
        return UpdatePolicy(
            floor=self.floor,
            clip=self.clip,
            require_positive=self.require_positive,
            pin_duelled=self.pin_duelled,
        )


def _check_type(name: str, value: Any, hint: Any) -> None:
    choices = get_args(hint)
    if choices and value not in choices:
        raise DuelError(f"option {name}: {value!r} is not one of {', '.join(map(str, choices))}")
    if hint is bool and not isinstance(value, bool):
        raise DuelError(f"option {name}: {value!r} is not true or false")
    if hint is float and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DuelError(f"option {name}: {value!r} is not a number")
