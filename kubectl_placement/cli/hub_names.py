"""Complete checks, and what `explain` explains, in a shell."""

from typing import Any, Final

import click

from kubectl_placement.explain.subject import KINDS, TYPE_NAMES, UNTYPED
from kubectl_placement.hub.kind_names import names_of_kind
from placement_ac.cli.names import check_names, names_in, starting, words_before
from placement_ac.core.api.constants import ADMISSION_CHECK
from placement_ac.core.api.text import did_you_mean

_CHECK_TYPES: Final = frozenset(names_of_kind(ADMISSION_CHECK, "check"))


def named_checks(_: click.Context, __: click.Parameter, value: Any) -> Any:
    """Return the NAME of NAME or TYPE/NAME of checks, as `-o name` prints them: the callback of an argument.

    `value`: one or several; None as it is. Raises BadParameter.
    """
    return tuple(map(_check_name, value)) if isinstance(value, tuple) else value and _check_name(value)


def _check_name(word: str) -> str:
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in _CHECK_TYPES:
        meant = did_you_mean(kind.lower(), _CHECK_TYPES)
        raise click.BadParameter(f"{word!r} is not the name of an AdmissionCheck{meant}")
    return name


def check_references(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of NAME or TYPE/NAME of a check."""
    type_, slash, name = typed.rpartition("/")
    if slash and type_.lower() not in _CHECK_TYPES:
        return []
    return [f"{type_}{slash}{check}" for check in check_names(context, parameter, name)]


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
