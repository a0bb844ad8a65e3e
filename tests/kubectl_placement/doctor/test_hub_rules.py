"""`doctor`: each of its lines breaks when just that thing is broken, and the others do not."""

import base64
import copy
import json
import pkgutil
import re
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
import yaml

from kubectl_placement import doctor
from kubectl_placement.doctor import fleet_rules, worker_rules
from kubectl_placement.doctor.finding import DoctorRule, Finding, Level
from kubectl_placement.doctor.hub_rules import RULES
from kubectl_placement.doctor.kueue import ORDER_GATE, REUSE_LIMITS_GATE
from kubectl_placement.hub.dump import MissingRight
from kubectl_placement.hub.dump_files import dump_of
from placement_ac.core.api.constants import JOB, SECRET
from tests.kubectl_placement.doctor.broken_hub import DECISION, PLACEMENT
from tests.kubectl_placement.doctor.broken_kueue import ARGS, CLAIMING, POD, QUOTA
from tests.kubectl_placement.doctor.broken_scale import (
    SECRETS,
    TTL_GATE,
    claim,
    shared_worker,
    short_lived_jobs,
)
from tests.kubectl_placement.doctor.broken_setups import (
    CHECK,
    CONTROLLER,
    KUEUE,
    LEASE,
    QUEUE,
    SENDER,
    Break,
    How,
    Objects,
    add,
    both,
    configured,
    gate,
    image,
    of_release,
    put,
    setting,
    unlisted,
    without,
)
from tests.kubectl_placement.doctor.examined_hub import (
    BREAKS,
    examined,
    levels,
    of_the_healthy_hub,
    read,
    stored,
)
from tests.support import healthy
from tests.support.builders import kubeconfig
from tests.support.healthy import Key
from tests.support.kubeconfigs import one_context


def test_on_a_hub_that_is_set_up_right_every_line_is_ok() -> None:
    assert [one for one in of_the_healthy_hub() if one.is_problem or one.fix] == []
    assert [one.check for one in of_the_healthy_hub()] == [rule.check for rule in RULES]


def test_so_it_is_on_the_release_before() -> None:
    objects = stored()
    of_release("0.19.2")(objects)
    findings = examined(read(objects))
    assert levels(findings) == levels(of_the_healthy_hub())
    assert "Kueue 0.19.2" in [one.message for one in findings if one.check == "kueue-release"]


def test_every_rule_is_in_a_table() -> None:
    names = (module.name for module in pkgutil.iter_modules(doctor.__path__))
    modules = [vars(import_module(f"{doctor.__name__}.{name}")) for name in names]
    rules = {value.check for module in modules for value in module.values() if isinstance(value, DoctorRule)}
    assert rules == {rule.check for rule in (*RULES, *worker_rules.RULES, *fleet_rules.RULES)}


def test_so_it_is_in_a_dump_of_it() -> None:
    assert levels(examined(dump_of(healthy.objects()))) == levels(of_the_healthy_hub())


