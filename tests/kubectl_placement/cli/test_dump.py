"""`placement-ac dump`: what it writes, and what the other commands read from it."""

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_placement.hub.dump import LAST_APPLIED
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.kubeconfigs import server_and_user
from kubectl_placement.hub.redact import shared_objects
from placement_ac.core.api import decode
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    CONFIG_MAP,
    DEPLOYMENT,
    WORKLOAD,
)
from placement_ac.core.api.job_spec import job_spec
from placement_lab.hub import Hub
from tests.support import builders, healthy
from tests.support.accounts import kubeconfig_of
from tests.support.builders import Raw, an, secret
from tests.support.commands import run
from tests.support.driver import Controllers, Driver, eventually
from tests.support.healthy import NS, OURS

TOKEN = "t0p-secret.of-a.worker"


def lists_in(path: str) -> list[Any]:
    return list(yaml.load_all(Path(path).read_text(), yaml.CSafeLoader))


@pytest.fixture
def login(kubeconfig: Path) -> str:
    return f"--kubeconfig={kubeconfig}"


@pytest.fixture
def dumped(admin: Driver, controllers: Controllers, login: str, tmp_path: Path) -> str:
    """Two clusters are selected; the kubeconfig of one of them is refused."""
    for name, text in (("a", builders.kubeconfig(TOKEN)), ("b", b"password: hunter2-hunter2")):
        admin.secret(f"multikueue-{name}", value=base64.b64encode(text).decode())
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
    done = run("dump", login)
    assert done.exit_code == 0, done.output
    path = tmp_path / "hub.yaml"
    path.write_text(done.stdout)
    return str(path)


def test_the_other_commands_say_the_same_of_the_dump(dumped: str, login: str) -> None:
    """But for the reason why Kueue cannot use a kubeconfig, which the dump does not contain."""
    live, read = (
        json.loads(run("explain", "check", "p", "-o", "json", source).output)
        for source in (login, f"--from-dump={dumped}")
    )
    assert read["checks"][0]["links"] == live["checks"][0]["links"]
    clusters = [
        [
            (cluster["cluster"], cluster["state"], cluster["step"])
            for cluster in found["checks"][0]["clusters"]
        ]
        for found in (live, read)
    ]
    assert clusters[0] == clusters[1] == [("a", "listed", "List"), ("b", "unusable", "Credential")]


def test_no_secret_is_in_the_dump(dumped: str) -> None:
    text = Path(dumped).read_text()
    for part in ("hunter2", *TOKEN.split("."), base64.b64encode(builders.kubeconfig(TOKEN)).decode()):
        assert part not in text
    assert "multikueue-a" in text


def test_a_kind_without_objects_is_known_and_one_that_may_not_be_read_is_not(
    hub: Hub, admin: Driver, dumped: str, tmp_path: Path
) -> None:
    kinds = [one["kind"] for one in lists_in(dumped)]
    assert {"AddOnPlacementScoreList", "SecretList", "WorkloadList"} <= set(kinds)
    nobody = kubeconfig_of(hub, tmp_path / "nobody", hub.add_user("nobody", groups=[]))
    done = run("dump", f"--kubeconfig={nobody}")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("missing rights: ask an admin to bind placement-ac's viewer roles to you")
    assert done.stderr.endswith("; the dump lacks these objects\n")


def test_the_controllers_lease_is_in_the_dump_and_no_other(admin: Driver, login: str, tmp_path: Path) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
    for name in ("placement-ac", "other"):
        admin.ask("POST", leases, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
    path = tmp_path / "hub.yaml"
    path.write_text(run("dump", login).stdout)
    [found] = [one for one in lists_in(str(path)) if one["kind"] == "LeaseList"]
    assert [item["metadata"]["name"] for item in found["items"]] == ["placement-ac"]


# -- values that may be secret


def shared(*objects: Raw) -> list[Raw]:
    """The objects as the dump has them, of all kinds."""
    dump = dump_of(objects)
    return [
        shared_object for kind in dump.objects for shared_object in shared_objects(dump, kind, (NS, OURS))
    ]


OUR_DOMAIN = "placement-ac.open-cluster-management.io"


def annotated(obj: Raw, **annotations: str) -> Raw:
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}


