"""
How much is known of the set-up of workers: its ManifestWorks, and all from which they are made.

Pure.
"""

from collections.abc import Iterable
from dataclasses import replace

from kubectl_placement.hub.dump import Dump
from placement_ac.config.policy import worker_setup_policy
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import CONFIG_MAP, MANIFEST_WORK
from placement_ac.core.api.objects import Check
from placement_ac.core.inputs.kinds import SETUP_KINDS
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy
from placement_ac.core.worker_setup.template import named_template


def sets_up(dump: Dump, settings: Settings) -> bool:
    """Whether the controller sets workers up, and its ManifestWorks are known."""
    return settings.worker_setup != "none" and dump.knows(MANIFEST_WORK)


def setup_policy(dump: Dump, settings: Settings, unknown: str) -> WorkerSetupPolicy:
    """Return the policy for the set-up of workers; without their ManifestWorks nothing is known of it.

    `unknown`: why it is unknown what is put onto workers.
    """
    policy, served = worker_setup_policy(settings), MANIFEST_WORK in dump.served
    enabled = sets_up(dump, settings)
    return replace(policy, enabled=enabled, served=served, wanted_known=not unknown)


def template_names(checks: Iterable[Check], settings: Settings) -> tuple[str, ...]:
    """Return the ConfigMaps in Kueue's namespace from which the queues on workers are made, by name."""
    default = settings.worker_setup_template
    return tuple(sorted({named_template(check) or default for check in checks if check.ours} - {""}))


def setup_unknown(dump: Dump, settings: Settings, templates: Iterable[str], *, read: bool) -> str:
    """Return why it is unknown what the controller puts onto workers; "" if it is known.

    `read`: whether the `templates` were read, as far as the caller may.
    """
    kinds = (kind for kind in SETUP_KINDS if kind != CONFIG_MAP)
    if why := next(filter(None, map(dump.why_unknown, kinds)), ""):
        return why
    for name in templates:
        key = (settings.kueue_namespace, name)
        refused = any((one.kind, one.namespace, one.name) == (CONFIG_MAP, *key) for one in dump.missing)
        if refused or not (read or key in dump.by_key(CONFIG_MAP)):
            reason = "you may not get it" if refused else "it was not read"
            return f"unknown: ConfigMap {'/'.join(key)}: {reason}"
    return ""
