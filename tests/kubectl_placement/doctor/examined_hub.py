"""The findings of `doctor` on the hub that is set up right, changed by a test."""

import functools
from dataclasses import replace
from typing import Any

from kubectl_placement.doctor.finding import Finding, Level
from kubectl_placement.doctor.hub_rules import examine_hub
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.hub.controller_settings import find_settings
from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.core.api.constants import JOB
from tests.kubectl_placement.doctor.broken_controller import CONTROLLERS
from tests.kubectl_placement.doctor.broken_credentials import PROFILES
from tests.kubectl_placement.doctor.broken_hub import CHECKS, WORKERS
from tests.kubectl_placement.doctor.broken_kueue import KUEUES
from tests.kubectl_placement.doctor.broken_scale import (
    SCALE,
)
from tests.kubectl_placement.doctor.broken_scores import SCORES
from tests.kubectl_placement.doctor.broken_setups import (
    Objects,
)
from tests.support import healthy
from tests.support.healthy import OURS

BREAKS = (*KUEUES, *PROFILES, *CONTROLLERS, *CHECKS, *WORKERS, *SCALE, *SCORES)


def stored() -> Objects:
    return {healthy.key_of(obj): obj for obj in healthy.objects()}


def read(objects: Objects) -> Dump:
    """The dump of a hub with these objects, read with all rights."""
    dump = dump_of(objects.values())
    crds = {name for kind, _, name in objects if kind == "CustomResourceDefinition"}
    newest = {kind: kind.at(kind.versions[0]) for kind in ALL_KINDS} | dict(dump.served)
    served = {kind: at for kind, at in newest.items() if "." not in kind.group or str(kind) in crds}
    jobs = {JOB: tuple(obj for (kind, *_), obj in objects.items() if kind == JOB.kind)}
    known = dict.fromkeys(ALL_KINDS, ()) | dict(dump.objects) | jobs
    return replace(dump, objects=known, served=served, live=True)


def examined(dump: Dump, **given: Any) -> tuple[Finding, ...]:
    found = find_settings(dump, given)
    view = HubView(dump, found.loaded.settings, healthy.NOW)
    return examine_hub(HubSetup(view, found.deployment, found.problem, OURS))


@functools.cache
def of_the_healthy_hub() -> tuple[Finding, ...]:
    return examined(read(stored()))


def levels(findings: tuple[Finding, ...]) -> dict[str, Level]:
    """Check → its level; SKIP counts as OK, as a broken hub may have less to check."""
    return {one.check: Level.OK if one.level is Level.SKIP else one.level for one in findings}
