"""
Writes with the controller's account, and what the policy in config/components/admission-policy says to each.

The accepted ones are those that the plans make; the others are what somebody could do who has the account.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, NamedTuple

import yaml

from placement_ac.config.policy import worker_policy_rules
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    ANNOTATION_ADOPT,
    MANIFEST_WORK,
    PERMISSION,
    SECRET,
    Kind,
)
from placement_ac.core.api.decode import managed_cluster as decoded
from placement_ac.core.api.decode import manifest_work
from placement_ac.core.credentials.provisioning import plan_provisioning
from placement_ac.core.inputs.rights import FRAMEWORKS, GATES, RunningKueue
from placement_ac.core.inputs.worker_setup import (
    HubClusterQueue,
    SetupUsage,
    WorkerSetupInputs,
    WorkerSetupPolicy,
)
from placement_ac.core.plan.diff import Apply
from placement_ac.core.worker_setup.manifests import wanted_setup, work_spec
from placement_ac.core.worker_setup.planning import plan_worker_setup
from tests.support.builders import (
    NOW,
    PROVISIONING,
    check,
    decision,
    managed_cluster,
    our_grant,
    placement,
    provisioning_inputs,
    token,
    world,
)
from tests.support.installation import CONFIG

Object = dict[str, Any]

FILE: Final = CONFIG / "components" / "admission-policy" / "policy.yaml"
CLUSTER: Final = "default"
"""A cluster's namespace, and Kueue's: each hub has it."""
TOKEN: Final = "system:serviceaccount:placement-ac-system:placement-ac"

# The messages of the policy, each from its first words on.
NOT_OURS: Final = "placement-ac may only change what"
NAME: Final = "placement-ac may only write objects of its names"
SECRETS: Final = "placement-ac may only write Secrets"
ROTATION: Final = "placement-ac may only set the rotation"
SUBJECT: Final = "placement-ac may only give rights to"
RIGHTS: Final = "placement-ac may only give the rights"
KINDS: Final = "placement-ac may only make namespaces"
APPLY: Final = "placement-ac may only apply objects"
ORPHANS: Final = "placement-ac may only make ManifestWorks"
ACCEPTED: Final = ""


class Write(NamedTuple):
    """A write: of `after`, or a delete of `before` without it. `before`: what is there."""

    kind: Kind
    after: Object | None
    before: Object | None = None


def policy() -> Object:
    """Return the `spec` of the policy."""
    spec: Object = next(iter(yaml.safe_load_all(FILE.read_text("utf-8"))))["spec"]
    return spec


def all_rights() -> tuple[Object, ...]:
    """Return the rules of every job kind and gate of Kueue, and those of the controller's own reading."""
    settings = Settings(
        frameworks=tuple(FRAMEWORKS),
        dispatcher=True,
        report_scores=True,
        score_nodes=True,
        look_for=("jobs", "integrations"),
    )
    kueue = RunningKueue(None, tuple((gate, True) for gate in GATES))
    return tuple(dict(rule) for rule in worker_policy_rules(settings, kueue))


# -- what the controller writes


def _provisioned(kind: Kind, *there: Any) -> Object:
    """Return what it applies of that kind for a selected cluster."""
    provisioning = replace(PROVISIONING, rules=all_rights())
    selected = [check(), placement(), decision(CLUSTER), managed_cluster(CLUSTER)]
    plan = plan_provisioning(provisioning_inputs(world(selected, *there, provisioning=provisioning), CLUSTER))
    [body] = [
        action.body
        for phase in plan.phases
        for action in phase
        if isinstance(action, Apply) and action.kind is kind
    ]
    return _on_the_server(kind, body)


def _on_the_server(kind: Kind, body: Any) -> Object:
    """Return an object as the server defaults it, in the namespace of the tests, where its owner is not."""
    made = deepcopy(dict(body))
    made["metadata"]["namespace"] = CLUSTER
    for field in ("ownerReferences", "uid"):
        made["metadata"].pop(field, None)
    made |= {"type": "Opaque"} if kind is SECRET else {}
    return {"apiVersion": kind.at(kind.versions[0]).api_version, "kind": kind.kind} | made


