"""
The objects that `placement-ac dump` writes: those that commands read, without values that may be secret.

Pure. Secrets, ConfigMaps, Deployments, Workloads and ClusterProfiles lose every value that no command reads,
whatever it is: anybody may have put a password into a variable or an argument. Objects of all kinds lose each
annotation that no command reads, such as what `kubectl apply` keeps there. A dump says the same as its hub,
except why Kueue cannot use a kubeconfig.
"""

import base64
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kubectl_placement.hub.controller_settings import (
    CONFIG_KEY,
    config_map_name,
    controller_container,
    deployments,
)
from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.kinds import CRD
from kubectl_placement.hub.kubeconfigs import endpoint_of, server_and_user
from kubectl_placement.hub.redact_pods import REDACTED, is_read, job_template, pod_template
from placement_ac.core.api.constants import (
    ADDON_CONTROLLER,
    CLUSTER_PROFILE,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    FIELD_MANAGER,
    KUBECONFIG_KEY,
    MANAGED_CLUSTER,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.decode import secret
from placement_ac.core.api.fields import Key, get_dict, get_list, get_str, key_of, name_of
from placement_ac.core.api.kueue_deployment import is_kueue
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_KEY, KUEUE_CONFIG_MAP
from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.core.safe_yaml import NotYaml, load_yaml, yaml_errors

_REPLACED: Final = base64.b64encode(REDACTED.encode()).decode()
_KUBECONFIG: Final = """apiVersion: v1
kind: Config
current-context: redacted
clusters: [{{name: redacted, cluster: {{server: 'https://{server}.redacted.invalid'}}}}]
users: [{{name: redacted, user: {{token: {token}}}}}]
contexts: [{{name: redacted, context: {{cluster: redacted, user: redacted}}}}]
"""
"""Stands for a kubeconfig that Kueue can use; any other stays one that it cannot use."""


def shared_objects(dump: Dump, kind: Kind, namespaces: Collection[str]) -> list[Object]:
    """Return the objects of a kind as a dump has them.

    `namespaces`: those of the controller and of Kueue. Of other namespaces, only Deployments of these two and
    of the Go kueue-addon are returned. Events are the controller's.
    """
    objects = _shared_objects(dump, kind, namespaces)
    if kind == CRD:  # in a schema, annotations are a field
        return [obj | {"metadata": _with_known_annotations(obj["metadata"])} for obj in objects]
    return [_with_known_annotations(obj) for obj in objects]


def _shared_objects(dump: Dump, kind: Kind, namespaces: Collection[str]) -> list[Object]:
    objects = dump.of(kind)
    if kind == EVENT:
        return [obj for obj in objects if _is_ours(obj)]
    if kind == SECRET:
        users = [server_and_user(obj) or key_of(obj) for obj in objects]
        servers = [endpoint_of(obj) or key_of(obj) for obj in objects]
        numbers = (
            (users.index(user) + 1, servers.index(server) + 1)
            for user, server in zip(users, servers, strict=True)
        )
        return [_secret(obj, *alike) for obj, alike in zip(objects, numbers, strict=True)]
    if kind == DEPLOYMENT:
        ours = deployments(dump)
        return [_deployment(obj) for obj in objects if key_of(obj)[0] in namespaces or _has_rule(obj, ours)]
    if kind == CONFIG_MAP:
        files = _files(dump)
        return [_config_map(obj, files.get(key_of(obj), "")) for obj in objects]
    redact = _REDACTORS.get(kind)
    return [redact(obj) for obj in objects] if redact else list(objects)


def _has_rule(deployment: Object, ours: list[Object]) -> bool:
    """Whether a rule of `doctor` looks at the Deployment, wherever it is."""
    return deployment in ours or is_kueue(deployment) or name_of(deployment) == ADDON_CONTROLLER


def _head(obj: Object, *fields: str) -> Object:
    """Return these fields of an object, and its metadata."""
    return {key: obj[key] for key in ("apiVersion", "kind", "metadata", *fields) if key in obj}


def _is_ours(event: Object) -> bool:
    return FIELD_MANAGER in (get_str(event, "reportingComponent"), get_str(event, "source", "component"))


def _with_known_annotations(obj: Any) -> Any:
    """Return an object with only the annotations that a command reads, in its metadata and below."""
    return _changed(
        obj,
        "annotations",
        lambda whole: {key: value for key, value in get_dict(whole, "annotations").items() if is_read(key)},
    )


def _changed(node: Any, field: str, value_of: Callable[[Object], Any]) -> Any:
    """Return a copy in which each `field`, however deep, has the value that `value_of` its object gives."""
    if isinstance(node, list):
        return [_changed(part, field, value_of) for part in node]
    if not isinstance(node, dict):
        return node
    whole = {key: _changed(part, field, value_of) for key, part in node.items()}
    return whole | {field: value_of(whole)} if field in whole else whole


def _secret(obj: Object, user: int, server: int) -> Object:
    """Return a Secret without values.

    `user`: the same for kubeconfigs of the same server and user; `server`: for those of the same server, TLS
    name, proxy and CA.
    """
    data: dict[str, Any] = dict.fromkeys(get_dict(obj, "data"), _REPLACED)
    parsed = secret(obj)
    if KUBECONFIG_KEY in data and not parsed.problem:
        times = {"iat": parsed.issued, "exp": parsed.expires}
        seconds = {claim: int(when.timestamp()) for claim, when in times.items() if when}
        content = _KUBECONFIG.format(server=f"server-{server}", token=_token({"jti": str(user), **seconds}))
        data[KUBECONFIG_KEY] = base64.b64encode(content.encode()).decode()
    return _head(obj, "type", "immutable") | {"data": data}


def _token(claims: Mapping[str, object]) -> str:
    """Return a token that nobody has signed."""
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    encoded = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return ".".join((*encoded, REDACTED))


def _deployment(obj: Object) -> Object:
    """Return a Deployment; arguments are kept of the containers whose arguments are read."""
    container = controller_container(obj) or {}
    with_args = {"manager"} if is_kueue(obj) else {get_str(container, "name")}
    template = pod_template(get_dict(obj, "spec", "template"), with_args)
    spec = {
        key: get_dict(obj, "spec")[key] for key in ("replicas", "selector") if key in get_dict(obj, "spec")
    }
    return _head(obj, "status") | {"spec": spec | {"template": template}}


def _workload(obj: Object) -> Object:
    pod_sets = [
        {**pod_set, "template": job_template(get_dict(pod_set, "template"))}
        for pod_set in get_list(obj, "spec", "podSets")
    ]
    return _head(obj, "status") | {"spec": {**get_dict(obj, "spec"), "podSets": pod_sets}}


# -- ConfigMaps


def _files(dump: Dump) -> Mapping[Key, str]:
    """Return the ConfigMaps that hold the settings of the controller and of Kueue, and the key of each."""
    files = {
        (key_of(deployment)[0], config_map_name(deployment)): CONFIG_KEY for deployment in deployments(dump)
    }
    for deployment in dump.of(DEPLOYMENT):
        if is_kueue(deployment):
            volumes = get_list(deployment, "spec", "template", "spec", "volumes")
            names = (KUEUE_CONFIG_MAP, *(get_str(volume, "configMap", "name") for volume in volumes))
            files |= {(key_of(deployment)[0], name): KUEUE_CONFIG_KEY for name in names}
    return files


def _config_map(obj: Object, file: str) -> Object:
    """Return a ConfigMap in which only the settings file still has its text."""
    texts = get_dict(obj, "data")
    data = {key: _settings_text(str(value)) if key == file else REDACTED for key, value in texts.items()}
    return _head(obj) | {"data": data}


def _settings_text(content: str) -> str:
    """Return the text of a settings file; values of variables of plugins are replaced."""
    try:
        body = load_yaml(content)
        with yaml_errors():
            changed = _changed(body, "env", _hidden_variables)
            return content if changed == body else to_yaml(changed)
    except NotYaml:
        return REDACTED


def _hidden_variables(plugin: Object) -> list[Object]:
    return [{**variable, "value": REDACTED} for variable in get_list(plugin, "env")]


# -- ClusterProfiles


def _cluster_profile(obj: Object) -> Object:
    """Return a ClusterProfile without properties, and extensions of its clusters, which may hold anything."""
    status = {key: value for key, value in get_dict(obj, "status").items() if key != "properties"}
    for field in ("accessProviders", "credentialProviders"):
        if field in status:
            status[field] = [{**entry, "cluster": _cluster(entry)} for entry in get_list(status, field)]
    return _head(obj, "spec") | {"status": status}


def _cluster(provider: Mapping[str, Any]) -> dict[str, Any]:
    cluster = {key: value for key, value in get_dict(provider, "cluster").items() if key != "extensions"}
    return cluster | {key: _without_user(cluster[key]) for key in ("server", "proxy-url") if key in cluster}


def _without_user(address: object) -> object:
    """Return a URL without its user, password and query."""
    if not isinstance(address, str):
        return address
    scheme, separator, rest = address.partition("?")[0].rpartition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{separator}{REDACTED if user else ''}{at}{host}"


def _managed_cluster(obj: Object) -> Object:
    """Return a ManagedCluster without users and passwords in its addresses."""
    configs = [
        {**config, "url": _without_user(config.get("url"))}
        for config in get_list(obj, "spec", "managedClusterClientConfigs")
    ]
    spec = dict(get_dict(obj, "spec"))
    return obj | {"spec": spec | ({"managedClusterClientConfigs": configs} if configs else {})}


def _definition(obj: Object) -> Object:
    """Return a CustomResourceDefinition without the address of its conversion webhook."""
    spec = {key: value for key, value in get_dict(obj, "spec").items() if key != "conversion"}
    return _head(obj, "status") | {"spec": spec}


_REDACTORS: Final[Mapping[Kind, Callable[[Object], Object]]] = {
    WORKLOAD: _workload,
    CLUSTER_PROFILE: _cluster_profile,
    MANAGED_CLUSTER: _managed_cluster,
    CRD: _definition,
}
