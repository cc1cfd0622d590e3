"""Values in SI units, written with prefixes as people write them."""

import math

PREFIXES = {-12: "p", -9: "n", -6: "\u00b5", -3: "m", 0: "", 3: "k", 6: "M", 9: "G"}


def prefix(largest: float) -> tuple[str, float]:
    """Return the prefix and its factor that bring ``largest`` to between 1 and 1000."""
    size = abs(largest)
    if not math.isfinite(size) or size == 0.0:
        return "", 1.0
    # A hair of slack: rounding must not make 1000 of a smaller unit out of 1.
    power = 3 * math.floor(math.log10(size * (1 + 1e-9)) / 3)
    power = min(max(power, min(PREFIXES)), max(PREFIXES))
    return PREFIXES[power], 10.0**power


def quantity(value: float, unit: str, *, digits: int = 3) -> str:
    """Return a value with its unit and prefix, such as "12.3 mV"."""
    letter, factor = prefix(value)
    return f"{value / factor:.{digits}g} {letter}{unit}".rstrip()


def count(value: int) -> str:
    """Return a whole number with thin gaps between thousands."""
    return f"{value:,}".replace(",", "\u2009")
