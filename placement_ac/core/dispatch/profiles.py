"""
Profiles: how much each score counts.

Pure. A profile has a name, or is written as weights: `Placement=1,Spread=2`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from placement_ac.core.dispatch.scores import SCORES

WEIGHT_MAX: Final = 100
_ALWAYS: Final = {"Preferred": 10, "Sticky": 10}
"""Scores that count in every named profile: they abstain unless a job asks for them."""
PROFILES: Final[Mapping[str, Mapping[str, int]]] = {
    "ranked": {"Placement": 1} | _ALWAYS,
    "spread": {"Spread": 1} | _ALWAYS,
    "pack": {"Pack": 1} | _ALWAYS,
    "headroom": {"Headroom": 1} | _ALWAYS,
}
RANKED: Final = "ranked"


class ProfileError(ValueError):
    """The text is no profile; its message says what to correct."""


class Profile(NamedTuple):
    """The weight of each score, without those that do not count."""

    name: str
    weights: tuple[tuple[str, int], ...]


@lru_cache(maxsize=256)
def parse_profile(text: str) -> Profile:
    """Return the profile of that name, or of those weights. Raises ProfileError."""
    if text in PROFILES:
        return Profile(text, tuple(PROFILES[text].items()))
    if "=" not in text:
        raise ProfileError(f"{text!r} is no profile: use one of {', '.join(PROFILES)}, or NAME=WEIGHT,…")
    weights: dict[str, int] = {}
    for part in text.split(","):
        name, _, weight = (word.strip() for word in part.partition("="))
        if name not in SCORES:
            raise ProfileError(f"there is no score {name!r}: there are {', '.join(SCORES)}")
        if not (weight.isascii() and weight.isdigit() and int(weight) <= WEIGHT_MAX):
            raise ProfileError(f"the weight of {name} must be a number of 0 to {WEIGHT_MAX}, not {weight!r}")
        weights[name] = int(weight)
    if not any(weights.values()):
        raise ProfileError(f"{text!r} gives no score a weight")
    return Profile(text, tuple((name, weight) for name, weight in weights.items() if weight))
