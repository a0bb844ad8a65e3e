"""The kubernetes client and kopf against the hub."""

import asyncio
import threading
from typing import Any

import kopf
import kubernetes
from kubernetes.dynamic import DynamicClient

from placement_lab.hub import Hub
from tests.support.driver import eventually
from tests.support.hub_client import CONFIGS, Client, config


def test_the_kubernetes_client(hub: Hub) -> None:
    api = kubernetes.config.new_client_from_config_dict(hub.kubeconfig())
    client = DynamicClient(api)
    configs = client.resources.get(api_version="kueue.x-k8s.io/v1beta2", kind="MultiKueueConfig")
    before = configs.get().metadata.resourceVersion
    created = configs.create(body=config("a", "x"))
    assert created.spec.clusters == ["x"]
    done = configs.server_side_apply(
        body=config("a", "y"), name="a", field_manager="me", force_conflicts=True
    )
    assert done.spec.clusters == ["y"]
    assert [item.metadata.name for item in configs.get().items] == ["a"]
    configs.delete(name="a")
    events = configs.watch(resource_version=before, timeout=1)
    seen = [(event["type"], event["object"].metadata.name) for event in events]
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    core = kubernetes.client.CoreV1Api(api)
    core.create_namespaced_secret("default", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    assert core.read_namespaced_secret("s", "default").data == {"k": "dg=="}
    reviews = client.resources.get(api_version="authorization.k8s.io/v1", kind="SelfSubjectAccessReview")
    review = reviews.create({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    assert (review.kind, review.status.allowed) == ("SelfSubjectAccessReview", True)


def test_a_kopf_operator(hub: Hub) -> None:
    seen: list[tuple[str | None, str]] = []
    registry = kopf.OperatorRegistry()
    stop = threading.Event()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=hub.url, token=hub.token)

    @kopf.on.event("kueue.x-k8s.io", "v1beta2", "multikueueconfigs", registry=registry)
    def on_event(type: str | None, name: str, **_: Any) -> None:  # noqa: A002 kopf's name
        seen.append((type, name))

    def run() -> None:
        asyncio.run(kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop))

    client = Client(hub)
    client.create(CONFIGS, config("a"))
    operator = threading.Thread(target=run, daemon=True)
    operator.start()
    try:
        eventually(lambda: seen, [(None, "a")], seconds=15)
        client.patch(f"{CONFIGS}/a", {"spec": {"clusters": ["b"]}})
        eventually(lambda: seen[1:], [("MODIFIED", "a")])
        hub.forget_history()
        hub.drop_watches("error-410", "multikueueconfigs")
        eventually(lambda: seen[2:], [(None, "a")], seconds=15)
        client.delete(f"{CONFIGS}/a")
        eventually(lambda: seen[3:], [("DELETED", "a")])
    finally:
        stop.set()
        operator.join(20)
    assert not operator.is_alive()