def raw_secret(name: str = "multikueue-a", **data: str) -> Raw:
    return secret(name) | {"data": data}


def encoded(token: str) -> str:
    return base64.b64encode(builders.kubeconfig(token)).decode()


def test_the_values_of_a_secret_are_replaced() -> None:
    [found] = shared(raw_secret(kubeconfig=encoded(TOKEN), other="dG9wLXNlY3JldA=="))
    assert base64.b64decode(found["data"]["other"]) == b"redacted"
    assert b"https://server-1.redacted.invalid" in base64.b64decode(found["data"]["kubeconfig"])


def test_a_kubeconfig_that_is_refused_stays_one() -> None:
    [found] = shared(raw_secret(kubeconfig="eA=="))
    assert base64.b64decode(found["data"]["kubeconfig"]) == b"redacted"


def test_kubeconfigs_are_the_same_only_if_their_server_and_user_are() -> None:
    """Else `doctor` would find one worker behind all of them."""
    tokens = {"a": "one", "b": "two", "c": "one"}
    found = shared(*(raw_secret(name, kubeconfig=encoded(token)) for name, token in tokens.items()))
    users = [server_and_user(one) for one in found]
    assert (users[0] == users[2], users[0] == users[1]) == (True, False)


def test_a_kubeconfig_expires_when_the_real_one_does() -> None:
    claims = {"iat": 1_785_000_000, "exp": 1_785_600_000, "sub": "hunter2"}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "x"}, claims))
    real = raw_secret(kubeconfig=encoded(".".join((*(part.rstrip("=") for part in parts), "hunter2"))))
    [found] = shared(real)
    assert b"hunter2" not in base64.b64decode(found["data"]["kubeconfig"])
    times = [(one.issued, one.expires) for one in map(decode.secret, (real, found))]
    assert times[0] == times[1] != (None, None)


