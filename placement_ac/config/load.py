"""
Reads the settings from flags, the environment, a file and defaults, in this order of precedence.

A value in the file is read as text, like the value of a flag: YAML's own types are ignored, so that `0.19`
stays `0.19`, and the errors are the same.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from placement_ac.config.layout import BY_PATH, LAYOUT, PATHS
from placement_ac.config.settings import PATTERN_HELP, Settings, is_list
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.safe_yaml import NotYaml, yaml_errors

PREFIX: Final = "PLACEMENT_AC_"
FILE_SETTING: Final = "config"
"""The setting that names the file; the file cannot contain it."""
_NO_MOVES: Final = (
    "take it out: no running job is moved; docs/rebalancing.md says how scores choose for new ones"
)
_BY_LEASE: Final = "take it out, and set leader-elect-lease-duration: "
REMOVED: Final[Mapping[str, str]] = {
    "prepare_clusters": "take it out: clusters have MultiKueueClusters once they are selected",
    "preconditions": "write --look-for, or dispatch.lookFor in the file, for jobs and integrations",
    "cluster_retention": "take it out: a MultiKueueCluster stays for an hour after its cluster was unlisted",
    "reorder_margin": "take it out: a score that is better by more than 10 points changes the order",
    "reorder_interval": "take it out: the order alone is written every 60 seconds at most",
    "requeue_after": "take it out: a job that was sent back waits for 60 seconds",
    "round_timeout": "take it out: a round of the dispatcher lasts five minutes, as with Kueue's",
    "score_hold": "take it out: a score is reported when it has differed for 60 seconds",
    "score_interval": "take it out: a cluster's scores are reported every 60 seconds at most",
    "publish_capacity": "take it out: capacity is published with dispatcher or report-scores",
    "leader_elect_renew_deadline": _BY_LEASE + "a leader stops writing after two thirds of it",
    "leader_elect_retry_period": _BY_LEASE + "the Lease is renewed every sixth of it, or every 2 seconds",
    "mass_loss_share": "take it out: a loss of more than half is held, for mass-loss-grace",
    "credentials_warning": "take it out: an event warns seven days before, or when a tenth is left",
    "score_step": "take it out: a score changes by ten points or more",
    "worker_timeout": "take it out: a worker has five seconds to answer",
    "writes_per_second": "take it out: 50 repeated writes a second, after a burst of 200",
    "give_up": "take it out: a job waits until its owner stops it (spec.active of its Workload)",
    "moves": _NO_MOVES,
    "move_after": _NO_MOVES,
    "move_margin": _NO_MOVES,
    "moves_per_hour": _NO_MOVES,
    "move_cooldown": _NO_MOVES,
}
"""The name of a setting of earlier versions → what to do without it."""
_SERVICE_VARIABLE: Final = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_\d+_.*)")
"""Kubernetes: the variables that it puts into every Pod for a Service that is called placement-ac…"""
_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "timestamp", "value", "merge")
)
"""YAML's types of plain values, which are all read as text."""
_EXPECTED_TYPES: Final = {
    "bool_parsing": "it is true or false",
    "int_parsing": "it is a whole number",
    "float_parsing": "it is a number",
}
"""pydantic's error type → what is expected."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and the source of each by the name of its field."""

    settings: Settings
    sources: Mapping[str, str]


def flag_name(name: str) -> str:
    """Return the name of a setting on the command line, without `--`."""
    return name.replace("_", "-")


def load(
    flags: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    read: Callable[[Path], str] = lambda path: path.read_text("utf-8"),
) -> LoadedSettings:
    """Return the settings; `flags` that are None were not given. Raises BadSettings.

    `read` gives the text of the file: another process may have it elsewhere. It raises OSError.
    """
    by_flag = {name: value for name, value in flags.items() if value is not None}
    if gone := [flag_name(name) for name in by_flag if name in REMOVED]:
        raise BadSettings("; ".join(_unknown(f"--{flag}", flag, ()) for flag in gone))
    by_variable = _from_environment(os.environ if environment is None else environment)
    path = (by_variable | by_flag).get(FILE_SETTING)
    in_file, lines = ({}, {}) if path is None else _from_file(Path(path), read)
    origins = (
        {name: (f"file {path}", f"{path}:{line}: {PATHS[name]}") for name, line in lines.items()}
        | {name: (f"environment {PREFIX}{name.upper()}", f"{PREFIX}{name.upper()}") for name in by_variable}
        | {name: ("flag", flag_name(name)) for name in by_flag}
    )  # the source of each, and what a message calls the setting there
    try:
        settings = Settings.model_validate(in_file | by_variable | by_flag)
    except ValidationError as error:
        names = {name: shown for name, (_, shown) in origins.items()}
        first_of_each = {details["loc"][:1]: details for details in reversed(error.errors(include_url=False))}
        messages = (_explain(details, names) for details in reversed(first_of_each.values()))
        raise BadSettings("; ".join(messages)) from None
    sources = {name: source for name, (source, _) in origins.items()}
    return LoadedSettings(settings, dict.fromkeys(Settings.model_fields, "default") | sources)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    given = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            name = variable.removeprefix(PREFIX).lower()
            if name not in Settings.model_fields:
                if _SERVICE_VARIABLE.fullmatch(name.upper()):
                    continue
                known = [PREFIX + field.upper() for field in Settings.model_fields]
                raise BadSettings(_unknown(variable, variable, known))
            given[name] = value
    return given