def _setup(local_queues: int, *, leaves: bool = False) -> Object:
    """Return the ManifestWork of a cluster: one that `leaves` is written before it is deleted."""
    quota = [{"name": "cpu", "nominalQuota": "10"}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": quota}]}
    queues = tuple((f"team-{number:04}", "jobs") for number in range(local_queues))
    inputs = WorkerSetupInputs(
        CLUSTER,
        NOW,
        policy=WorkerSetupPolicy(enabled=True),
        managed_cluster=decoded(
            {"metadata": {"name": CLUSTER}, "status": {"allocatable": {"cpu": "9"}}}, with_allocatable=True
        ),
        queues=(HubClusterQueue("q", {"resourceGroups": [group], "cohortName": "all"}, queues),),
        flavors={"f": {"nodeLabels": {"gpu": "no"}}},
        usage=SetupUsage({"u": "check"}, selected=True),
    )
    if leaves:
        mine = [{"manager": "placement-ac", "operation": "Apply", "fieldsV1": {}}]
        meta = {"name": "placement-ac-queues", "namespace": CLUSTER, "generation": 1, "managedFields": mine}
        spec = work_spec(wanted_setup(inputs), None, inputs.kueue_namespace)
        inputs = replace(inputs, work=manifest_work({"metadata": meta, "spec": spec}), usage=SetupUsage())
    [[action]] = plan_worker_setup(inputs).phases
    assert isinstance(action, Apply)
    return _on_the_server(MANIFEST_WORK, action.body)


_ACCOUNT: Final = _provisioned(ACCOUNT)
_PERMISSION: Final = _provisioned(PERMISSION, our_grant(ACCOUNT, CLUSTER))
_SECRET: Final = _provisioned(SECRET, our_grant(ACCOUNT, CLUSTER), token(CLUSTER))
_WORK: Final = _setup(2)
LARGEST: Final = 700
"""LocalQueues in a namespace each: about as many as a ManifestWork may hold. CEL's budget must be enough."""


def _with(body: Object, change: Callable[[Object], object]) -> Object:
    made = deepcopy(body)
    change(made)
    return made


def _named(body: Object, name: str, **metadata: Object) -> Object:
    return {**body, "metadata": {**body["metadata"], "name": name, **metadata}}


def _theirs(body: Object, name: str) -> Object:
    return _named(body, name, labels={})


def _handed_over(body: Object) -> Object:
    return _named(body, "multikueue", labels={}, annotations={ANNOTATION_ADOPT: "true"})


ACCEPTED_WRITES: Final = {
    "an account": Write(ACCOUNT, _ACCOUNT),
    "the rights of every job kind": Write(PERMISSION, _PERMISSION),
    "a kubeconfig": Write(SECRET, _SECRET),
    "queues of a worker": Write(MANIFEST_WORK, _WORK),
    "as many queues as there may be": Write(MANIFEST_WORK, _setup(LARGEST)),
    "another account": Write(ACCOUNT, _ACCOUNT, _ACCOUNT),
    "more rights": Write(
        PERMISSION,
        _PERMISSION,
        _with(_PERMISSION, lambda body: body["spec"]["clusterRole"]["rules"].pop()),
    ),
    "a renewed kubeconfig": Write(SECRET, _SECRET, _SECRET),
    "queues before they go": Write(MANIFEST_WORK, _setup(2, leaves=True), _WORK),
    "an account that was handed over": Write(ACCOUNT, _named(_ACCOUNT, "multikueue"), _handed_over(_ACCOUNT)),
    "the end of an account": Write(ACCOUNT, None, _ACCOUNT),
    "the end of rights": Write(PERMISSION, None, _PERMISSION),
    "the end of a kubeconfig": Write(SECRET, None, _SECRET),
    "the end of queues": Write(MANIFEST_WORK, None, _WORK),
    "the end of a former account": Write(ACCOUNT, None, _named(_ACCOUNT, "former")),
    "the end of an account that was handed over": Write(ACCOUNT, None, _handed_over(_ACCOUNT)),
}

# -- and what it would not


def _rule(groups: str, resources: str, verbs: str, **more: Any) -> Object:
    """A ClusterPermission with one rule more."""
    rule = {"apiGroups": [groups], "resources": [resources], "verbs": [verbs]} | more
    return _with(_PERMISSION, lambda body: body["spec"]["clusterRole"]["rules"].append(rule))


def _binding(**fields: Any) -> Object:
    return _with(_PERMISSION, lambda body: body["spec"]["clusterRoleBinding"].update(fields))


def _permission(**fields: Any) -> Object:
    return _with(_PERMISSION, lambda body: body["spec"].update(fields))


def _first(kind: str, **fields: Any) -> Object:
    """The ManifestWork with other fields of its first object of a kind."""

    def change(body: Object) -> None:
        manifests = body["spec"]["workload"]["manifests"]
        next(one for one in manifests if one["kind"] == kind).update(fields)

    return _with(_WORK, change)


def _config(resource: str, **fields: Any) -> Object:
    """The same with another way to apply it."""

    def change(body: Object) -> None:
        configs = body["spec"]["manifestConfigs"]
        next(one for one in configs if one["resourceIdentifier"]["resource"] == resource).update(fields)

    return _with(_WORK, change)


def _spec(**fields: Any) -> Object:
    return _with(_WORK, lambda body: body["spec"].update(fields))


_ADMIN: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
_SOMEBODY: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
_FORCE: Final = {"force": True, "fieldManager": "work-agent-placement-ac"}
_ANOTHER_MANAGER: Final = {"force": False, "fieldManager": "work-agent"}
_CLUSTER_ROLE_BINDING: Final = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mallory"},
    "roleRef": _ADMIN,
    "subjects": [_SOMEBODY],
}

