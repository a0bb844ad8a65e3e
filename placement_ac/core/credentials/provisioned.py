"""
Credentials that this program provisions: where Kueue finds them, or what they wait for.

Pure. A MultiKueueCluster that already uses them depends on their Secret alone: a cluster stays listed
whatever OCM says of the account or the permission.
"""

import base64
from collections.abc import Iterator
from typing import Final

from placement_ac.core.api.constants import ACCOUNT, ANNOTATION_ADOPT, PERMISSION, SECRET, Kind
from placement_ac.core.api.objects import ProvisionedObject, WritableObject
from placement_ac.core.credentials.source import (
    TOO_OLD,
    DiscoveryInputs,
    in_secret,
    secret_problem,
)
from placement_ac.core.inputs.provisioning import ProvisioningInputs
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.core.kubeconfig.write import write_kubeconfig

ENABLE_ADDON: Final = "wait, or enable OCM's addon managed-serviceaccount for the cluster"
_ORIGIN: Final = "made by the controller"
RUN_CONTROLLER: Final = "wait, or run OCM's cluster-permission controller"


def find_provisioned(inputs: DiscoveryInputs) -> CredentialSource | Unusable | None:
    """Return our credentials, or what they wait for; where we provision no more, those that are left."""
    provisioned = inputs.provisioned
    source = provisioned_credentials(provisioned) if provisioned else None
    is_ours = provisioned and (provisioned.policy.provision or provisioned.objects.secret)
    return source if is_ours or isinstance(source, CredentialSource) else None


def provisioned_credentials(inputs: ProvisioningInputs) -> CredentialSource | Unusable:
    """Return where Kueue finds the credentials that were provisioned for a cluster, or what they wait for."""
    source = _in_profile(inputs) if inputs.policy.form == "cluster-profile" else _in_secret(inputs)
    if isinstance(source, Unusable) and inputs.usage.secret_used:
        before = _in_secret(inputs)  # until the ClusterProfile is there
        source = source if isinstance(before, Unusable) else before
    if isinstance(source, CredentialSource) and (_is_used(inputs, source) or not inputs.policy.provision):
        return source
    for problem in _problems(inputs):
        return Unusable(problem)
    return source


def _is_used(inputs: ProvisioningInputs, source: CredentialSource) -> bool:
    return inputs.usage.secret_used if source.kind == "Secret" else inputs.usage.profile_used


def name_conflict(inputs: ProvisioningInputs) -> str:
    """Return how to free the name of an object that must be made and is not ours; "" when none is taken."""
    objects, form = inputs.objects, inputs.policy.form
    wanted: tuple[tuple[Kind, WritableObject | None, str], ...] = (
        (ACCOUNT, objects.account, inputs.cluster),
        (PERMISSION, objects.permission, inputs.cluster),
        (SECRET, objects.secret if form == "kubeconfig" else None, inputs.kueue_namespace),
    )
    for kind, obj, namespace in wanted:
        if obj and not obj.ours and not obj.handed_over:
            name = obj.meta.name
            hand_over = f"kubectl annotate -n {namespace} {kind.kind.lower()} {name} {ANNOTATION_ADOPT}=true"
            return (
                f"delete {kind.kind} {namespace}/{name}, or hand it over with {hand_over}: "
                "someone else created it"
            )
    return ""


def kubeconfig_of(inputs: ProvisioningInputs) -> bytes | Unusable:
    """Return the kubeconfig that our Secret must hold, or why there can be none yet."""
    token = inputs.objects.token
    if token is None:
        return Unusable(f"{ENABLE_ADDON}: OCM has not reported the token of {_account(inputs)} yet")
    secret = f"Secret {token.meta.namespace}/{token.meta.name}"
    if token.problem:
        return Unusable(f"delete {secret}, so that OCM reports the token again: it {token.problem}")
    endpoint = _endpoint(inputs)
    if isinstance(endpoint, Unusable):
        return endpoint
    server, authority, origin = endpoint
    written = write_kubeconfig(server, authority or token.authority, token.token, inputs.cluster)
    if isinstance(written, Unusable):
        return Unusable(f"in {origin} or {secret}, {written.why}")
    return written


