"""`placement-ac run --print-settings`: the effective settings, and where each came from."""

import json
from collections.abc import Callable, Mapping
from typing import Final, Literal

from placement_ac.config.load import FILE_SETTING, LoadedSettings, flag_name
from placement_ac.config.settings import setting_as_flag, setting_text

Form = Literal["table", "yaml", "json"]


def shown(loaded: LoadedSettings, form: Form) -> str:
    """Return the settings in this format, without a final line break. The YAML is a settings file."""
    return _FORMS[form](loaded)


def _table(loaded: LoadedSettings) -> str:
    rows = [("SETTING", "VALUE", "SOURCE")]
    rows += [
        (flag_name(name), setting_as_flag(name, value), loaded.sources[name])
        for name, value in loaded.settings
    ]
    wide, wider = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:<{wide}}  {value:<{wider}}  {source}" for name, value, source in rows)


def _yaml(loaded: LoadedSettings) -> str:
    """A setting without a value, and the one that names the file, are comments."""
    lines = []
    for name, value in loaded.settings:
        text = (
            "" if value is None else json.dumps(setting_text(name, value), ensure_ascii=False)
        )  # JSON is YAML
        line = f"{flag_name(name)}: {text}  # {loaded.sources[name]}"
        lines.append(f"# {line}" if value is None or name == FILE_SETTING else line)
    return "\n".join(lines)


def _json(loaded: LoadedSettings) -> str:
    rows = [
        {"name": flag_name(name), "value": setting_text(name, value), "source": loaded.sources[name]}
        for name, value in loaded.settings
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


_FORMS: Final[Mapping[Form, Callable[[LoadedSettings], str]]] = {
    "table": _table,
    "yaml": _yaml,
    "json": _json,
}
