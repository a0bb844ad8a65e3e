"""
The marks of the leader on its Lease, for the commands that read its hub: its settings, and whether it has
reconciled. No I/O.

The settings are those that differ from their defaults, as one writes them for a flag, without those that name
files, logins and addresses of the process: elsewhere these mean something else.
"""

import json
from collections.abc import Mapping
from typing import Final

from placement_ac.config.load import flag_name
from placement_ac.config.settings import Settings, default_of, setting_as_flag
from placement_ac.core.api.constants import (
    ANNOTATION_RECONCILED,
    ANNOTATION_SETTINGS,
    LABEL_MANAGED_BY,
    MANAGED_BY,
)
from placement_ac.core.api.errors import BadSettings

OF_THE_PROCESS: Final = frozenset(
    {
        *("config", "kubeconfig", "context", "cluster_proxy_ca", "access_providers"),
        *("metrics_bind_address", "health_probe_bind_address", "log_format", "log_level"),
    }
)
"""Settings that concern the process alone."""
MAX_LETTERS: Final = 65_536
"""The longest text that is read; Kubernetes allows 256 KiB for all annotations together."""


def lease_marks(settings: Settings, reconciled: bool) -> Mapping[str, Mapping[str, str]]:
    """Return the labels and annotations of the Lease of a controller with these settings."""
    return {
        "labels": {LABEL_MANAGED_BY: MANAGED_BY},
        "annotations": {
            ANNOTATION_SETTINGS: json.dumps(_published(settings), sort_keys=True),
            ANNOTATION_RECONCILED: str(reconciled).lower(),
        },
    }


def _published(settings: Settings) -> dict[str, str]:
    values = {name: setting_as_flag(name, value) for name, value in settings if name not in OF_THE_PROCESS}
    return {flag_name(name): value for name, value in values.items() if value != default_of(name)}


def read_published(text: str) -> dict[str, str]:
    """Return published settings by the names of their fields; those that this version lacks are left out.

    Raises BadSettings. The values are not checked.
    """
    try:
        settings = json.loads(text) if len(text) <= MAX_LETTERS else None
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise BadSettings(f"annotation {ANNOTATION_SETTINGS} is no JSON object of settings")
    by_field = {str(name).replace("-", "_"): value for name, value in settings.items()}
    return {
        name: str(value)
        for name, value in by_field.items()
        if name in Settings.model_fields and name not in OF_THE_PROCESS
    }
