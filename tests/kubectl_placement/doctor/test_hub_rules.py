"""`doctor`: each of its lines breaks when just that thing is broken, and the others do not."""

import base64
import copy
import functools
import json
import pkgutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement import doctor
from kubectl_placement.cli.doctor import KINDS
from kubectl_placement.doctor import worker_rules
from kubectl_placement.doctor.finding import DoctorRule, Finding, Level
from kubectl_placement.doctor.hub_rules import RULES, examine_hub
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.hub.controller_settings import find_settings
from kubectl_placement.hub.dump import Dump, MissingRight, dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.kinds import ALL_KINDS, JOB
from placement_ac.core.api.constants import LEASE as LEASE_KIND
from placement_ac.core.api.constants import SECRET, Kind
from tests.kubectl_placement.doctor.broken_controller import CONTROLLERS
from tests.kubectl_placement.doctor.broken_credentials import PROFILES
from tests.kubectl_placement.doctor.broken_hub import CHECKS, DECISION, PLACEMENT, WORKERS
from tests.kubectl_placement.doctor.broken_kueue import KUEUES, POD
from tests.kubectl_placement.doctor.broken_scale import (
    SCALE,
    SECRETS,
    TTL_GATE,
    placed_jobs,
    shared_worker,
    short_lived_jobs,
)
from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    CONFIG,
    CONTROLLER,
    KUEUE,
    LEASE,
    QUEUE,
    SENDER,
    Break,
    How,
    Objects,
    both,
    configured,
    gate,
    image,
    put,
    said,
    setting,
    unlisted,
    without,
    worker,
)
from tests.support import commands, healthy
from tests.support.builders import kubeconfig
from tests.support.commands import write_list
from tests.support.healthy import OURS, Key

BREAKS = (*KUEUES, *PROFILES, *CONTROLLERS, *CHECKS, *WORKERS, *SCALE)


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
    return {one.check: one.level for one in findings}


def test_on_a_hub_that_is_set_up_right_every_line_is_ok() -> None:
    assert [one for one in of_the_healthy_hub() if one.level is not Level.OK or one.fix] == []
    assert [one.check for one in of_the_healthy_hub()] == [rule.check for rule in RULES]


def test_so_it_is_on_the_release_before() -> None:
    objects = stored()
    put(KUEUE, *POD, "containers", 0, "image", "registry.k8s.io/kueue/kueue:v0.19.2")(objects)
    findings = examined(read(objects))
    assert levels(findings) == levels(of_the_healthy_hub())
    assert "Kueue 0.19.2" in [one.message for one in findings if one.check == "kueue-release"]


def test_every_rule_is_in_a_table() -> None:
    names = (module.name for module in pkgutil.iter_modules(doctor.__path__))
    modules = [vars(import_module(f"{doctor.__name__}.{name}")) for name in names]
    rules = {value.check for module in modules for value in module.values() if isinstance(value, DoctorRule)}
    assert rules == {rule.check for rule in (*RULES, *worker_rules.RULES)}


def test_so_it_is_in_a_dump_of_it() -> None:
    assert levels(examined(dump_of(healthy.objects()))) == levels(of_the_healthy_hub())


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.id)
def test_each_problem_is_the_only_finding_and_has_its_fix(broken: Break) -> None:
    objects = stored()
    broken.how(objects)
    findings = examined(read(objects))
    others = dict.fromkeys(broken.unknown, Level.WARN) | {broken.check: broken.level}
    assert levels(findings) == levels(of_the_healthy_hub()) | others
    output = [one for one in findings if one.check == broken.check]
    assert output == [Finding(broken.check, broken.level, broken.message, broken.fix)]
    assert [one for one in findings if one.check in broken.unknown and "unknown" not in one.message] == []


def test_cluster_sets_that_are_not_bound_are_named() -> None:
    objects = stored()
    other = copy.deepcopy(objects["ManagedClusterSet", "", "spoke"])
    other["metadata"]["name"] = "other"
    objects["ManagedClusterSet", "", "other"] = other
    [found] = [one for one in examined(read(objects)) if one.check == "cluster-set-bindings"]
    message = (
        f"cluster sets are bound for {healthy.NS}/placement-demo1; not bound there: ManagedClusterSet other"
    )
    assert (found.level, found.message) == (Level.OK, message)


