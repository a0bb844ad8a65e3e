"""The texts for what a hub does not serve and for what a user may not read."""

import pytest

from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.kinds import ALL_KINDS
from kubectl_placement.hub.requirements import (
    READ_KINDS,
    SERVED_KINDS,
    VIEWER_KINDS,
    missing_rights_text,
    not_served_text,
    unreadable,
)
from placement_ac.core.api.constants import ADMISSION_CHECK, EVENT, PLACEMENT, SECRET, WORKLOAD, Kind

BIND = (
    "ask an admin to bind placement-ac's viewer roles to you "
    "(kubectl get clusterroles,roles -A -l app.kubernetes.io/name=placement-ac)"
)


def hub(*served: Kind, read: tuple[Kind, ...] = ALL_KINDS, live: bool = True) -> Dump:
    found = {kind: kind.at(kind.versions[0]) for kind in served}
    return Dump(dict.fromkeys(read, ()), found, live=live, server="https://hub.example")


@pytest.mark.parametrize(
    ("dump", "expected"),
    [
        pytest.param(hub(*ALL_KINDS), "", id="everything"),
        pytest.param(
            hub(),
            "check the context, or install what is missing: https://hub.example does not serve Kueue's "
            "admissionchecks, multikueueconfigs, multikueueclusters, workloads and OCM's placements, "
            "placementdecisions in a version that placement-ac supports",
            id="nothing",
        ),
        pytest.param(
            hub(*(kind for kind in ALL_KINDS if kind != PLACEMENT)),
            "check the context, or install what is missing: https://hub.example does not serve OCM's "
            "placements in a version that placement-ac supports",
            id="one kind less",
        ),
        pytest.param(hub(read=()), "", id="a kind that was not read"),
        pytest.param(hub(live=False), "", id="a file"),
    ],
)
def test_kinds_that_a_hub_does_not_serve_are_named(dump: Dump, expected: str) -> None:
    assert not_served_text(dump, SERVED_KINDS) == expected


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        pytest.param((), "", id="none"),
        pytest.param(
            (MissingRight("list", SECRET, "kueue-system"),),
            "ask an admin for the right to list secrets in namespace kueue-system "
            "(check: kubectl auth can-i list secrets -n kueue-system)",
            id="Secrets alone: no role of ours gives them",
        ),
        pytest.param(
            (MissingRight("list", ADMISSION_CHECK), MissingRight("list", EVENT, "default")),
            f"{BIND}: you may not list admissionchecks, events in namespace default",
            id="what the role gives",
        ),
        pytest.param(
            (
                MissingRight("list", PLACEMENT, "a"),
                MissingRight("list", PLACEMENT, "b"),
                MissingRight("list", SECRET, "kueue-system"),
            ),
            f"{BIND}: you may not list placements in namespace a and b; "
            "the roles do not give the right to list secrets in namespace kueue-system",
            id="both, in two namespaces",
        ),
        pytest.param(
            (MissingRight("list", PLACEMENT, "a"), MissingRight("list", PLACEMENT)),
            f"{BIND}: you may not list placements",
            id="a kind that is missing everywhere is named once",
        ),
        pytest.param(
            tuple(MissingRight("list", kind) for kind in ALL_KINDS if kind in VIEWER_KINDS),
            f"{BIND}: you may not list admissionchecks, multikueueconfigs, multikueueclusters, placements, "
            "placementdecisions, workloads, clusterprofiles, addonplacementscores, managedclusters, "
            "managedclustersets and 14 more",
            id="many are one line",
        ),
    ],
)
def test_the_fix_for_missing_rights(missing: tuple[MissingRight, ...], expected: str) -> None:
    assert missing_rights_text(missing) == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [(ADMISSION_CHECK, True), (PLACEMENT, True), (WORKLOAD, False), (SECRET, False)]
)
def test_which_kinds_must_be_readable(kind: Kind, expected: bool) -> None:
    dump = Dump(missing=(MissingRight("list", kind, "x"),), live=True)
    assert unreadable(dump, READ_KINDS) is expected
