"""
Profiles: how much each score counts.

Pure. A profile has a name, or is written as weights: `Placement=1,Spread=2`. Names of profiles may stand
beside weights: `ranked,Cost=5`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.dispatch.scores import SCORES

WEIGHT_MAX: Final = 100
_ALWAYS: Final = {"Preferred": 10, "Sticky": 10, "Data": 10}
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


def parse_profile(text: str) -> Profile:
    """Return the profile of that name, or of those weights. Raises ProfileError."""
    if text in PROFILES:
        return Profile(text, tuple(PROFILES[text].items()))
    weights: dict[str, int] = {}
    for part in text.split(","):
        name, has_weight, weight = (word.strip() for word in part.partition("="))
        given = {name: _weight(name, weight)} if has_weight else _named(name)
        if twice := [score for score in given if score in weights]:
            raise ProfileError(f"{text!r} gives {twice[0]} a weight twice")
        weights |= given
    if not any(weights.values()):
        raise ProfileError(f"{text!r} gives no score a weight")
    return Profile(text, tuple((name, weight) for name, weight in weights.items() if weight))


def _weight(name: str, weight: str) -> int:
    if name not in SCORES:
        raise ProfileError(f"there is no score {name!r}: there are {', '.join(SCORES)}")
    if not (weight.isascii() and weight.isdigit() and len(weight) <= 3 and int(weight) <= WEIGHT_MAX):
        raise ProfileError(f"the weight of {name} must be a number of 0 to {WEIGHT_MAX}, not {weight!r}")
    return int(weight)


def _named(name: str) -> Mapping[str, int]:
    if name in FILTERS:
        raise ProfileError(f"leave out {name}: a filter always counts")
    if name not in PROFILES:
        raise ProfileError(f"{name!r} is no profile: use one of {', '.join(PROFILES)}, or NAME=WEIGHT,…")
    return PROFILES[name]
