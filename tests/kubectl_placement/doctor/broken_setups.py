"""How a row is written of what is broken on a healthy hub, what `doctor` says of it, and the fix."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kubectl_placement.doctor.finding import Level
from tests.support.healthy import NS, Key, Object

Objects = dict[Key, Object]
How = Callable[[Objects], Any]
FAIL, WARN = Level.FAIL, Level.WARN

KUEUE: Final[Key] = ("Deployment", NS, "kueue-controller-manager")
CONFIG: Final[Key] = ("ConfigMap", NS, "kueue-manager-config")
FILE: Final = "controller_manager_config.yaml"
CONTROLLER: Final[Key] = ("Deployment", "placement-ac-system", "placement-ac")
LEASE: Final[Key] = ("Lease", NS, "placement-ac")
CHECK: Final[Key] = ("AdmissionCheck", "", "placement-demo1")
SENDER: Final[Key] = ("AdmissionCheck", "", "multikueue-demo1")
QUEUE: Final[Key] = ("ClusterQueue", "", "cluster-queue-demo1")


@dataclass(frozen=True)
class Break:
    """`runs`: whether `test_doctor_on_hub` runs the fix in a shell, on the embedded hub."""

    id: str
    how: How
    check: str
    level: Level
    message: str
    fix: str
    runs: bool = False
    unknown: tuple[str, ...] = ()
    """Checks whose result is unknown then."""
    live: bool = False
    """Whether it shows on a hub only."""


def both(*hows: How) -> How:
    def change(objects: Objects) -> None:
        for how in hows:
            how(objects)

    return change


NOTHING: Final[How] = lambda _: None  # noqa: E731


def without(*keys: Key) -> How:
    """Return what takes objects away."""
    return lambda objects: [objects.pop(key) for key in keys]


def put(key: Key, *path: Any) -> How:
    """Return what sets a field of an object: the path to it, and its value at the end."""
    *steps, last, value = path

    def change(objects: Objects) -> None:
        node: Any = objects[key]
        for step in steps:
            node = node[step] if isinstance(node, list) else node.setdefault(step, {})
        node[last] = value

    return change


def add(obj: Object) -> How:
    metadata = obj["metadata"]
    return lambda objects: objects.update(
        {(obj["kind"], metadata.get("namespace", ""), metadata["name"]): obj}
    )


def crd(name: str) -> Key:
    return "CustomResourceDefinition", "", name


def of_release(release: str) -> How:
    """Return what gives Kueue another release."""
    name = f"registry.k8s.io/kueue/kueue:v{release}"
    return put(KUEUE, "spec", "template", "spec", "containers", 0, "image", name)


def image(release: str) -> How:
    """Return what gives Kueue another release, and its configuration the words of that."""
    return both(of_release(release), configured("accessProviders", "credentialsProviders"))


def configured(old: str, new: str) -> How:
    """Return what changes the text of Kueue's configuration."""

    def change(objects: Objects) -> None:
        data = objects[CONFIG]["data"]
        assert old in data[FILE]
        data[FILE] = data[FILE].replace(old, new)

    return change


def gate(line: str) -> How:
    """Return what adds a line to the feature gates."""
    known = "  MultiKueueClusterProfile: true\n"
    return configured(known, f"{known}  {line}\n")


def with_condition(key: Key, status: str, reason: str, message: str) -> How:
    """Return what gives an object another condition Active."""

    def change(objects: Objects) -> None:
        condition = objects[key]["status"]["conditions"][0]
        condition |= {"status": status, "reason": reason, "message": message}

    return change


def setting(name: str, value: str) -> How:
    """Return what gives the controller a setting."""
    path = ("spec", "template", "spec", "containers", 0, "env")
    return put(CONTROLLER, *path, [{"name": f"PLACEMENT_AC_{name}", "value": value}])


def unlisted(check: str) -> How:
    """Return what takes a check off the ClusterQueue."""

    def change(objects: Objects) -> None:
        strategy = objects[QUEUE]["spec"]["admissionChecksStrategy"]
        strategy["admissionChecks"] = [
            admission_check
            for admission_check in strategy["admissionChecks"]
            if admission_check["name"] != check
        ]

    return change


def worker(cluster: str) -> Key:
    return "MultiKueueCluster", "", f"placement-demo1-{cluster}"


# -- fixes that many have in common

KUBE_CONFIG: Final = f"configmap -n {NS} kueue-manager-config"
DEPLOYED: Final = "-n placement-ac-system deployment/placement-ac"
"""Where the controller is."""
LOGS: Final = f"kubectl logs {DEPLOYED} --all-pods --tail=50"
RESTART: Final = f"kubectl rollout restart -n {NS} deployment/kueue-controller-manager"


def edited(hint: str) -> str:
    """Return how an admin changes Kueue's configuration."""
    return f"kubectl edit {KUBE_CONFIG}  # {hint}\n{RESTART}"


def edited_pods(hint: str) -> str:
    """Return how an admin changes the arguments of Kueue."""
    return f"kubectl edit deployment -n {NS} kueue-controller-manager  # {hint}"


def recreated(secret: str, cluster: str) -> str:
    """Return how a Secret is made of a kubeconfig."""
    return (
        f"kubectl create secret generic -n {NS} {secret} --from-file=kubeconfig={cluster}.kubeconfig "
        "--dry-run=client -o yaml | kubectl apply -f -"
    )


def applied(*lines: str) -> str:
    return "\n".join(("kubectl apply -f - <<'EOF'", *lines, "EOF"))
