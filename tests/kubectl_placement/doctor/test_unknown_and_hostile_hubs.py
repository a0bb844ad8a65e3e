"""`doctor` on a hub that may not be read whole, that lacks things, or whose fields are anything."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubectl_placement.cli.doctor import KINDS
from kubectl_placement.doctor.finding import Finding, Level
from kubectl_placement.doctor.hub_rules import RULES
from kubectl_placement.hub.dump import Dump, MissingRight
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.core.api.constants import JOB, Kind
from placement_ac.core.api.constants import LEASE as LEASE_KIND
from tests.kubectl_placement.doctor.broken_hub import DECISION, PLACEMENT
from tests.kubectl_placement.doctor.broken_kueue import KUEUES, POD
from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    CONFIG,
    CONTROLLER,
    KUEUE,
    LEASE,
    QUEUE,
    SENDER,
    How,
    both,
    configured,
    put,
    unlisted,
    with_condition,
    without,
    worker,
)
from tests.kubectl_placement.doctor.examined_hub import (
    examined,
    read,
    stored,
)
from tests.kubectl_placement.malformed import paths
from tests.support import commands, healthy
from tests.support.commands import write_list
from tests.support.healthy import OURS

# -- what cannot be read, and what cannot be


def test_unreadable_kinds_are_warnings_never_failures() -> None:
    everywhere = [MissingRight("list", kind) for kind in (*ALL_KINDS, JOB)]
    ours, kueues = ([MissingRight("list", kind, space) for kind in ALL_KINDS] for space in (OURS, healthy.NS))
    nothing = Dump(dict.fromkeys(ALL_KINDS, ()), {}, (*everywhere, *ours, *kueues), live=True)
    findings = examined(replace(nothing, served={kind: kind.at(kind.versions[0]) for kind in ALL_KINDS}))
    assert [one for one in findings if one.level is Level.FAIL] == []
    unknown = [one for one in findings if one.level is Level.WARN]
    assert [one for one in unknown if "unknown" not in one.message or "kubectl" not in one.fix] == []
    output = {rule.check for rule in RULES} - {one.check for one in unknown}
    assert output == {
        *("kueue-crds", "ocm-crds"),  # by discovery
        *("frameworks", "controller-rights"),  # without a controller there is nothing to compare
        *("nominations", "managed-namespaces"),  # by default, Kueue nominates, and selects all
    }


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_of_a_kind_that_alone_may_not_be_read_nothing_is_held_against_the_hub(kind: Kind) -> None:
    dump = read(stored())
    served = {all_kind: all_kind.at(all_kind.versions[0]) for all_kind in ALL_KINDS}
    spaces = ("", OURS, healthy.NS)
    missing = tuple(MissingRight("list", kind, space) for space in spaces)
    others = dict(dump.objects) | {kind: ()}
    findings = examined(replace(dump, objects=others, served=served, missing=missing))
    wrong = [one for one in findings if one.is_problem]
    assert {one.check for one in findings} == {rule.check for rule in RULES}
    assert [one for one in wrong if one.level is Level.FAIL or "unknown" not in one.message] == []


def test_a_controller_may_run_elsewhere_where_its_lease_may_not_be_read() -> None:
    objects = stored()
    without(CONTROLLER, LEASE)(objects)
    dump = read(objects)
    findings = examined(replace(dump, missing=(MissingRight("list", LEASE_KIND, healthy.NS),)))
    assert [one for one in findings if one.is_problem] == [
        Finding(
            "own-rights",
            Level.WARN,
            "unknown without more rights: you may not list leases in namespace kueue-system",
            "kubectl get clusterroles,roles -A -l app.kubernetes.io/name=placement-ac"
            "  # an admin binds those that end in -viewer to you: docs/inspect.md",
        ),
        Finding(
            "controller",
            Level.WARN,
            "unknown: the right to list leases.coordination.k8s.io in namespace kueue-system is missing",
            "kubectl auth can-i list leases.coordination.k8s.io -n kueue-system",
        ),
    ]


def test_where_there_is_no_kueue_nothing_is_said_of_its_configuration() -> None:
    objects = stored()
    without(KUEUE, CONFIG)(objects)
    wrong = {one.check: one for one in examined(read(objects)) if one.is_problem}
    assert [one.check for one in wrong.values() if one.level is Level.FAIL] == ["kueue-deployment"]
    assert wrong["kueue-configuration"].message == "unknown: Kueue's Deployment was not found"


def test_nothing_is_held_against_settings_that_are_not_known() -> None:
    """They may be right: the defaults are a guess."""
    [broken] = [
        kueue for kueue in KUEUES if kueue.id == "Kueue waits for our nominations, and there are none"
    ]
    objects = stored()
    broken.how(objects)
    del objects["ConfigMap", OURS, "placement-ac"]
    wrong = [one for one in examined(read(objects)) if one.is_problem]
    assert [(one.check, one.level) for one in wrong] == [
        ("dispatcher-name", Level.WARN),
    ]
    assert wrong[0].message.endswith(
        ", if the controller uses the defaults: cannot read the settings file /etc/placement-ac/config.yaml: "
        "ConfigMap placement-ac-system/placement-ac has no config.yaml, or cannot be read"
    )


def test_settings_that_are_given_count(tmp_path: Path) -> None:
    [broken] = [
        kueue for kueue in KUEUES if kueue.id == "Kueue waits for our nominations, and there are none"
    ]
    objects = stored()
    broken.how(objects)
    dump, given = write_list(tmp_path / "dump.json", objects.values()), tmp_path / "settings.yaml"
    given.write_text("dispatch: {enabled: true}")
    words = ["doctor", "-o", "json", "--from-dump", str(dump)]
    for more, failed in (((), 1), (("--config", str(given)), 0)):
        summary = json.loads(commands.run(*words, *more).stdout)["summary"]
        passed = len(RULES) - summary["skip"] - failed
        assert summary == {"ok": passed, "skip": summary["skip"], "warn": 0, "fail": failed, "unknown": 0}


def test_a_dump_of_kueues_namespace_says_nothing_of_the_controller() -> None:
    kueues = [obj for key, obj in stored().items() if key[1] != OURS and key != LEASE]
    wrong = [one for one in examined(dump_of(kueues)) if one.is_problem]
    fix = f"kubectl get deployments.apps -n {OURS} -o yaml > deployments.yaml"
    output = f"unknown: the dump has no deployments of namespace {OURS}"
    assert wrong == [Finding("controller", Level.WARN, output, fix)]


@pytest.mark.parametrize("junk", [None, 0, "'$(x)", [], {}, [[None]], [{"name": 1}], {"a": {}}], ids=repr)
def test_no_field_of_any_shape_makes_it_fall(junk: Any) -> None:
    """Of each object, every so-manieth field is such."""
    places = [(key, path) for key, obj in stored().items() for path in paths(obj) if path[0] in FUZZED]
    for key, path in places[len(repr(junk)) :: 97]:
        objects = stored()
        put(key, *path, junk)(objects)
        assert {one.check for one in examined(read(objects))} == {rule.check for rule in RULES}


FUZZED = ("spec", "status", "data", "rules", "subjects", "roleRef")


HOSTILE = "x'\nEOF\n$(touch pwned) `touch pwned`; touch pwned #"


@pytest.mark.parametrize(
    "how",
    [
        put(PLACEMENT, "spec", "clusterSets", [HOSTILE]),
        put(("ManagedClusterSetBinding", healthy.NS, "spoke"), "spec", "clusterSet", HOSTILE),
        both(
            put(worker("cluster2"), "spec", "clusterSource", "kubeConfig", "location", HOSTILE),
            with_condition(worker("cluster2"), "False", "ClientConnectionFailed", HOSTILE),
        ),
        both(
            put(worker("cluster1"), "spec", "clusterSource", "clusterProfileRef", "name", HOSTILE),
            with_condition(worker("cluster1"), "False", "BadClusterProfile", HOSTILE),
        ),
        both(
            put(
                KUEUE,
                "spec",
                "template",
                "spec",
                "containers",
                0,
                "args",
                [HOSTILE, "--feature-gates=A=true"],
            ),
        ),
        put(KUEUE, *POD, "volumes", 1, "configMap", "name", HOSTILE),
        configured("- name: open-cluster-management", f"- name: {json.dumps(HOSTILE)}"),
        put(QUEUE, "spec", "admissionChecksStrategy", "admissionChecks", [{"name": HOSTILE}]),
        both(
            without(SENDER),
            unlisted("multikueue-demo1"),
            put(CHECK, "spec", "parameters", "name", HOSTILE),
        ),
        both(
            put(("ClusterProfile", healthy.NS, "cluster1"), "status", "accessProviders", 0, "name", HOSTILE),
            put(worker("cluster1"), "status", {}),
        ),
        put(DECISION, "status", "decisions", [{"clusterName": HOSTILE, "reason": ""}]),
    ],
)
def test_a_fix_runs_no_text_from_the_hub(how: How, tmp_path: Path) -> None:
    objects = stored()
    how(objects)
    fixes = [one.fix for one in examined(read(objects)) if one.fix]
    assert fixes != []
    nowhere = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    touching = "touch() { : > pwned; }; export -f touch\n"
    for fix in fixes:
        subprocess.run(
            ["/bin/bash", "-c", touching + fix],
            cwd=tmp_path,
            env=nowhere,
            capture_output=True,
            check=False,
        )
    assert not (tmp_path / "pwned").exists()