def _from_file(path: Path, read: Callable[[Path], str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the settings in the file and their lines, by the names of the fields. Raises BadSettings."""
    problems: list[str] = []
    given: dict[str, Any] = {}
    lines: dict[str, int] = {}
    sections: set[str] = set()
    for keys, value, line in _entries(path, read):
        key = ".".join(keys)
        where = f"{path}:{line}: {key}"
        name = "" if "." in keys[-1] else BY_PATH.get(key, "")
        if name in given or key in sections:
            problems.append(f"{where}: it is given twice; keep one")
        elif isinstance(LAYOUT.get(key), Mapping) and isinstance(value, yaml.MappingNode):
            sections.add(key)
        elif not name:
            problems.append(_no_such_key(where, key))
        else:
            given[name], lines[name] = _value(name, value), line
            if given[name] is None:
                problems.append(f"{where}: {_expected(name, value)}")
    if problems:
        raise BadSettings("; ".join(problems))
    return given, lines


def _entries(path: Path, read: Callable[[Path], str]) -> Iterator[tuple[tuple[str, ...], yaml.Node, int]]:
    """Yield the keys and values of the file, as they are written, and their lines. Raises BadSettings.

    After a section come its own, each with the section's key before it.
    """
    try:
        with yaml_errors(OSError):
            root = yaml.compose(read(path), yaml.SafeLoader)
    except OSError as error:
        is_folder = isinstance(error, IsADirectoryError)
        hint = "; name the file in it, like config.yaml" if is_folder else ""
        raise BadSettings(f"cannot read the settings file {path}: {error.strerror}{hint}") from None
    except NotYaml as error:
        hint = "; write each setting as a line" if error.is_too_deep else ""
        raise BadSettings(f"{path}: {error}{hint}") from None
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise BadSettings(f"{path}: it is not a mapping; write a setting like removal: {{drainDeadline: 2h}}")
    for key, value in root.value:
        yield (str(key.value),), value, key.start_mark.line + 1
        if isinstance(LAYOUT.get(str(key.value)), Mapping) and isinstance(value, yaml.MappingNode):
            for below, setting in value.value:
                yield (str(key.value), str(below.value)), setting, below.start_mark.line + 1


def _value(name: str, node: yaml.Node) -> str | tuple[str, ...] | None:
    """Return the text or the texts of a value; None if no setting can have it."""
    if isinstance(node, yaml.SequenceNode) and is_list(name):
        texts = tuple(map(_text, node.value))
        return None if None in texts else tuple(text for text in texts if text is not None)
    return _text(node)


def _text(node: yaml.Node) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) and node.tag in _PLAIN_TAGS else None


def _expected(name: str, node: yaml.Node) -> str:
    """Return what to write instead of a value that no setting can have."""
    if isinstance(node, yaml.ScalarNode):
        return "it has no value; write one, in quotes if need be, or take the line out"
    if is_list(name):
        return "write a list of plain values, or one text with commas"
    kind = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
    return f"one value belongs here, not a {kind}"


def _no_such_key(where: str, key: str) -> str:
    """Return what is wrong with a key of the file that is none, and what to write instead."""
    there, _, last = key.rpartition(".")
    name = re.sub(r"-|(?<=[a-z])(?=[A-Z])", "_", last).lower()
    if name in REMOVED:
        return _unknown(where, name, ())
    if name == FILE_SETTING:
        return f"{where}: a file cannot name another one; give it as a flag or in the environment"
    if path := key if key in BY_PATH else PATHS.get(name):  # as flags are named; files had no sections once
        return f"{where}: write {': {'.join(path.split('.'))}: …{'}' * path.count('.')} instead"
    if isinstance(section := LAYOUT.get(key), Mapping):
        return f"{where}: write its settings below it, some of {', '.join(section)}"
    by_key = {path.rpartition(".")[2]: path for path in BY_PATH} | {
        path: path for path in (*BY_PATH, *LAYOUT)
    }
    if near := difflib.get_close_matches(key, by_key, n=1, cutoff=0.8):
        return f"{where}: there is no such setting; did you mean {by_key[near[0]]}?"
    known = section if isinstance(section := LAYOUT.get(there), Mapping) else LAYOUT
    return f"{where}: there is no such setting; known are {', '.join(known)}"


def _unknown(where: str, name: str, known: Sequence[str]) -> str:
    """Return what is wrong with a setting that does not exist; `name`: as `known` are written."""
    if instead := REMOVED.get(name.removeprefix(PREFIX).lower().replace("-", "_")):
        return f"{where}: there is no such setting any more; {instead}"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    suggestion = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"{where}: there is no such setting; {suggestion}"


def _explain(error: Any, names: Mapping[str, str]) -> str:
    field = str(error["loc"][0]) if error["loc"] else "settings"
    reason = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch":
        reason = PATTERN_HELP[flag_name(field)]
    reason = _EXPECTED_TYPES.get(error["type"], reason)
    given = error["input"]
    shown = ",".join(given) if isinstance(given, tuple) else given
    problem = f"{names.get(field, flag_name(field))}: {shown!r} is not possible: {reason}"
    return re.sub(r"//.*@", "//…@", problem)  # a URL may contain a password
