"""The options of CorrDuel: its defaults are the reading of the paper that converges.

:meth:`DuelOptions.paper` is the listing exactly as printed. In a journal, on the command line and
as keywords of the engine, the options of the update rule stand beside the others.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args, get_type_hints

from fieldcorr.correlation.numbers import real_number, whole_number
from fieldcorr.correlation.rule import UpdatePolicy
from fieldcorr.duel._kernels import Choices
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
        in simulated runs the best arm was still in the set in about half of the cases.
    patience : int
        Number of answers before which nothing is eliminated. By default the least n at which one
        contrary answer cannot move an estimate out of its own interval, n / (n + 1)^2 <= c(1)^2: 8
        for delta = 0.9. Without it, the first answer alone removed a third of the set.
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
    policy : UpdatePolicy
        The update rule. The paper's own condition 0 <= kappa <= tau <= 1 needs ``clip`` and
        ``pin_duelled``; its guard (``require_positive``) leaves out the arms that resemble only one
        of the two, which are the most informative.
    chain : bool
        Ask for comparisons of the configuration that was just tried with one new configuration:
        one trial per duel instead of two.
    """

    delta: float = 0.9
    patience: int | None = None
    eliminate: Literal["all", "one"] = "all"
    history: Literal["keep", "delete"] = "keep"
    radius: Literal["arm", "global"] = "arm"
    policy: UpdatePolicy = UpdatePolicy()  # noqa: RUF009 - frozen, so one will do for all
    chain: bool = False

    def __post_init__(self) -> None:
        """Refuse values outside their range, once."""
        object.__setattr__(self, "delta", real_number(self.delta, "option delta", DuelError))
        if not 0.0 < self.delta < 1.0:
            raise DuelError(f"option delta: {self.delta!r} is not between 0 and 1 (both excluded)")
        if self.patience is None:
            object.__setattr__(self, "patience", steady_count(self.delta))
        object.__setattr__(
            self, "patience", whole_number(self.patience, "option patience", DuelError)
        )
        hints = get_type_hints(DuelOptions)
        for name in ("eliminate", "history", "radius"):
            value, choices = getattr(self, name), get_args(hints[name])
            if value not in choices:
                raise DuelError(f"option {name}: {value!r} is not one of {', '.join(choices)}")
        if not isinstance(self.policy, UpdatePolicy):
            raise DuelError(f"option policy: {self.policy!r} is not an UpdatePolicy")
        if not isinstance(self.chain, bool):
            raise DuelError(f"option chain: {self.chain!r} is not true or false")

    @classmethod
    def paper(cls, *, delta: float = 0.95) -> "DuelOptions":
        """Return the options that run the listing exactly as printed."""
        return cls(
            delta=delta,
            patience=0,
            eliminate="one",
            history="delete",
            radius="global",
            policy=UpdatePolicy.paper(),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "DuelOptions":
        """Build options from a flat mapping, refusing names that do not exist."""
        rule = [field.name for field in fields(UpdatePolicy)]
        own = [field.name for field in fields(cls) if field.name != "policy"]
        for name in record:
            if name not in own + rule:
                known = ", ".join(own + rule)
                raise DuelError(f"option {name!r} does not exist; known are {known}")
        try:
            policy = UpdatePolicy(**{name: record[name] for name in rule if name in record})
        except CorrelationError as error:
            raise DuelError(f"option {error}") from error
        return cls(**{name: record[name] for name in own if name in record}, policy=policy)

    def record(self) -> dict[str, object]:
        """Return the options as one flat mapping of plain values, for a journal."""
        record = asdict(self)
        chain, policy = record.pop("chain"), record.pop("policy")
        return {**record, **policy, "chain": chain}

    @property
    def log_term(self) -> float:
        """log(1/delta), the constant of the confidence radius."""
        return math.log(1.0 / self.delta)

    @cached_property
    def choices(self) -> Choices:
        """The options as the numbers that kernels take."""
        rule = self.policy.as_rule()
        return Choices(
            log_term=self.log_term,
            per_arm=float(self.radius == "arm"),
            everyone=float(self.eliminate == "all"),
            keep=float(self.history == "keep"),
            chain=float(self.chain),
            patience=float(self.patience or 0),
            floor=rule.floor,
            cap=rule.cap,
            pin=rule.pin,
        )


def steady_count(delta: float) -> int:
    """Return the least n at which one contrary answer stays within the radius c(n).

    After n wins the estimate is 1, after one more answer, a loss, n / (n + 1). Below this n the
    interval promises more than the next answer can keep.
    """
    room = 1.0 / math.log(1.0 / delta) - 2.0  # n / (n + 1)^2 <= log(1/delta): n + 1/n >= room
    return max(1, math.ceil(0.5 * (room + math.sqrt(max(room * room - 4.0, 0.0)))))
