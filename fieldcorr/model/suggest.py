"""Suggestions for misspelt names.

What flows in: a name and the names that exist. What flows out: a half-sentence, or nothing.
"""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelt most like ``name``, if any is."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean "x"?' for the nearest known name, or an empty string."""
    match = nearest(name, known)
    return f'; did you mean "{match}"?' if match else ""
