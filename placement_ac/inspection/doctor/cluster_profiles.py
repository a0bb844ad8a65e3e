"""
Rules for ClusterProfiles as credentials of workers: the gate, the CRD, access providers and their plugins.

Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from placement_ac.core.api.constants import CLUSTER_PROFILE, KUEUE_MANAGER, MULTIKUEUE_CLUSTER
from placement_ac.core.api.decode import cluster_profile
from placement_ac.core.api.schemas import as_mapping
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import KueueRelease
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.inspection.doctor.crds import versions
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.kueue_config import (
    CLUSTER_PROFILE_GATE,
    CONFIG_MAP_NAME,
    KueueConfig,
    edit_config,
    enable_gate,
    is_on,
    kueue_config,
    patch_pods,
    unread_results,
)
from placement_ac.inspection.doctor.setup import (
    CONTAINER,
    HubSetup,
    containers_of,
    hub_rule,
    image_command,
    list_deployments_command,
    pod_of,
    sequence,
    yaml_of,
)

INVENTORY_CRD: Final = (
    "https://raw.githubusercontent.com/kubernetes-sigs/cluster-inventory-api/main/"
    "config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml"
)
ACCESS: Final = "accessProviders"
CREDENTIALS: Final = "credentialsProviders"
"""Its name before 0.19; only one of the two may have entries (pkg/config/validation.go)."""
RENAMED: Final = KueueRelease(0, 19, 0)
OCM_PROVIDER: Final = "open-cluster-management"
PLUGIN: Final = "/plugins/cp-creds"
KUEUE_IMAGES: Final = "registry.k8s.io/kueue/"
"""The registry of Kueue's releases, which contain no plugin; a custom image may contain one."""
PLUGIN_IMAGE: Final = "quay.io/open-cluster-management/cp-creds:latest"


def profiles_in_use(setup: HubSetup) -> tuple[str, ...]:
    """Return the ClusterProfiles whose credentials Kueue uses for workers, or will use."""
    listed = (obj.source for obj in setup.view.cluster_objects.values())
    names = {name for kind, name in listed if kind == CLUSTER_PROFILE.kind}
    for one in setup.view.our_checks:
        if one.placement:
            credentials = setup.view.snapshot(one.placement).credentials.selected.values()
            names |= {
                credential.name
                for credential in credentials
                if isinstance(credential, CredentialSource) and credential.kind == CLUSTER_PROFILE.kind
            }
    return tuple(sorted(names))


def unknown_profiles(setup: HubSetup) -> tuple[RuleResult, ...]:
    """Return a warning if it is unknown which ClusterProfiles are in use."""
    unknown = setup.unknown_results(MULTIKUEUE_CLUSTER)
    profiles = setup.unknown_results(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])
    return unknown or (profiles if setup.dump.live else ())


@hub_rule(
    "cluster-profile-gate",
    f"if a worker uses a ClusterProfile's credentials: Kueue's gate {CLUSTER_PROFILE_GATE} is on",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
)
def cluster_profile_gate(setup: HubSetup) -> Iterator[RuleResult]:
    used, kueue = profiles_in_use(setup), kueue_config(setup)
    if not used:
        yield from unknown_profiles(setup)
        yield ok("no worker uses a ClusterProfile's credentials")
    elif silent := unread_results(setup, kueue):
        yield from silent
    elif is_on(setup, kueue, CLUSTER_PROFILE_GATE):
        yield ok(f"the gate {CLUSTER_PROFILE_GATE} is on, for ClusterProfile {joined(used)}")
    else:
        yield fail(
            f"the gate {CLUSTER_PROFILE_GATE} is off: Kueue cannot use ClusterProfile {joined(used)}",
            enable_gate(setup, kueue, CLUSTER_PROFILE_GATE),
        )


@hub_rule(
    "inventory-crd",
    f"with Kueue's gate {CLUSTER_PROFILE_GATE}: the CRD of ClusterProfiles exists",
    f"kubectl apply -f {INVENTORY_CRD}",
)
def inventory_crd(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    there = versions(setup, CLUSTER_PROFILE)
    if not there and (silent := unread_results(setup, kueue)):
        yield from silent
    elif there or not is_on(setup, kueue, CLUSTER_PROFILE_GATE):
        yield ok(f"{CLUSTER_PROFILE} are {'served' if there else 'not needed'}")
    elif there is None:
        yield from setup.unknown_results(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])
    else:
        yield fail(
            f"{CLUSTER_PROFILE} are not served, and the gate {CLUSTER_PROFILE_GATE} is on: "
            "Kueue's manager exits after 2 minutes",
            f"kubectl apply -f {INVENTORY_CRD}",
        )