REFUSED_WRITES: Final = {
    # anyone's objects
    "another's account": (Write(ACCOUNT, _named(_ACCOUNT, "theirs")), NAME),
    "another cluster's label": (
        Write(
            ACCOUNT,
            _with(
                _ACCOUNT,
                lambda b: b["metadata"]["labels"].update(
                    {"open-cluster-management.io/cluster-name": "other"}
                ),
            ),
        ),
        NAME,
    ),
    "a change of another's account": (Write(ACCOUNT, _ACCOUNT, _theirs(_ACCOUNT, "placement-ac")), NOT_OURS),
    "the end of another's account": (Write(ACCOUNT, None, _theirs(_ACCOUNT, "theirs")), NOT_OURS),
    "the end of another's rights": (Write(PERMISSION, None, _theirs(_PERMISSION, "theirs")), NOT_OURS),
    "the end of another's ManifestWork": (Write(MANIFEST_WORK, None, _theirs(_WORK, "theirs")), NOT_OURS),
    "the end of another's Secret": (Write(SECRET, None, _theirs(_SECRET, "theirs")), NOT_OURS),
    "an account that ends by itself": (
        Write(ACCOUNT, _with(_ACCOUNT, lambda b: b["spec"].update(ttlSecondsAfterCreation=60))),
        ROTATION,
    ),
    # rights on a worker
    "every right": (Write(PERMISSION, _rule("*", "*", "*")), RIGHTS),
    "all Secrets": (Write(PERMISSION, _rule("", "secrets", "get")), RIGHTS),
    "all ConfigMaps": (Write(PERMISSION, _rule("", "configmaps", "get", resourceNames=["any"])), RIGHTS),
    "a shell in Pods": (Write(PERMISSION, _rule("", "pods/exec", "create")), RIGHTS),
    "any verb on jobs": (Write(PERMISSION, _rule("batch", "jobs", "*")), RIGHTS),
    "paths of the API server": (
        Write(PERMISSION, _rule("", "pods", "get", nonResourceURLs=["/metrics"])),
        RIGHTS,
    ),
    "cluster-admin": (Write(PERMISSION, _binding(roleRef=_ADMIN)), SUBJECT),
    "rights for somebody": (Write(PERMISSION, _binding(subject=_SOMEBODY)), SUBJECT),
    "rights for somebody else, too": (Write(PERMISSION, _binding(subjects=[_SOMEBODY])), SUBJECT),
    "cluster-admin beside it": (
        Write(
            PERMISSION,
            _permission(clusterRoleBindings=[{"name": "m", "roleRef": _ADMIN, "subject": _SOMEBODY}]),
        ),
        SUBJECT,
    ),
    "a role beside it": (
        Write(
            PERMISSION,
            _permission(
                roles=[
                    {
                        "namespace": "kube-system",
                        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
                    }
                ]
            ),
        ),
        SUBJECT,
    ),
    # Secrets in Kueue's namespace
    "a token of Kueue's account": (
        Write(
            SECRET,
            _named(
                _SECRET | {"type": "kubernetes.io/service-account-token"},
                _SECRET["metadata"]["name"],
                annotations={"kubernetes.io/service-account.name": "kueue-controller-manager"},
            ),
        ),
        SECRETS,
    ),
    "a Secret with another key": (
        Write(SECRET, _with(_SECRET, lambda b: b["data"].update(ca="eA=="))),
        SECRETS,
    ),
    "another's Secret": (Write(SECRET, _named(_SECRET, "multikueue")), NAME),
    # objects on a worker
    "another ManifestWork": (Write(MANIFEST_WORK, _named(_WORK, "theirs")), NAME),
    "a ClusterRoleBinding": (
        Write(
            MANIFEST_WORK,
            _with(_WORK, lambda b: b["spec"]["workload"]["manifests"].append(_CLUSTER_ROLE_BINDING)),
        ),
        KINDS,
    ),
    "another group's object": (
        Write(MANIFEST_WORK, _first("ClusterQueue", apiVersion="kueue.example.com/v1")),
        KINDS,
    ),
    "a label of a namespace": (
        Write(
            MANIFEST_WORK,
            _first(
                "Namespace",
                metadata={
                    "name": "team-0000",
                    "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
                },
            ),
        ),
        KINDS,
    ),
    "another Deployment": (
        Write(MANIFEST_WORK, _first("Deployment", metadata={"name": "mallory", "namespace": "kueue-system"})),
        KINDS,
    ),
    "another account of the agent": (
        Write(
            MANIFEST_WORK,
            _spec(
                executor={
                    "subject": {"type": "ServiceAccount", "serviceAccount": {"name": "a", "namespace": "b"}}
                }
            ),
        ),
        KINDS,
    ),
    "Kueue's Deployment, written": (
        Write(MANIFEST_WORK, _config("deployments", updateStrategy={"type": "Update"})),
        APPLY,
    ),
    "a namespace, overwritten": (
        Write(MANIFEST_WORK, _config("namespaces", updateStrategy={"type": "Update"})),
        APPLY,
    ),
    "a queue, by force": (
        Write(
            MANIFEST_WORK,
            _config("clusterqueues", updateStrategy={"type": "ServerSideApply", "serverSideApply": _FORCE}),
        ),
        APPLY,
    ),
    "a queue, as another work": (
        Write(
            MANIFEST_WORK,
            _config(
                "clusterqueues",
                updateStrategy={"type": "ServerSideApply", "serverSideApply": _ANOTHER_MANAGER},
            ),
        ),
        APPLY,
    ),
    "a queue without a config": (
        Write(
            MANIFEST_WORK,
            _config("clusterqueues", resourceIdentifier={"resource": "clusterqueues", "name": "q"}),
        ),
        APPLY,
    ),
    "namespaces that go with it": (
        Write(MANIFEST_WORK, _spec(deleteOption={"propagationPolicy": "Foreground"})),
        ORPHANS,
    ),
    "a namespace that goes with it": (
        Write(
            MANIFEST_WORK,
            _with(_WORK, lambda b: b["spec"]["deleteOption"]["selectivelyOrphans"]["orphaningRules"].pop(0)),
        ),
        ORPHANS,
    ),
}

WRITES: Final = {name: (write, ACCEPTED) for name, write in ACCEPTED_WRITES.items()} | REFUSED_WRITES
