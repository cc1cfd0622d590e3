"""Clinical rules: which polarity configurations are looked at.

Types and ranges of the table ``[configurations]`` are checked here; what the keys mean is the work
of :mod:`fieldcorr.configurations.rules`. A key that is given overrides the preset; None means "not
said".
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fieldcorr.model._base import Length, Real, Table, TomlArray

Count = Annotated[int, Field(ge=0, le=64)]
Limit = Annotated[Real, Field(gt=0, le=1e6)]
Texts = Annotated[tuple[str, ...], TomlArray]
Polarity = Literal["-", "+", "any"]
Preset = Literal[
    "all",
    "up-to-two",
    "up-to-three",
    "up-to-four",
    "adjacent-bipole",
    "guarded-cathode",
    "single-cathode",
    "programmer",
]


class Rules(Table):
    """Declarative restrictions of the 3^E polarity configurations."""

    preset: Preset = "up-to-three"
    """Where the rules start from; every key below overrides it."""
    active_min: Count | None = None
    """Least number of active contacts."""
    active_max: Count | None = None
    """Largest number of active contacts."""
    cathodes_min: Count | None = None
    """Least number of cathodes."""
    cathodes_max: Count | None = None
    """Largest number of cathodes."""
    anodes_min: Count | None = None
    """Least number of anodes."""
    anodes_max: Count | None = None
    """Largest number of anodes."""
    excluded: Texts = ()
    """Contacts that are broken or painful: never used."""
    off: Texts = ()
    """Contacts that must be off."""
    on: dict[str, Polarity] = Field(default_factory=dict)
    """Contacts that must be on: "-" cathode, "+" anode, "any" either."""
    adjacent: Literal["any", "cathodes", "anodes", "all"] | None = None
    """Whose contacts must all be neighbours of one another."""
    extent_max_mm: Length | None = None
    """Largest distance between two active contacts."""
    connected: Annotated[tuple[Literal["cathodes", "anodes"], ...], TomlArray] | None = None
    """Groups that must hang together on the array."""
    guarded: Literal["none", "cathodes"] | None = None
    """Whether each cathode needs an anode before and after it in its column."""
    symmetric: bool = False
    """Only configurations that are their own mirror image about the midline."""
    case: Literal["off", "anode", "any"] | None = None
    """What the stimulator case may be, where it is an electrode."""
    charge_density_max_uC_per_cm2: Limit | None = None
    """Largest charge density of a contact per phase; needs `[stimulator]`, as the next two do."""
    shannon_k_max: Annotated[Real, Field(ge=-5, le=5)] | None = None
    """Largest k = log10 D + log10 Q of a contact, D in uC/cm2 and Q in uC per phase."""
    current_per_contact_max_mA: Limit | None = None
    """Largest current of a contact."""
    include: Texts = ()
    """Configurations that are added, in text form such as "0- 5+"."""
    exclude: Texts = ()
    """Configurations that are taken away."""

    @model_validator(mode="after")
    def _ranges(self) -> "Rules":
        for what in ("active", "cathodes", "anodes"):
            low, high = getattr(self, f"{what}_min"), getattr(self, f"{what}_max")
            if low is not None and high is not None and low > high:
                raise ValueError(f"{what}_min = {low} is more than {what}_max = {high}")
        for key in ("excluded", "off"):
            both = sorted(set(self.on) & set(getattr(self, key)))
            if both:
                raise ValueError(f'on: contact "{both[0]}" is in {key} as well')
        return self
