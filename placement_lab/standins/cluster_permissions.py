"""
The decisions of OCM's cluster-permission controller and its work agent. Pure.

Source: cluster-permission at 6a3e08a (June 2026), controllers/, and ocm pkg/work/spoke for the messages of a
ManifestWork's conditions. Not simulated: `spec.validate`, and namespace selectors (they match nothing).
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from placement_ac.core.api.constants import ACCOUNT, ADDON, PERMISSION, Kind
from placement_ac.kube.client import Object
from placement_lab.standins.managed_service_accounts import with_condition

ADDON_NAME: Final = "managed-serviceaccount"
WORK: Final = Kind("work.open-cluster-management.io", "ManifestWork", "manifestworks", True, ("v1",))
WORK_FINALIZER: Final = "cluster.open-cluster-management.io/manifest-work-cleanup"
"""The work agent's finalizer, removed when the applied objects are deleted from the worker."""
RBAC: Final = "rbac.authorization.k8s.io"
RBAC_KINDS: Final = {
    kind.kind: kind
    for kind in (
        Kind(RBAC, "ClusterRole", "clusterroles", False, ("v1",)),
        Kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", False, ("v1",)),
        Kind(RBAC, "Role", "roles", True, ("v1",)),
        Kind(RBAC, "RoleBinding", "rolebindings", True, ("v1",)),
    )
}
"""The kinds that a ClusterPermission creates on the worker, by name."""
APPLIED: Final = "AppliedRBACManifestWork"

_STATUS_FIELDS: Final = {
    "ClusterRole": "clusterRoles",
    "ClusterRoleBinding": "clusterRoleBindings",
    "Role": "roles",
    "RoleBinding": "roleBindings",
}


class BuildError(Exception):
    """The ManifestWork of a ClusterPermission cannot be built; the message is the controller's."""


# ClusterPermission -> ManifestWork


def validation_failure(permission: Object, *, is_cluster: bool) -> tuple[str, str] | None:
    """Return reason and message of a failed condition `Validation`, which is never reset; None if valid.

    `is_cluster`: whether the namespace has the name of a ManagedCluster.
    """
    spec = permission["spec"]
    if not any(spec.get(field) for field in ("clusterRoleBinding", "clusterRoleBindings", "roleBindings")):
        return "FailedValidationNoBindingsDefined", "no bindings defined"
    if not is_cluster:
        return "FailedValidationNotInManagedClusterNamespace", "namespace value is not a managed cluster"
    return None


def names_accounts(permission: Object) -> bool:
    """Return whether any subject is a ManagedServiceAccount."""
    return any(_is_account(subject) for binding in _bindings(permission) for subject in _subjects(binding))


def work_name(permission: Object) -> str:
    return f"{permission['metadata']['name']}-{permission['metadata']['uid'][:5]}"


def work_of(permission: Object, accounts: Collection[str], addon: Object | None) -> Object:
    """Return the ManifestWork of a ClusterPermission. Raises BuildError.

    `accounts`: the ManagedServiceAccounts of its namespace, by name; `addon`: their ManagedClusterAddOn.
    """
    metadata = permission["metadata"]
    owner = {
        "apiVersion": PERMISSION.at("v1alpha1").api_version,
        "kind": PERMISSION.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": WORK.at("v1").api_version,
        "kind": WORK.kind,
        "metadata": {
            "name": work_name(permission),
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "spec": {"workload": {"manifests": _payload(permission, accounts, addon)}},
    }


def owner_of(work: Object) -> str:
    """Return the name of the ClusterPermission that owns a ManifestWork, "" if none does."""
    owners = work["metadata"].get("ownerReferences") or ()
    return next((str(owner["name"]) for owner in owners if owner["kind"] == PERMISSION.kind), "")


def _payload(permission: Object, accounts: Collection[str], addon: Object | None) -> list[Object]:
    spec, name = permission["spec"], permission["metadata"]["name"]
    made: list[Object] = []
    if spec.get("clusterRole"):
        made.append(_rbac_object("ClusterRole", name, rules=spec["clusterRole"]["rules"]))
    for binding in spec.get("clusterRoleBindings") or [spec.get("clusterRoleBinding")]:
        if binding:
            role = binding.get("roleRef") or _role("ClusterRole", name)
            subjects = _resolved(binding, accounts, addon)
            bound = binding.get("name") or name
            made.append(_rbac_object("ClusterRoleBinding", bound, roleRef=role, subjects=subjects))
    made += [
        _rbac_object("Role", name, _namespace_of(role, "Role"), rules=role["rules"])
        for role in spec.get("roles") or ()
    ]
    for binding in spec.get("roleBindings") or ():
        namespace, bound = _namespace_of(binding, "RoleBinding"), binding.get("name") or name
        subjects, role = _resolved(binding, accounts, addon), _role_of(binding, name)
        made.append(_rbac_object("RoleBinding", bound, namespace, roleRef=role, subjects=subjects))
    return made


def _rbac_object(kind: str, name: str, namespace: str = "", **content: object) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **content}


