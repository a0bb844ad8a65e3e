"""
Where Kueue gets into workers by ClusterProfiles: the gate, the CRD, access providers and their plugins.

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
from placement_ac.inspection.doctor.configuration import (
    CLUSTER_PROFILE_GATE,
    CONFIG_MAP_NAME,
    Configuration,
    configuration_of,
    edit,
    is_on,
    open_gate,
    patch_pods,
    unread,
)
from placement_ac.inspection.doctor.crds import versions
from placement_ac.inspection.doctor.finding import Rule, Told, fail, warn, well
from placement_ac.inspection.doctor.setup import (
    CONTAINER,
    Setup,
    containers_of,
    pod_of,
    see_deployments,
    see_image,
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
KUEUES_IMAGES: Final = "registry.k8s.io/kueue/"
"""Where Kueue's releases are: without a plugin. One may be built into an image of one's own."""
PLUGIN_IMAGE: Final = "quay.io/open-cluster-management/cp-creds:latest"


def in_use(setup: Setup) -> tuple[str, ...]:
    """Return the ClusterProfiles by which Kueue gets into workers, or will."""
    listed = (obj.source for obj in setup.view.cluster_objects.values())
    names = {name for kind, name in listed if kind == CLUSTER_PROFILE.kind}
    for one in setup.view.ours:
        if one.placement:
            ways = setup.view.snapshot(one.placement).credentials.selected.values()
            names |= {
                way.name
                for way in ways
                if isinstance(way, CredentialSource) and way.kind == CLUSTER_PROFILE.kind
            }
    return tuple(sorted(names))


def unsure(setup: Setup) -> tuple[Told, ...]:
    """Tell why it is not known which ClusterProfiles are in use; nothing where it is."""
    unknown = setup.unknown(MULTIKUEUE_CLUSTER)
    profiles = setup.unknown(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])
    return unknown or (profiles if setup.dump.live else ())


def cluster_profile_gate(setup: Setup) -> Iterator[Told]:
    used, kueue = in_use(setup), configuration_of(setup)
    if not used:
        yield from unsure(setup)
        yield well("no worker is entered by a ClusterProfile")
    elif silent := unread(setup, kueue):
        yield from silent
    elif is_on(setup, kueue, CLUSTER_PROFILE_GATE):
        yield well(f"the gate {CLUSTER_PROFILE_GATE} is on, for ClusterProfile {joined(used)}")
    else:
        yield fail(
            f"the gate {CLUSTER_PROFILE_GATE} is off: Kueue does not get in by ClusterProfile {joined(used)}",
            open_gate(setup, kueue, CLUSTER_PROFILE_GATE),
        )


def inventory_crd(setup: Setup) -> Iterator[Told]:
    kueue = configuration_of(setup)
    there = versions(setup, CLUSTER_PROFILE)
    if not there and (silent := unread(setup, kueue)):
        yield from silent
    elif there or not is_on(setup, kueue, CLUSTER_PROFILE_GATE):
        yield well(f"{CLUSTER_PROFILE} are {'served' if there else 'not needed'}")
    elif there is None:
        yield from setup.unknown(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace])
    else:
        yield fail(
            f"{CLUSTER_PROFILE} are not served, and the gate {CLUSTER_PROFILE_GATE} is on: "
            "Kueue's manager ends after 2 minutes",
            f"kubectl apply -f {INVENTORY_CRD}",
        )


def access_providers(setup: Setup) -> Iterator[Told]:
    used, kueue = in_use(setup), configuration_of(setup)
    unknown = setup.unknown(CLUSTER_PROFILE, namespaces=[setup.kueue_namespace]) if used else unsure(setup)
    if silent := unknown or (unread(setup, kueue) if used else ()):
        yield from silent
        return
    yield from _list_is_wrong(setup, kueue)
    names = {str(one.get("name")) for one in providers(kueue)}
    for name in used:
        raw = setup.dump.find(CLUSTER_PROFILE, name, setup.kueue_namespace)
        offered = cluster_profile(raw).providers if raw else ()
        if raw is None:
            where = f"{setup.kueue_namespace}/{name}"
            yield fail(f"ClusterProfile {where} is used, and not there", "kubectl get clusterprofiles -A")
        elif not names & set(offered):
            yield fail(
                f"ClusterProfile {setup.kueue_namespace}/{name} has access providers "
                f"{joined(offered) or '(none)'}, Kueue has {joined(sorted(names)) or 'none'}: none of them match",
                _give(setup, kueue, offered),
            )
    has = joined(sorted(names)) or "none"
    yield well(f"Kueue has {has}, for {joined(used)}" if used else "no worker is entered by a ClusterProfile")


def access_provider_plugin(setup: Setup) -> Iterator[Told]:
    kueue = configuration_of(setup)
    wanted = providers(kueue)
    if silent := unread(setup, kueue):
        yield from silent
        return
    if not wanted:
        yield well("Kueue has no access provider")
        return
    if setup.kueue is None:
        yield warn("not known: Kueue's Deployment was not found", see_deployments())
        return
    for one in wanted:
        command = str(as_mapping(one.get("execConfig")).get("command") or "")
        name = str(one.get("name"))
        told = f"plugin {command} of access provider {name}"
        image = str(setup.manager.get("image"))
        if problem := _no_volume(setup, command):
            if image.startswith(KUEUES_IMAGES):
                yield fail(
                    f"{told}: {problem}, and Kueue's image has no plugin", _bring(setup, name, command)
                )
            else:
                yield warn(f"{told}: {problem}; is it in the image {image}?", see_image(setup))
        elif problem := _no_use(setup, command):
            yield fail(f"{told}: {problem}", _bring(setup, name, command))
        else:
            yield well(f"plugin {command} comes with a volume of Deployment {KUEUE_MANAGER}")


def providers(kueue: Configuration) -> list[Mapping[str, Any]]:
    """Return the access providers that Kueue is told of, by either name of the list."""
    told = as_mapping(kueue.multikueue.get("clusterProfile"))
    return [as_mapping(one) for key in (ACCESS, CREDENTIALS) for one in sequence(told.get(key))]


def _list_is_wrong(setup: Setup, kueue: Configuration) -> Iterator[Told]:
    told = as_mapping(kueue.multikueue.get("clusterProfile"))
    change = f"kubectl edit {kueue.where(setup.kueue_namespace)}"
    if told.get(ACCESS) and told.get(CREDENTIALS):
        yield fail(
            f"Kueue's configuration has both {ACCESS} and {CREDENTIALS}: Kueue does not start with both",
            f"{change}  # move all under {ACCESS}",
        )
    elif ACCESS in told and setup.kueue_release and setup.kueue_release < RENAMED:
        yield fail(
            f"Kueue {setup.kueue_release} does not know {ACCESS}: they are called {CREDENTIALS} there",
            f"{change}  # {ACCESS} -> {CREDENTIALS}",
        )


def _give(setup: Setup, kueue: Configuration, offered: tuple[str, ...]) -> str:
    if not offered:
        return "clusteradm install hub-addon --names cluster-proxy  # its gate clusterProfileAccessProvider"
    told = as_mapping(kueue.multikueue.get("clusterProfile"))
    old = CREDENTIALS in told or (setup.kueue_release and setup.kueue_release < RENAMED)
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
    return edit(setup, kueue, path, entry if told.get(path[-1]) else [entry])


def _no_volume(setup: Setup, command: str) -> str:
    """Return why a command comes with no volume, so that the image must have it; "" where it does."""
    if "/" not in command:
        return "it has no folder"
    if _volumes_at(setup, command):
        return ""
    there = joined(sorted(path for path, _ in _mounts(setup.manager))) or "nothing"
    return f"no volume is mounted at {_folder(command)} (mounted: {there})"


def _no_use(setup: Setup, command: str) -> str:
    """Return why the volumes of a command cannot have it; "" where they may."""
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


def _volumes_at(setup: Setup, command: str) -> list[str]:
    """Return the volumes that are mounted where a command is."""
    folder = _folder(command)
    return [name for path, name in _mounts(setup.manager) if _under(folder, path) or command == path]


def _filled(setup: Setup, volume: str) -> bool:
    starting = containers_of(setup.kueue or {}, "initContainers")
    return any(name == volume for container in starting for _, name in _mounts(container))


def _mounts(container: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the paths of a container where a volume is, with its name."""
    found = map(as_mapping, sequence(container.get("volumeMounts")))
    return [(str(one.get("mountPath", "")).rstrip("/") or "/", str(one.get("name"))) for one in found]