@hub_rule(
    "access-providers",
    f"each ClusterProfile in use has a provider of Kueue's `multiKueue.clusterProfile.{ACCESS}` "
    f"(before 0.19: `{CREDENTIALS}`)",
    f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # multiKueue.clusterProfile.{ACCESS}",
)
def access_providers(setup: HubSetup) -> Iterator[RuleResult]:
    used, kueue = profiles_in_use(setup), kueue_config(setup)
    unknown = (
        setup.unknown_results(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])
        if used
        else unknown_profiles(setup)
    )
    if silent := unknown or (unread_results(setup, kueue) if used else ()):
        yield from silent
        return
    yield from _list_is_wrong(setup, kueue)
    names = {str(one.get("name")) for one in providers(kueue)}
    for name in used:
        raw = setup.dump.find(CLUSTER_PROFILE, name, setup.kueue_namespace)
        offered = cluster_profile(raw).providers if raw else ()
        if raw is None:
            where = f"{setup.kueue_namespace}/{name}"
            yield fail(
                f"ClusterProfile {where} is used, but does not exist", "kubectl get clusterprofiles -A"
            )
        elif not names & set(offered):
            yield fail(
                f"ClusterProfile {setup.kueue_namespace}/{name} has access providers "
                f"{joined(offered) or '(none)'}, Kueue has {joined(sorted(names)) or 'none'}: "
                "none of them match",
                _add_provider(setup, kueue, offered),
            )
    has = joined(sorted(names)) or "none"
    yield ok(
        f"Kueue has {has}, for {joined(used)}" if used else "no worker uses a ClusterProfile's credentials"
    )


@hub_rule(
    "access-provider-plugin",
    "the plugin of each access provider is on a volume of Kueue's Pod",
    f"kubectl patch -n KUEUE deployment/{KUEUE_MANAGER} -p PATCH",
)
def access_provider_plugin(setup: HubSetup) -> Iterator[RuleResult]:
    kueue = kueue_config(setup)
    wanted = providers(kueue)
    if silent := unread_results(setup, kueue):
        yield from silent
        return
    if not wanted:
        yield ok("Kueue has no access provider")
        return
    if setup.kueue is None:
        yield warn("unknown: Kueue's Deployment was not found", list_deployments_command())
        return
    for one in wanted:
        command = str(as_mapping(one.get("execConfig")).get("command") or "")
        name = str(one.get("name"))
        message = f"plugin {command} of access provider {name}"
        image = str(setup.manager.get("image"))
        if problem := _missing_volume(setup, command):
            if image.startswith(KUEUE_IMAGES):
                yield fail(
                    f"{message}: {problem}, and Kueue's image has no plugin",
                    _add_plugin(setup, name, command),
                )
            else:
                yield warn(f"{message}: {problem}; is it in the image {image}?", image_command(setup))
        elif problem := _unusable_volume(setup, command):
            yield fail(f"{message}: {problem}", _add_plugin(setup, name, command))
        else:
            yield ok(f"plugin {command} comes with a volume of Deployment {KUEUE_MANAGER}")


def providers(kueue: KueueConfig) -> list[Mapping[str, Any]]:
    """Return the access providers in Kueue's configuration, under either name of the list."""
    message = as_mapping(kueue.multikueue.get("clusterProfile"))
    return [as_mapping(one) for key in (ACCESS, CREDENTIALS) for one in sequence(message.get(key))]


def _list_is_wrong(setup: HubSetup, kueue: KueueConfig) -> Iterator[RuleResult]:
    message = as_mapping(kueue.multikueue.get("clusterProfile"))
    change = f"kubectl edit {kueue.where(setup.kueue_namespace)}"
    if message.get(ACCESS) and message.get(CREDENTIALS):
        yield fail(
            f"Kueue's configuration has both {ACCESS} and {CREDENTIALS}: Kueue does not start with both",
            f"{change}  # move all under {ACCESS}",
        )
    elif ACCESS in message and setup.kueue_release and setup.kueue_release < RENAMED:
        yield fail(
            f"Kueue {setup.kueue_release} does not know {ACCESS}: they are called {CREDENTIALS} there",
            f"{change}  # {ACCESS} -> {CREDENTIALS}",
        )