def _role(kind: str, name: str) -> Object:
    return {"apiGroup": RBAC, "kind": kind, "name": name}


def _role_of(binding: Object, name: str) -> Object:
    given = binding["roleRef"]
    group, role = given.get("apiGroup", ""), given.get("name", "")
    if bool(group) != bool(role):
        where, missing = binding["namespace"], "Name" if group else "APIGroup"
        raise BuildError(f"the RoleBinding for Namespace {where} missing {missing} for the RoleRef")
    return _role(given["kind"], role or name)


def _namespace_of(entry: Object, kind: str) -> str:
    namespace, selector = entry.get("namespace", ""), entry.get("namespaceSelector")
    if not namespace and selector is None:
        raise BuildError(f"both {kind} Namespace and NamespaceSelector cannot be nil and empty")
    if namespace and selector is not None:
        raise BuildError(f"both {kind} Namespace and NamespaceSelector cannot populated at the same time")
    if not namespace:
        raise BuildError("unable to find any Namespace using NamespaceSelector")
    return str(namespace)


def _bindings(permission: Object) -> Iterator[Object]:
    spec = permission["spec"]
    if spec.get("clusterRoleBinding"):
        yield spec["clusterRoleBinding"]
    yield from spec.get("clusterRoleBindings") or ()
    yield from spec.get("roleBindings") or ()


def _subjects(binding: Object) -> list[Object]:
    return list(binding.get("subjects") or [binding["subject"]])


def _is_account(subject: Object) -> bool:
    return bool(subject.get("apiGroup") == ACCOUNT.group and subject["kind"] == ACCOUNT.kind)


def _resolved(binding: Object, accounts: Collection[str], addon: Object | None) -> list[Object]:
    """Return the subjects; ManagedServiceAccounts become ServiceAccounts in the agent's namespace."""
    subjects = _subjects(binding)
    named = [subject["name"] for subject in subjects if _is_account(subject)]
    missing = next((name for name in named if name not in accounts), None)
    if missing is not None:
        raise BuildError(f'{ACCOUNT.kind}.{ACCOUNT.group} "{missing}" not found')
    if named and addon is None:
        raise BuildError(f'{ADDON.kind}.{ADDON.group} "{ADDON_NAME}" not found')
    namespace = _namespace_of_agent(addon)
    return [
        {"kind": "ServiceAccount", "namespace": namespace, "name": subject["name"]}
        if _is_account(subject)
        else subject
        for subject in subjects
    ]


def _namespace_of_agent(addon: Object | None) -> str:
    """Return the agent's namespace on the worker from its ManagedClusterAddOn."""
    addon = addon or {}
    status, spec = addon.get("status") or {}, addon.get("spec") or {}
    return str(status.get("namespace") or spec.get("installNamespace", ""))


# the work agent


def resource_meta(index: int, manifest: Object) -> Object:
    """Return the `resourceMeta` of a manifest."""
    kind, metadata = RBAC_KINDS[manifest["kind"]], manifest["metadata"]
    return {
        "ordinal": index,
        "group": kind.group,
        "version": "v1",
        "kind": kind.kind,
        "resource": kind.plural,
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
    }