INGRESS = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ingress-nginx-controller
  namespace: ingress-nginx
  labels: {app.kubernetes.io/name: ingress-nginx, app.kubernetes.io/part-of: ingress-nginx}
spec:
  replicas: 1
  template:
    spec:
      serviceAccountName: ingress-nginx
      containers:
      - {name: controller, image: "registry.k8s.io/ingress-nginx/controller:v1.13.0"}
status: {readyReplicas: 1}
"""


@pytest.mark.parametrize("hows", [(), (without(CONTROLLER, LEASE),)], ids=["beside ours", "without ours"])
def test_a_deployment_of_others_changes_no_finding(hows: tuple[How, ...]) -> None:
    """Its container is named `controller` too; no fix may scale it or bind our ClusterRole to it."""
    objects = stored()
    for how in hows:
        how(objects)
    expected = examined(read(objects))
    ingress = yaml.safe_load(INGRESS)
    assert examined(read({healthy.key_of(ingress): ingress, **objects})) == expected


IN_USE = "kueue.x-k8s.io/resource-in-use"
STRATEGY = "/spec/admissionChecksStrategy/admissionChecks"
PLAIN = "/spec/admissionChecks"


def removal(place: str, name: str = "") -> str:
    test = f'{{"op":"test","path":"{place}{name}","value":"placement-demo1"}}'
    return f'{test},{{"op":"remove","path":"{place}"}}'


@pytest.mark.parametrize(
    ("hows", "steps"),
    [
        pytest.param(
            (put(QUEUE, "spec", "admissionChecks", None),),
            removal(f"{STRATEGY}/1", "/name"),
            id="the plain field is null",
        ),
        pytest.param(
            (put(QUEUE, "spec", "admissionChecks", ["another"]),),
            removal(f"{STRATEGY}/1", "/name"),
            id="the plain field lists others",
        ),
        pytest.param(
            (
                put(QUEUE, "spec", "admissionChecksStrategy", {}),
                put(QUEUE, "spec", "admissionChecks", ["multikueue-demo1", "placement-demo1"]),
            ),
            removal(f"{PLAIN}/1"),
            id="the plain field alone",
        ),
        pytest.param(
            (put(QUEUE, "spec", "admissionChecks", ["placement-demo1"]),),
            f"{removal(f'{PLAIN}/0')},{removal(f'{STRATEGY}/1', '/name')}",
            id="both",
        ),
    ],
)
def test_a_check_that_is_being_deleted_is_taken_off_where_it_is_listed(
    hows: tuple[How, ...], steps: str
) -> None:
    [found] = [one for one in deletion_findings(CHECK, *hows) if one.check == "check-deletion"]
    assert found.fix == f"kubectl patch clusterqueue cluster-queue-demo1 --type=json -p '[{steps}]'"


def deletion_findings(check: Key, *hows: How) -> tuple[Finding, ...]:
    objects = stored()
    put(check, "metadata", "deletionTimestamp", "2026-08-01T11:00:00Z")(objects)
    put(check, "metadata", "finalizers", [IN_USE])(objects)
    for how in hows:
        how(objects)
    return examined(read(objects))


@pytest.mark.parametrize(
    ("check", "hows", "effect"),
    [
        pytest.param(CHECK, (), "; without it nothing holds jobs back", id="the gate"),
        pytest.param(CHECK, (setting("DISPATCHER", "true"),), "", id="our dispatcher needs no gate"),
        pytest.param(CHECK, (unlisted("multikueue-demo1"),), "; hold the queue first", id="our check alone"),
        pytest.param(SENDER, (), "; hold the queue first", id="the MultiKueue check"),
    ],
)
def test_the_effect_on_jobs_is_named_before_a_check_is_taken_off(
    check: Key, hows: tuple[How, ...], effect: str
) -> None:
    [found] = [one for one in deletion_findings(check, *hows) if one.check == "check-deletion"]
    after = found.message.partition(" still lists it")[2]
    assert (after.startswith(effect), bool(after)) == (True, bool(effect))


def test_a_decision_of_another_placement_is_named_though_the_hub_is_read_once() -> None:
    objects = stored()
    placement, other = objects[PLACEMENT], copy.deepcopy(objects[DECISION])
    placement["metadata"]["uid"] = "now"
    owner = {"apiVersion": placement["apiVersion"], "kind": "Placement", "name": healthy.PLACEMENT}
    objects[DECISION]["metadata"]["ownerReferences"] = [owner | {"uid": "now"}]
    other["metadata"] |= {"name": "former", "ownerReferences": [owner | {"uid": "before"}]}
    findings = examined(read({**objects, ("PlacementDecision", healthy.NS, "former"): other}))
    [found] = [one for one in findings if one.level is not Level.OK]
    name = healthy.PLACEMENT
    ignored = f"Placement {name} does not own it, so it is ignored"
    assert (found.check, found.message) == (
        "credentials",
        f"Placement {name}: delete PlacementDecision {healthy.NS}/former: {ignored}",
    )


def test_secrets_alone_are_in_no_role_of_ours() -> None:
    dump = replace(read(stored()), missing=(MissingRight("list", SECRET, healthy.NS),))
    [found] = [one for one in examined(dump) if one.check == "own-rights"]
    assert found.fix == f"kubectl auth can-i list secrets -n {healthy.NS}"


@pytest.mark.parametrize(
    ("how", "level", "fix"),
    [
        pytest.param(short_lived_jobs(1, 900), Level.OK, "", id="the hub has time to see the end"),
        pytest.param(short_lived_jobs(1, finished=True), Level.OK, "", id="the hub has seen it"),
        pytest.param(both(short_lived_jobs(1), gate(f"{TTL_GATE}: true")), Level.OK, "", id="gate on"),
        pytest.param(
            both(
                short_lived_jobs(1),
                put(KUEUE, *POD, "containers", 0, "image", "registry.k8s.io/kueue/kueue:v0.20.0"),
            ),
            Level.WARN,
            f"    {TTL_GATE}: true\n",
            id="Kueue has the gate",
        ),
    ],
)
def test_jobs_that_are_removed_early(how: How, level: Level, fix: str) -> None:
    objects = stored()
    how(objects)
    [found] = [one for one in examined(read(objects)) if one.check == "finished-jobs"]
    assert (found.level, fix in found.fix) == (level, True)


def test_without_the_right_to_jobs_it_is_unknown_which_are_removed_early() -> None:
    dump = replace(read(stored()), missing=(MissingRight("list", JOB),))
    [found] = [one for one in examined(dump) if one.check == "finished-jobs"]
    assert (found.level, found.message) == (Level.WARN, "unknown: the right to list jobs.batch is missing")


def test_every_rule_has_been_broken() -> None:
    rights = {"own-rights"}  # of the caller, not of the hub
    assert {rule.check for rule in RULES} - rights == {broken.check for broken in BREAKS}


def test_an_older_kueue_calls_access_providers_otherwise() -> None:
    objects = stored()
    image("0.18.6")(objects)
    data = objects["ConfigMap", healthy.NS, "kueue-manager-config"]["data"]
    key = "controller_manager_config.yaml"
    data[key] = data[key].replace("credentialsProviders", "accessProviders")
    assert [
        (one.check, one.level, one.message)
        for one in examined(read(objects))
        if one.check == "access-providers"
    ] == [
        (
            "access-providers",
            Level.FAIL,
            "Kueue 0.18.6 does not know accessProviders: they are called credentialsProviders there",
        )
    ]


def test_kueue_takes_an_empty_list_and_no_gates_beside_those_that_count() -> None:
    objects = stored()
    configured("    accessProviders:\n", "    credentialsProviders: []\n    accessProviders:\n")(objects)
    configured("featureGates:\n  MultiKueueClusterProfile: true\n", "featureGates:\n")(objects)
    args = ["--config=/controller_manager_config.yaml", "--feature-gates=MultiKueueClusterProfile=true"]
    put(KUEUE, *POD, "containers", 0, "args", args)(objects)
    assert levels(examined(read(objects))) == levels(of_the_healthy_hub())


def test_a_gate_may_be_turned_on_with_all_of_its_stage() -> None:
    objects = stored()
    configured("  MultiKueueClusterProfile: true\n", "  AllAlpha: true\n")(objects)
    assert levels(examined(read(objects))) == levels(of_the_healthy_hub())
    configured("  AllAlpha: true\n", "  AllAlpha: true\n  AllBeta: false\n")(objects)
    failed = [one.check for one in examined(read(objects)) if one.level is Level.FAIL]
    assert failed == ["multikueue-gate", "external-frameworks-gate"]


def second_check(objects: Objects) -> None:
    for key in (CHECK, PLACEMENT):
        other = copy.deepcopy(objects[key])
        other["metadata"]["name"] = "placement-b"
        if key == CHECK:
            other["spec"]["parameters"]["name"] = "placement-b"
        objects[*key[:2], "placement-b"] = other


@pytest.mark.parametrize(
    ("how", "fix"),
    [
        pytest.param(both(), "kubectl patch admissioncheck multikueue-demo1 ", id="ours is listed beside it"),
        pytest.param(
            unlisted("multikueue-demo1"),
            "kubectl edit admissioncheck multikueue-demo1  # parameters.name: placement-b or placement-demo1",
            id="listed nowhere",
        ),
    ],
)
def test_a_fix_names_existing_objects_and_leaves_choices_to_the_admin(how: How, fix: str) -> None:
    objects = stored()
    both(second_check, put(SENDER, "spec", "parameters", "name", "other"), how)(objects)
    [output] = [one for one in examined(read(objects)) if one.check == "multikueue-checks"]
    assert output.fix.startswith(fix)
    assert ('"name":"placement-demo1"' in output.fix) == ("patch" in fix)


def test_provisioned_credentials_are_not_fixed_by_hand() -> None:
    objects = stored()
    setting("CREDENTIALS_PROVISION", "managed-serviceaccount")(objects)
    del objects["Secret", healthy.NS, "multikueue-cluster3"]
    [output] = [one for one in examined(read(objects)) if one.check == "credentials"]
    accounts = "managedserviceaccounts.authentication.open-cluster-management.io"
    permissions = "clusterpermissions.rbac.open-cluster-management.io"
    assert output.message.startswith("cluster cluster3 of Placement placement-demo1 is left out: ")
    assert output.fix == f"kubectl describe {accounts},{permissions} -n cluster3"


def test_a_decision_that_cannot_be_read_needs_no_credentials() -> None:
    objects = stored()
    objects[DECISION]["status"]["decisions"].append({"clusterName": "", "reason": ""})
    [output] = [one for one in examined(read(objects)) if one.check == "credentials"]
    decision = "PlacementDecision kueue-system/placement-demo1-decision-1"
    why = "1 of its entries has no clusterName"
    message = f"{decision} of Placement placement-demo1 cannot be read: {why}"
    assert output == Finding("credentials", Level.WARN, message)


# -- connections, and the grace


def finding(check: str, *hows: How) -> tuple[Level, str]:
    objects = stored()
    both(*hows)(objects)
    [found] = [one for one in examined(read(objects)) if one.check == check]
    return found.level, found.message


def test_two_thousand_connections_are_counted() -> None:
    clusters = ("cluster2", "cluster3")
    many = [shared_worker(f"placement-{number}", name) for number in range(999) for name in clusters]
    figures = "Kueue keeps 2,001 connections for 3 workers, one for each Placement and cluster"
    message = f"set cluster-names to {{cluster}}: {figures}"
    assert finding("shared-connections", *many) == (Level.WARN, message)


def test_with_shared_names_those_of_before_only_have_to_leave() -> None:
    naming = setting("CLUSTER_NAMES", "{cluster}")
    assert finding("shared-connections", naming, shared_worker("placement-b", "cluster2")) == (
        Level.OK,
        "Kueue keeps 4 connections for 3 workers, until those of other names have gone",
    )


def test_a_kubeconfig_that_cannot_be_read_leads_to_a_worker_of_its_own() -> None:
    junk = put(("Secret", healthy.NS, "multikueue-cluster3"), "data", {"kubeconfig": "%"})
    assert finding("shared-connections", junk)[0] is Level.OK


TOKEN: dict[str, Any] = {"token": "t"}
CERTIFICATE: dict[str, Any] = {"client-certificate": "/tls.crt", "client-key": "/tls.key"}


@pytest.mark.parametrize(
    ("server", "level"),
    [("https://hub.example:6443/", Level.FAIL), ("https://worker.example:6443", Level.OK)],
)
def test_credentials_for_the_hub_make_it_its_own_worker(server: str, level: Level) -> None:
    objects = stored()
    text = kubeconfig(server=server, token="t")
    encoded = base64.b64encode(text).decode()
    put(("Secret", healthy.NS, "multikueue-cluster3"), "data", {"kubeconfig": encoded})(objects)
    findings = examined(replace(read(objects), server="https://hub.example:6443"))
    [found] = [one for one in findings if one.check == "hub-as-worker"]
    assert found.level is level
    assert ("its credentials are for https://hub.example:6443" in found.message) is (level is Level.FAIL)


@pytest.mark.parametrize(
    ("users", "clusters", "level"),
    [
        pytest.param([TOKEN, TOKEN], [{}, {}], Level.WARN, id="the same"),
        pytest.param([TOKEN, TOKEN], [{"tls-server-name": "a"}] * 2, Level.WARN, id="the same server name"),
        pytest.param(
            [TOKEN, TOKEN], [{"tls-server-name": "a"}, {"tls-server-name": "b"}], Level.OK, id="server name"
        ),
        pytest.param([TOKEN, TOKEN], [{"tls-server-name": "a"}, {}], Level.OK, id="one has a server name"),
        pytest.param([TOKEN, {"token": "u"}], [{}, {}], Level.OK, id="token"),
        pytest.param([TOKEN | {"as": "a"}, TOKEN | {"as": "b"}], [{}, {}], Level.OK, id="impersonation"),
        pytest.param(
            [CERTIFICATE, CERTIFICATE | {"client-certificate": "/b.crt"}], [{}, {}], Level.OK, id="files"
        ),
    ],
)
def test_only_the_same_server_and_user_are_certainly_one_worker(
    users: list[dict[str, Any]], clusters: list[dict[str, Any]], level: Level
) -> None:
    hows = []
    for name, user, cluster in zip(SECRETS, users, clusters, strict=True):
        content = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": "https://worker.example:6443"} | cluster}],
            "users": [{"name": "it", "user": user}],
        }
        encoded = base64.b64encode(json.dumps(content).encode()).decode()
        hows.append(put(name, "data", {"kubeconfig": encoded}))
    assert finding("shared-connections", *hows)[0] is level


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param(
            placed_jobs(4, 60),
            "unknown how long Kueue takes to place a job: the times of 4 of 5 Workloads are known",
            id="too few",
        ),
        pytest.param(
            both(placed_jobs(19, 2), placed_jobs(1, 300, "slow")),
            "Kueue takes 2 s (p90 of 20 Workloads) to place a job, of 60 s",
            id="one that is slow",
        ),
        pytest.param(
            both(placed_jobs(5, 20), placed_jobs(9, -30, "again")),
            "Kueue takes 20 s (p90 of 5 Workloads) to place a job, of 60 s",
            id="those that became Ready again after the placement do not count",
        ),
        pytest.param(
            both(placed_jobs(9, 30), setting("DISPATCHER", "true")),
            "--waiting-grace is not used, because of --dispatcher or --removal-policy Immediate",
            id="our dispatcher has no gate",
        ),
    ],
)
def test_a_grace_that_is_long_enough_or_not_used(how: How, message: str) -> None:
    assert finding("waiting-grace", how) == (Level.OK, message)


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
        *("kueue-crds", "ocm-crds", "inventory-crd"),  # by discovery
        *("frameworks", "controller-rights"),  # without a controller there is nothing to compare
    }


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_of_a_kind_that_alone_may_not_be_read_nothing_is_held_against_the_hub(kind: Kind) -> None:
    dump = read(stored())
    served = {all_kind: all_kind.at(all_kind.versions[0]) for all_kind in ALL_KINDS}
    spaces = ("", OURS, healthy.NS)
    missing = tuple(MissingRight("list", kind, space) for space in spaces)
    others = dict(dump.objects) | {kind: ()}
    findings = examined(replace(dump, objects=others, served=served, missing=missing))
    wrong = [one for one in findings if one.level is not Level.OK]
    assert {one.check for one in findings} == {rule.check for rule in RULES}
    assert [one for one in wrong if one.level is Level.FAIL or "unknown" not in one.message] == []


def test_a_controller_may_run_elsewhere_where_its_lease_may_not_be_read() -> None:
    objects = stored()
    without(CONTROLLER, LEASE)(objects)
    dump = read(objects)
    findings = examined(replace(dump, missing=(MissingRight("list", LEASE_KIND, healthy.NS),)))
    assert [one for one in findings if one.level is not Level.OK] == [
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
        Finding(
            "controller-settings",
            Level.WARN,
            "unknown, so the defaults are assumed: no Deployment or Lease of it was found: you may not list "
            "all leases",
            "kubectl get deployments -A -l app.kubernetes.io/name=placement-ac",
        ),
    ]


def test_where_there_is_no_kueue_nothing_is_said_of_its_configuration() -> None:
    objects = stored()
    without(KUEUE, CONFIG)(objects)
    wrong = {one.check: one for one in examined(read(objects)) if one.level is not Level.OK}
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
    wrong = [one for one in examined(read(objects)) if one.level is not Level.OK]
    assert [(one.check, one.level) for one in wrong] == [
        ("dispatcher-name", Level.WARN),
        ("controller-settings", Level.WARN),
    ]
    assert wrong[0].message.endswith(", if the controller uses the defaults: see controller-settings")


def test_settings_that_are_given_count(tmp_path: Path) -> None:
    [broken] = [
        kueue for kueue in KUEUES if kueue.id == "Kueue waits for our nominations, and there are none"
    ]
    objects = stored()
    broken.how(objects)
    dump, given = write_list(tmp_path / "dump.json", objects.values()), tmp_path / "settings.yaml"
    given.write_text("dispatcher: true")
    words = ["doctor", "-o", "json", "--from-dump", str(dump)]
    all_ok = {"ok": len(RULES)}
    for more, output in (((), {"ok": len(RULES) - 1, "fail": 1}), (("--config", str(given)), all_ok)):
        shown = commands.run(*words, *more)
        assert json.loads(shown.stdout)["summary"] == {"warn": 0, "fail": 0} | output


def test_a_dump_of_kueues_namespace_says_nothing_of_the_controller() -> None:
    kueues = [obj for key, obj in stored().items() if key[1] != OURS and key != LEASE]
    wrong = [one for one in examined(dump_of(kueues)) if one.level is not Level.OK]
    fix = f"kubectl get deployments.apps -n {OURS} -o yaml > deployments.yaml"
    output = f"unknown: the dump has no deployments of namespace {OURS}"
    assert wrong == [
        Finding(check, Level.WARN, output, fix) for check in ("controller", "controller-settings")
    ]


@pytest.mark.parametrize("junk", [None, 0, "'$(x)", [], {}, [[None]], [{"name": 1}], {"a": {}}], ids=repr)
def test_no_field_of_any_shape_makes_it_fall(junk: Any) -> None:
    """Of each object, every so-manieth field is such."""
    places = [(key, path) for key, obj in stored().items() for path in paths(obj) if path[0] in FUZZED]
    for key, path in places[len(repr(junk)) :: 61]:
        objects = stored()
        put(key, *path, junk)(objects)
        assert {one.check for one in examined(read(objects))} == {rule.check for rule in RULES}


FUZZED = ("spec", "status", "data", "rules", "subjects", "roleRef")


def paths(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield (*at, key)
        yield from paths(value, (*at, key))


HOSTILE = "x'\nEOF\n$(touch pwned) `touch pwned`; touch pwned #"


@pytest.mark.parametrize(
    "how",
    [
        put(PLACEMENT, "spec", "clusterSets", [HOSTILE]),
        put(("ManagedClusterSetBinding", healthy.NS, "spoke"), "spec", "clusterSet", HOSTILE),
        both(
            put(worker("cluster2"), "spec", "clusterSource", "kubeConfig", "location", HOSTILE),
            said(worker("cluster2"), "False", "ClientConnectionFailed", HOSTILE),
        ),
        both(
            put(worker("cluster1"), "spec", "clusterSource", "clusterProfileRef", "name", HOSTILE),
            said(worker("cluster1"), "False", "BadClusterProfile", HOSTILE),
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
        both(
            put(KUEUE, "spec", "template", "spec", "serviceAccountName", HOSTILE),
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
