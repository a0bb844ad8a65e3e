"""Names of checks and clusters as kubectl takes them, and their completion, and that of `explain`."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from kubectl_placement.explain.subject import KINDS, TYPE_NAMES, UNTYPED
from kubectl_placement.hub.kind_names import names_of_kind
from placement_ac.cli.names import check_names, cluster_names, names_in, starting, words_before
from placement_ac.core.api.constants import ADMISSION_CHECK, MANAGED_CLUSTER, Kind
from placement_ac.core.api.text import did_you_mean

_TYPES: Final = {
    ADMISSION_CHECK: frozenset(names_of_kind(ADMISSION_CHECK, "check")),
    MANAGED_CLUSTER: frozenset(names_of_kind(MANAGED_CLUSTER, "cluster")),
}


def named_checks(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Return the NAME of NAME or TYPE/NAME of checks, as `-o name` prints them: the callback of an argument.

    `value`: one or several; None as it is. Raises BadParameter.
    """
    return tuple(map(_check_name, value)) if isinstance(value, tuple) else value and _check_name(value)


def named_cluster(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the same of a managed cluster. Raises BadParameter."""
    return _name(MANAGED_CLUSTER, value)


def _check_name(word: str) -> str:
    return _name(ADMISSION_CHECK, word)


def _name(of: Kind, word: str) -> str:
    type_, slash, name = word.rpartition("/")
    if slash and type_.lower() not in _TYPES[of]:
        meant = did_you_mean(type_.lower(), _TYPES[of])
        article = "an" if of.kind[0] in "AEIOU" else "a"
        raise click.BadParameter(f"{word!r} is not the name of {article} {of.kind}{meant}")
    return name


def check_references(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of NAME or TYPE/NAME of a check."""
    return _references(ADMISSION_CHECK, typed, partial(check_names, context, parameter))


def cluster_references(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of NAME or TYPE/NAME of a managed cluster."""
    return _references(MANAGED_CLUSTER, typed, partial(cluster_names, context, parameter))


def _references(of: Kind, typed: str, names: Callable[[str], list[str]]) -> list[str]:
    type_, slash, name = typed.rpartition("/")
    if slash and type_.lower() not in _TYPES[of]:
        return []
    return [f"{type_}{slash}{found}" for found in names(name)]


def subject_words(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of TYPE NAME, TYPE/NAME or NAME, as `explain` reads them."""
    before = words_before(context, parameter)
    if before:
        type_ = TYPE_NAMES.get(before[0].lower()) if len(before) == 1 else None
        return starting(typed, names_in(context, KINDS[type_])) if type_ else []
    word, slash, name = typed.partition("/")
    if slash:
        type_ = TYPE_NAMES.get(word.lower())
        names = names_in(context, KINDS[type_]) if type_ else ()
        return [f"{word}/{completion}" for completion in starting(name, names)]
    return starting(typed, (*KINDS, *names_in(context, *(KINDS[type_] for type_ in UNTYPED))))