SECRETS_OF_PODS = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"vault": "hunter2"}},
    "spec": {
        "serviceAccountName": "account",
        "containers": [
            {
                "name": "sidecar",
                "image": "r/sidecar:1",
                "command": ["run", "hunter2"],
                "args": ["--password=hunter2"],
                "env": [
                    {"name": "PASSWORD", "value": "hunter2"},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "livenessProbe": {
                    "httpGet": {"httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}
                },
                "resources": {"requests": {"nvidia.com/gpu": 2}},
            }
        ],
        "initContainers": [
            {"name": "first", "args": ["hunter2"], "env": [{"name": "A", "value": "hunter2"}]}
        ],
        "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"key": "hunter2"}}}],
    },
}
KEPT_OF_PODS = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "serviceAccountName": "account",
        "containers": [
            {
                "name": "sidecar",
                "image": "r/sidecar:1",
                "resources": {"requests": {"nvidia.com/gpu": 2}},
                "env": [
                    {"name": "PASSWORD", "value": "redacted"},
                    {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
            }
        ],
        "initContainers": [{"name": "first", "env": [{"name": "A", "value": "redacted"}]}],
        "volumes": [{"name": "v"}],
    },
}


def test_a_workload_keeps_all_that_decides_to_which_cluster_it_goes() -> None:
    asks = {"kueue.x-k8s.io/multikueue-cluster-names": "a", f"{OUR_DOMAIN}/cluster-selector": "gpu=h100"}
    wanted = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
    template = {
        "metadata": {"labels": {"app": "x"}, "annotations": asks | {"vault": "hunter2"}},
        "spec": {"nodeSelector": {"disk": "ssd"}, "affinity": {"nodeAffinity": required, "podAffinity": {}}},
    }
    spec = {"queueName": "q", "podSets": [{"template": template}]}
    own = {f"{OUR_DOMAIN}/preferred-clusters": "1:gpu=t4", LAST_APPLIED: "hunter2"}
    made = annotated(an(WORKLOAD, "w", "team", spec=spec), **own)
    [found] = shared(made)
    assert (job_spec(found), "hunter2" in str(found)) == (job_spec(made), False)


def test_a_deployment_has_the_settings_of_the_controller_and_no_other_value() -> None:
    ours = {
        "name": "controller",
        "image": "r/placement-ac:1",
        "args": ["run", "--log-level=debug"],
        "env": [{"name": "PLACEMENT_AC_DISPATCHER", "value": "true"}],
    }
    pods = copy.deepcopy(SECRETS_OF_PODS)
    pods["spec"]["containers"].append(ours)
    made = an(DEPLOYMENT, "placement-ac", OURS, spec={"replicas": 2, "template": pods})
    [found] = shared(annotated(made, **{LAST_APPLIED: "hunter2"}))
    expected = copy.deepcopy(KEPT_OF_PODS)
    expected["spec"]["containers"].append(ours)
    assert found["spec"] == {"replicas": 2, "template": expected}
    assert "hunter2" not in str(found)


def test_only_deployments_that_a_command_looks_at_are_in_the_dump() -> None:
    places = [
        ("anything", NS),
        ("anything", OURS),
        ("shop", "team"),
        ("kueue-addon-controller", "ocm"),
        ("kueue-controller-manager", "kueue"),
    ]
    found = shared(*(an(DEPLOYMENT, *place, spec={}) for place in places))
    assert [(one["metadata"]["name"], one["metadata"]["namespace"]) for one in found] == [
        place for place in places if place != ("shop", "team")
    ]


KUEUES = """
kind: Configuration
multiKueue:
  clusterProfile:
    accessProviders:
    - name: ocm
      execConfig: {command: /plugins/cp-creds, env: [{name: PASSWORD, value: hunter2}]}
"""


def test_a_config_map_has_the_settings_and_no_other_value() -> None:
    objects = {healthy.key_of(obj): obj for obj in healthy.objects()}
    maps = [objects["ConfigMap", OURS, "placement-ac"], objects["ConfigMap", NS, "kueue-manager-config"]]
    before = copy.deepcopy(maps)
    others = ["config.yaml", "controller_manager_config.yaml", "password"]
    for one in maps:
        one["data"]["password"] = "hunter2"
    other = an(CONFIG_MAP, "other", NS) | {"data": dict.fromkeys(others, "hunter2")}
    found = {
        one["metadata"]["name"]: one for one in shared(*objects.values(), other) if one["kind"] == "ConfigMap"
    }
    for one in before:
        assert found[one["metadata"]["name"]]["data"] == one["data"] | {"password": "redacted"}
    assert found["other"]["data"] == dict.fromkeys(others, "redacted")


def test_the_variables_of_kueues_plugins_are_replaced() -> None:
    objects = {healthy.key_of(obj): obj for obj in healthy.objects()}
    objects["ConfigMap", NS, "kueue-manager-config"]["data"] = {"controller_manager_config.yaml": KUEUES}
    found = {one["metadata"]["name"]: one for one in shared(*objects.values()) if one["kind"] == "ConfigMap"}
    text = found["kueue-manager-config"]["data"]["controller_manager_config.yaml"]
    assert yaml.safe_load(text) == yaml.safe_load(KUEUES.replace("hunter2", "redacted"))


def test_a_cluster_profile_has_no_password_and_no_extension() -> None:
    cluster = {
        "server": "https://w.example:6443/a?token=hunter2",
        "proxy-url": "http://user:hunter2@proxy.example",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": "hunter2"}}],
    }
    status = {"accessProviders": [{"name": "ocm", "cluster": cluster}]}
    [found] = shared(annotated(an(CLUSTER_PROFILE, "w", NS, status=status), a="hunter2"))
    assert found["status"]["accessProviders"] == [
        {
            "name": "ocm",
            "cluster": {"server": "https://w.example:6443/a", "proxy-url": "http://redacted@proxy.example"},
        }
    ]
    assert "hunter2" not in str(found)