def _endpoint(inputs: ProvisioningInputs) -> tuple[str, bytes, str] | Unusable:
    """Return the URL of the worker's API server, its CA as PEM (empty: none is set), and their origin."""
    if inputs.policy.proxy:
        server = f"{inputs.policy.proxy.rstrip('/')}/{inputs.cluster}"
        return server, inputs.policy.proxy_authority, "the setting cluster-proxy"
    cluster = inputs.objects.managed_cluster
    config, of = "spec.managedClusterClientConfigs[0]", f"of ManagedCluster {inputs.cluster}"
    if cluster is None or not cluster.server:
        return Unusable(f"set {config}.url {of}, or --cluster-proxy: the URL of its API server is not known")
    try:
        authority = base64.b64decode(cluster.authority, validate=True)
    except ValueError:
        return Unusable(f"fix {config}.caBundle {of}: it is not base64")
    return cluster.server, authority, f"{config} {of}"


def _in_secret(inputs: ProvisioningInputs) -> CredentialSource | Unusable:
    secret, name = inputs.objects.secret, f"Secret {inputs.kueue_namespace}/{inputs.secret_name}"
    if secret is None:
        return Unusable(f"wait: {name} is being created")
    if problem := secret_problem(secret, inputs.now):
        return Unusable(f"in {name}, {problem}")
    return in_secret(secret, _ORIGIN)


def _in_profile(inputs: ProvisioningInputs) -> CredentialSource | Unusable:
    namespace = inputs.kueue_namespace
    if not inputs.hub.takes_profiles:
        return Unusable(TOO_OLD)
    if inputs.objects.profile is None:
        return Unusable(
            f"give the ClusterProfile of {inputs.cluster} in namespace {namespace} an access provider "
            "that is supported: it is missing, or has none"
        )
    if inputs.objects.profile_problem:
        return Unusable(inputs.objects.profile_problem)
    if not inputs.objects.profile_has_token:
        return Unusable(
            "wait, or turn on the feature gate ClusterProfile of OCM's addon managed-serviceaccount: "
            f"OCM has not copied the token of {_account(inputs)} to namespace {namespace} yet"
        )
    return CredentialSource("ClusterProfile", inputs.objects.profile.meta.name, origin=_ORIGIN)


def _problems(inputs: ProvisioningInputs) -> Iterator[str]:
    """Yield what keeps a cluster from being listed for the first time, the first step first."""
    objects, policy = inputs.objects, inputs.policy
    if not policy.provision:
        return
    if not policy.served:
        yield (
            "install OCM's addons managed-serviceaccount and cluster-permission: "
            "this hub has no ManagedServiceAccounts or no ClusterPermissions"
        )
    if objects.managed_cluster is None:
        cluster = f"ManagedCluster {inputs.cluster}"
        yield f"wait for OCM's next decision, or let the cluster join: there is no {cluster}"
    yield from (problem for problem in (inputs.error, name_conflict(inputs)) if problem)
    yield from _not_in_force(inputs, objects.account, ACCOUNT, ENABLE_ADDON)
    if policy.form == "kubeconfig" and isinstance(kubeconfig := kubeconfig_of(inputs), Unusable):
        yield kubeconfig.why
    yield from _not_in_force(inputs, objects.permission, PERMISSION, RUN_CONTROLLER)


def _not_in_force(
    inputs: ProvisioningInputs, obj: ProvisionedObject | None, kind: Kind, fix: str
) -> Iterator[str]:
    name = f"{kind.kind} {inputs.cluster}/{inputs.account_name}"
    if obj is None:
        yield f"wait: {name} is being created"
    elif not obj.in_force:
        yield f"fix {name}: {obj.problem}" if obj.problem else f"{fix}: {name} is not in force yet"


def _account(inputs: ProvisioningInputs) -> str:
    return f"{ACCOUNT.kind} {inputs.cluster}/{inputs.account_name}"