INSTALLS = re.compile(
    r"clusteradm (init|install|join)|cluster-inventory-api|kind: Placement$|-k config/|helm install",
    re.MULTILINE,
)
ASKED_FOR = {"cluster-profile-gate": "Kueue's gate needs it, and Kueue exits without it"}
"""Checks whose fix installs something, and who has asked for it."""


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.id)
def test_each_problem_is_the_only_finding_and_has_its_fix(broken: Break) -> None:
    """No fix widens what is selected, or installs what was not asked for."""
    objects = stored()
    broken.how(objects)
    findings = examined(read(objects))
    others = dict.fromkeys(broken.unknown, Level.WARN) | {broken.check: broken.level}
    assert levels(findings) == levels(of_the_healthy_hub()) | others
    output = [one for one in findings if one.check == broken.check]
    assert output == [Finding(broken.check, broken.level, broken.message, broken.fix)]
    assert [one for one in findings if one.check in broken.unknown and "unknown" not in one.message] == []
    for one in findings:
        assert one.check in ASKED_FOR or not INSTALLS.search(one.fix), one
        if "kueue/releases/download" in one.fix:  # of a Kueue that is there
            assert KUEUE in objects, one


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
    [found] = [one for one in findings if one.is_problem]
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
        *(
            pytest.param(
                both(short_lived_jobs(1), of_release(release)),
                Level.WARN,
                f"# featureGates: {TTL_GATE}: true\n" if has_gate else "kubectl patch job ",
                id=f"{release} {'has' if has_gate else 'does not have'} the gate",
            )
            for release, has_gate in (("0.20.6", True), ("0.19.3", True), ("0.19.2", False))
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
    with_agents = {"worker-setup"}  # in test_worker_setup_on_hub
    assert {rule.check for rule in RULES} - rights - with_agents == {broken.check for broken in BREAKS}


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


def gates_line(*hows: How) -> dict[str, str]:
    """Source → its gates, of the finding about gates."""
    level, message = finding("kueue-gates", *hows)
    assert level is Level.OK
    return dict(part.split(": ", 1) for part in message.split("; "))


PREEMPTION = "MultiKueueOrchestratedPreemption"
RAY = "MultiKueueRayInTreeAutoscaling"


def test_the_gates_that_matter_are_named_with_their_source_and_what_follows() -> None:
    config_map = f"by ConfigMap {healthy.NS}/kueue-manager-config"
    assert gates_line() == {
        "by default in Kueue 0.20.6": (
            "ElasticJobsViaWorkloadSlices on (accounts on workers need patch jobs.batch),"
            f" {PREEMPTION} on (accounts on workers need update workloads/status.kueue.x-k8s.io),"
            f" {QUOTA} off, {RAY} off, {TTL_GATE} off (see finished-jobs),"
            f" {ORDER_GATE} on (Kueue's Incremental dispatcher follows the list's order), {REUSE_LIMITS_GATE}"
            " on (requests to a worker have the limits of Kueue's clientConnection),"
            " WorkloadRequestUseMergePatch off"
        ),
        config_map: "MultiKueueClusterProfile on (credentials may be ClusterProfiles)",
    }
    older = gates_line(of_release("0.19.2"))
    assert f"{PREEMPTION} off, {QUOTA} off, Multi" in older["by default in Kueue 0.19.2"], (
        "it has no gate of Ray's"
    )
    all_alpha = gates_line(gate("AllAlpha: true"), setting("CREDENTIALS_PROVISION", "managed-serviceaccount"))
    queues = "made accounts get list clusterqueues.kueue.x-k8s.io and watch"
    assert f"{QUOTA} on ({queues}" in all_alpha[f"by AllAlpha of ConfigMap {healthy.NS}/kueue-manager-config"]
    args = ["--feature-gates=MultiKueueClusterProfile=true,MultiKueueOrchestratedPreemption=false"]
    by_flag = gates_line(
        configured("featureGates:\n  MultiKueueClusterProfile: true\n", ""), put(KUEUE, *ARGS, args)
    )
    assert by_flag["by --feature-gates"].startswith(f"{PREEMPTION} off, MultiKueueClusterProfile on")
    unknown = gates_line(put(KUEUE, *POD, "containers", 0, "image", "kueue:latest"))
    assert PREEMPTION in unknown["assumed, because Kueue's release is unknown"]
    assert QUOTA in unknown["by default in each release"]


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
    assert finding("duplicate-clusters", *many) == (Level.WARN, message)


def test_with_shared_names_those_of_before_only_have_to_leave() -> None:
    naming = setting("CLUSTER_NAMES", "{cluster}")
    assert finding("duplicate-clusters", naming, shared_worker("placement-b", "cluster2")) == (
        Level.OK,
        "Kueue keeps 4 connections for 3 workers, until those of other names have gone",
    )


def test_a_kubeconfig_that_cannot_be_read_leads_to_a_worker_of_its_own() -> None:
    junk = put(("Secret", healthy.NS, "multikueue-cluster3"), "data", {"kubeconfig": "%"})
    assert finding("duplicate-clusters", junk)[0] is Level.OK


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
        pytest.param(
            [TOKEN, TOKEN], [{"tls-server-name": "a"}, {"tls-server-name": "b"}], Level.OK, id="server name"
        ),
        pytest.param([TOKEN, TOKEN], [{"tls-server-name": "a"}, {}], Level.OK, id="one has a server name"),
        pytest.param([TOKEN, {"token": "u"}], [{}, {}], Level.WARN, id="another token"),
        pytest.param([TOKEN, TOKEN], [{}, {"server": "https://worker.example:6443/b"}], Level.OK, id="path"),
        pytest.param([TOKEN, TOKEN], [{}, {"proxy-url": "http://proxy.example"}], Level.OK, id="proxy"),
        pytest.param(
            [CERTIFICATE, CERTIFICATE | {"client-certificate": "/b.crt"}], [{}, {}], Level.OK, id="files"
        ),
    ],
)
def test_only_the_same_server_name_proxy_and_authority_may_be_one_worker(
    users: list[dict[str, Any]], clusters: list[dict[str, Any]], level: Level
) -> None:
    hows = []
    for name, user, cluster in zip(SECRETS, users, clusters, strict=True):
        content = one_context({"server": "https://worker.example:6443"} | cluster, user)
        encoded = base64.b64encode(json.dumps(content).encode()).decode()
        hows.append(put(name, "data", {"kubeconfig": encoded}))
    assert finding("duplicate-clusters", *hows)[0] is level
    told_apart = [claim("cluster2", "x"), claim("cluster3", "y")]
    assert finding("duplicate-clusters", *hows, *told_apart)[0] is (
        level if users[0] == users[1] else Level.OK
    )


@pytest.mark.parametrize(
    ("change", "level"),
    [
        pytest.param(both(add(CLAIMING)), Level.WARN, id="no mapping"),
        pytest.param(
            both(
                add(CLAIMING),
                configured(
                    "integrations:\n",
                    "resources: {deviceClassMappings: [{name: g, deviceClassNames: [g]}]}\nintegrations:\n",
                ),
            ),
            Level.OK,
            id="a mapping",
        ),
        pytest.param(
            both(add(CLAIMING), put(("Workload", "default", "claims"), "status", "clusterName", "p-a")),
            Level.OK,
            id="it runs",
        ),
    ],
)
def test_claims_without_a_mapping(change: How, level: Level) -> None:
    objects = stored()
    change(objects)
    assert [one.level for one in examined(read(objects)) if one.check == "resource-claims"] == [level]
