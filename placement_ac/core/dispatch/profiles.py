"""
Profiles: how much each score counts, and which filters of third parties count beside the built-in ones.

Pure. A profile has a name, or is written as weights: `Placement=1,Spread=2`. Names of profiles and of third
parties' filters may stand beside weights: `ranked,Licensed,Cheap=5`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from placement_ac.core.dispatch.filters import FILTERS
from placement_ac.core.dispatch.plugins import NO_PLUGINS, Plugin, PluginError, Plugins
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
    filters: tuple[str, ...] = ()
    """Filters of third parties; the built-in ones always count."""


def parse_profile(text: str, plugins: Plugins = NO_PLUGINS) -> Profile:
    """Return the profile of that name, or of those weights and filters. Raises ProfileError.

    `plugins`: those of third parties, of which the named ones are loaded.
    """
    if text in PROFILES:
        return Profile(text, tuple(PROFILES[text].items()))
    weights: dict[str, int] = {}
    filters: list[str] = []
    for part in text.split(","):
        name, has_weight, weight = (word.strip() for word in part.partition("="))
        given = {name: _weight(name, weight, plugins)} if has_weight else PROFILES.get(name, {})
        if not given:
            filters.append(_filter(name, plugins))
        if twice := [score for score in given if score in weights]:
            raise ProfileError(f"{text!r} gives {twice[0]} a weight twice")
        weights |= given
    if not any(weights.values()):
        raise ProfileError(f"{text!r} gives no score a weight")
    return Profile(text, tuple((name, weight) for name, weight in weights.items() if weight), tuple(filters))


def _weight(name: str, weight: str, plugins: Plugins) -> int:
    if name not in SCORES and name not in plugins:
        raise ProfileError(f"there is no score {name!r}: there are {', '.join((*SCORES, *plugins))}")
    if name not in SCORES and _load(name, plugins).kind == "filter":
        raise ProfileError(f"write {name}, without a weight: it returns reasons to refuse, so it is a filter")
    if not (weight.isascii() and weight.isdigit() and len(weight) <= 3 and int(weight) <= WEIGHT_MAX):
        raise ProfileError(f"the weight of {name} must be a number of 0 to {WEIGHT_MAX}, not {weight!r}")
    return int(weight)


def _filter(name: str, plugins: Plugins) -> str:
    if name in FILTERS:
        raise ProfileError(f"leave out {name}: a built-in filter always counts")
    if name in SCORES or name not in plugins:
        known = ", ".join((*PROFILES, *plugins))
        raise ProfileError(f"{name!r} is no profile: use one of {known}, or NAME=WEIGHT,…")
    if _load(name, plugins).kind == "score":
        raise ProfileError(f"write {name}=1, or another weight: it returns points, so it is a score")
    return name


def _load(name: str, plugins: Plugins) -> Plugin:
    try:
        return plugins[name]
    except PluginError as error:
        raise ProfileError(str(error)) from None