def _add_provider(setup: HubSetup, kueue: KueueConfig, offered: tuple[str, ...]) -> str:
    if not offered:
        return "clusteradm install hub-addon --names cluster-proxy  # its gate clusterProfileAccessProvider"
    message = as_mapping(kueue.multikueue.get("clusterProfile"))
    old = CREDENTIALS in message or (setup.kueue_release and setup.kueue_release < RENAMED)
    path = ("multiKueue", "clusterProfile", CREDENTIALS if old else ACCESS)
    if OCM_PROVIDER not in offered:
        change = f"kubectl edit {kueue.where(setup.kueue_namespace)}"
        return f"{change}  # {'.'.join(path)}: add {yaml_of(offered[0])}, with the command of its plugin"
    run: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": PLUGIN,
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "args": [f"--managed-serviceaccount={setup.settings.credentials_account}"],
    }
    entry = {"name": OCM_PROVIDER, "execConfig": run}
    return edit_config(setup, kueue, path, entry if message.get(path[-1]) else [entry])


def _missing_volume(setup: HubSetup, command: str) -> str:
    """Return why a command is on no volume, so that the image must contain it; "" if it is."""
    if "/" not in command:
        return "it has no folder"
    if _volumes_at(setup, command):
        return ""
    there = joined(sorted(path for path, _ in _mounts(setup.manager))) or "nothing"
    return f"no volume is mounted at {_folder(command)} (mounted: {there})"


def _unusable_volume(setup: HubSetup, command: str) -> str:
    """Return why the volumes of a command cannot contain it; "" if they can."""
    pod = pod_of(setup.kueue or {})
    volumes = {str(one.get("name")): as_mapping(one) for one in map(as_mapping, sequence(pod.get("volumes")))}
    for name in _volumes_at(setup, command):
        if name not in volumes:
            return f"volume {name} is not defined"
        if "emptyDir" in volumes[name] and not _filled(setup, name):
            return f"volume {name} is empty: no init container mounts it"
    return ""


def _folder(command: str) -> str:
    return command.rpartition("/")[0] or "/"


def _volumes_at(setup: HubSetup, command: str) -> list[str]:
    """Return the volumes mounted at the path of a command."""
    folder = _folder(command)
    return [name for path, name in _mounts(setup.manager) if _under(folder, path) or command == path]


def _filled(setup: HubSetup, volume: str) -> bool:
    starting = containers_of(setup.kueue or {}, "initContainers")
    return any(name == volume for container in starting for _, name in _mounts(container))


def _mounts(container: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the mount paths of a container, each with its volume."""
    found = map(as_mapping, sequence(container.get("volumeMounts")))
    return [(str(one.get("mountPath", "")).rstrip("/") or "/", str(one.get("name"))) for one in found]


def _under(folder: str, path: str) -> bool:
    return folder == path or folder.startswith(f"{path}/")


def _add_plugin(setup: HubSetup, name: str, command: str) -> str:
    """Return the command that adds OCM's plugin, as OCM documents it; for others, a hint for the editor."""
    if name != OCM_PROVIDER:
        where = f"deployment -n {setup.kueue_namespace} {KUEUE_MANAGER}"
        return f"kubectl edit {where}  # mount a volume with the plugin of {yaml_of(name)}"
    if "/" not in command:
        where = kueue_config(setup).where(setup.kueue_namespace)
        return f"kubectl edit {where}  # command: {PLUGIN}\n{_add_plugin(setup, name, PLUGIN)}"
    folder, _, file = command.rpartition("/")
    mount = {"name": "plugins", "mountPath": folder}
    return patch_pods(
        setup,
        {
            "initContainers": [
                {
                    "name": "cp-creds",
                    "image": PLUGIN_IMAGE,
                    "command": ["cp", "/cp-creds", f"{folder}/{file}"],
                    "volumeMounts": [mount],
                }
            ],
            "containers": [{"name": CONTAINER, "volumeMounts": [mount]}],
            "volumes": [{"name": "plugins", "emptyDir": {}}],
        },
    )


RULES: Final = (cluster_profile_gate, inventory_crd, access_providers, access_provider_plugin)
