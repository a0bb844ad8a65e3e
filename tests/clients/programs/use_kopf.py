"""kopf: an operator that keeps its progress in annotations, and a finalizer on what it handles."""

import asyncio
import threading

import kopf
import kubernetes

NAME = "kopf"
GROUP, VERSION, PLURAL = "kueue.x-k8s.io", "v1beta2", "multikueueconfigs"
registry = kopf.OperatorRegistry()
ready, created, changed, deleted = (threading.Event() for _ in range(4))
seen: dict[str, object] = {}


kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)


@kopf.on.create(GROUP, VERSION, PLURAL, registry=registry, field="metadata.name", value=NAME)
def on_create(spec: kopf.Spec, patch: kopf.Patch, **_: object) -> None:
    seen["created"] = list(spec["clusters"])
    patch.metadata.labels["of"] = NAME
    created.set()


@kopf.on.update(GROUP, VERSION, PLURAL, registry=registry, field="spec.clusters")
def on_update(old: list[str], new: list[str], **_: object) -> None:
    seen["changed"] = (list(old), list(new))
    changed.set()


@kopf.on.delete(GROUP, VERSION, PLURAL, registry=registry, labels={"of": NAME})
def on_delete(**_: object) -> None:
    deleted.set()


def operate(stop: threading.Event) -> None:
    asyncio.run(
        kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop, ready_flag=ready)
    )


kubernetes.config.load_kube_config()
api = kubernetes.client.CustomObjectsApi()
body = {
    "apiVersion": f"{GROUP}/{VERSION}",
    "kind": "MultiKueueConfig",
    "metadata": {"name": NAME},
    "spec": {"clusters": ["a"]},
}
stop = threading.Event()
operator = threading.Thread(target=operate, args=[stop])
operator.start()
try:
    assert ready.wait(30)
    api.create_cluster_custom_object(GROUP, VERSION, PLURAL, body)
    assert created.wait(30)
    api.patch_cluster_custom_object(GROUP, VERSION, PLURAL, NAME, {"spec": {"clusters": ["a", "b"]}})
    assert changed.wait(30)
    api.delete_cluster_custom_object(GROUP, VERSION, PLURAL, NAME)
    assert deleted.wait(30)
finally:
    stop.set()
    operator.join(30)
assert seen == {"created": ["a"], "changed": (["a"], ["a", "b"])}