def applied_resources(work: Object) -> list[Object]:
    """Return the `resourceMeta` of the objects that the work agent has applied."""
    there = ((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ()
    return [dict(entry["resourceMeta"]) for entry in there]


def identity_of(meta: Object) -> tuple[str, str, str]:
    """Return kind, namespace and name in a `resourceMeta`."""
    return meta["kind"], meta.get("namespace", ""), meta["name"]


def work_status(work: Object, failures: dict[int, str], now: float) -> Object:
    """Return a ManifestWork's status after applying it. `failures`: messages by index of the manifest."""
    generation = work["metadata"].get("generation", 1)
    before = {identity_of(entry["resourceMeta"]): entry for entry in _manifests(work)}
    manifests = []
    for index, manifest in enumerate(work["spec"]["workload"]["manifests"]):
        meta = resource_meta(index, manifest)
        conditions = (before.get(identity_of(meta)) or {}).get("conditions") or ()
        good = index not in failures
        reason = "AppliedManifestComplete" if good else "AppliedManifestFailed"
        message = "Apply manifest complete" if good else f"Failed to apply manifest: {failures[index]}"
        conditions = with_condition(conditions, "Applied", good, reason, message, now)
        manifests.append({"resourceMeta": meta, "conditions": conditions})
    reason = "AppliedManifestWorkFailed" if failures else "AppliedManifestWorkComplete"
    message = "Failed to apply manifest work" if failures else "Apply manifest work complete"
    conditions = with_condition(
        (work.get("status") or {}).get("conditions") or (),
        "Applied",
        not failures,
        reason,
        message,
        now,
        observedGeneration=generation,
    )
    return {"conditions": conditions, "resourceStatus": {"manifests": manifests}}


def _manifests(work: Object) -> list[Object]:
    return list(((work.get("status") or {}).get("resourceStatus") or {}).get("manifests") or ())


# ManifestWork -> ClusterPermission


def status_from_work(permission: Object, work: Object, now: float) -> Object:
    """Return the ClusterPermission's complete status from its ManifestWork."""
    metadata, status = work["metadata"], dict(permission.get("status") or {})
    advice = (
        "\nRun the following command to check the ManifestWork status:\n"
        f"kubectl -n {metadata['namespace']} get ManifestWork {metadata['name']} -o yaml"
    )
    before = status.get("conditions") or []
    applied = _applied((work.get("status") or {}).get("conditions") or ())
    if applied is None:
        message = "Apply RBAC manifestWork not complete" + advice
        reason = "ApplyRBACManifestWorkNotComplete"
        return status | {"conditions": with_condition(before, APPLIED, False, reason, message, now)}
    value, reason = applied["status"] == "True", applied["reason"]
    conditions = with_condition(before, APPLIED, value, reason, applied["message"] + advice, now)
    return status | {"conditions": conditions, "resourceStatus": _resource_status(work)}


def _applied(conditions: Iterable[Object]) -> Object | None:
    return next((condition for condition in conditions if condition["type"] == "Applied"), None)


def _resource_status(work: Object) -> Object:
    made: dict[str, list[Object]] = {}
    for manifest in _manifests(work):
        meta, applied = manifest["resourceMeta"], _applied(manifest["conditions"])
        if applied is None:
            continue
        good = applied["status"] == "True"
        entry = {
            "name": meta["name"],
            "condition": [
                {
                    "type": "Applied",
                    "status": applied["status"],
                    "reason": "AppliedManifestComplete" if good else "FailedApplyManifest",
                    "message": "Apply manifest complete" if good else applied["message"],
                    "lastTransitionTime": applied["lastTransitionTime"],
                }
            ],
        }
        where = {"namespace": meta["namespace"]} if meta["namespace"] else {}
        made.setdefault(_STATUS_FIELDS[meta["kind"]], []).append(entry | where)
    return dict(made)