def _under(folder: str, path: str) -> bool:
    return folder == path or folder.startswith(f"{path}/")


def _bring(setup: Setup, name: str, command: str) -> str:
    """Return the command that puts OCM's plugin there, as its pages tell; of others, where it goes."""
    if name != OCM_PROVIDER:
        where = f"deployment -n {setup.kueue_namespace} {KUEUE_MANAGER}"
        return f"kubectl edit {where}  # mount a volume with the plugin of {yaml_of(name)}"
    if "/" not in command:
        where = configuration_of(setup).where(setup.kueue_namespace)
        return f"kubectl edit {where}  # command: {PLUGIN}\n{_bring(setup, name, PLUGIN)}"
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


RULES: Final = (
    Rule(
        "cluster-profile-gate",
        f"where a worker is entered by a ClusterProfile: Kueue's gate {CLUSTER_PROFILE_GATE} is on",
        f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # featureGates",
        cluster_profile_gate,
    ),
    Rule(
        "inventory-crd",
        f"with Kueue's gate {CLUSTER_PROFILE_GATE}: the CRD of ClusterProfiles is there",
        f"kubectl apply -f {INVENTORY_CRD}",
        inventory_crd,
    ),
    Rule(
        "access-providers",
        f"each ClusterProfile that is used has a provider of Kueue's `multiKueue.clusterProfile.{ACCESS}` "
        f"(before 0.19: `{CREDENTIALS}`)",
        f"kubectl edit configmap -n KUEUE {CONFIG_MAP_NAME}  # multiKueue.clusterProfile.{ACCESS}",
        access_providers,
    ),
    Rule(
        "access-provider-plugin",
        "the plugin of each access provider comes into Kueue's Pod by a volume",
        f"kubectl patch -n KUEUE deployment/{KUEUE_MANAGER} -p PATCH",
        access_provider_plugin,
    ),
)
