"""Kubernetes' own client: typed, dynamic, a watch, an informer, the election of a leader."""

import time
from queue import Queue

from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

MAPS = "kubernetes-maps"
LABELS = {"of": MAPS}


def config_map(name: str, value: str) -> client.V1ConfigMap:
    metadata = client.V1ObjectMeta(name=name, labels=LABELS)
    return client.V1ConfigMap(metadata=metadata, data={"k": value})


def typed(core: client.CoreV1Api) -> None:
    batch = client.BatchV1Api()
    container = client.V1Container(name="c", image="i", command=["sleep", "1s"])
    pod = client.V1PodSpec(containers=[container], restart_policy="Never")
    spec = client.V1JobSpec(template=client.V1PodTemplateSpec(spec=pod), suspend=True)
    job = client.V1Job(metadata=client.V1ObjectMeta(generate_name="typed-"), spec=spec)
    name = batch.create_namespaced_job("libraries", job).metadata.name
    assert batch.read_namespaced_job_status(name, "libraries").status.active is None
    patched = batch.patch_namespaced_job(name, "libraries", {"metadata": {"labels": LABELS}})
    assert LABELS.items() <= patched.metadata.labels.items()
    labelled = batch.list_namespaced_job("libraries", label_selector=f"of={MAPS}", limit=1)
    assert [one.metadata.name for one in labelled.items] == [name]
    options = client.V1DeleteOptions(propagation_policy="Foreground")
    batch.delete_namespaced_job(name, "libraries", body=options)
    while batch.list_namespaced_job("libraries", label_selector=f"of={MAPS}").items:
        time.sleep(0.1)
    assert [
        one.metadata.name for one in core.list_namespace(field_selector="metadata.name=libraries").items
    ] == ["libraries"]


def dynamic() -> None:
    configs = DynamicClient(client.ApiClient()).resources.get(
        api_version="kueue.x-k8s.io/v1beta2", kind="MultiKueueConfig"
    )
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueConfig",
        "metadata": {"name": MAPS},
        "spec": {"clusters": ["a"]},
    }
    assert configs.create(body).spec.clusters == ["a"]
    applied = configs.server_side_apply(
        body | {"spec": {"clusters": ["b"]}}, field_manager="m", force_conflicts=True
    )
    assert applied.spec.clusters == ["b"]
    assert configs.get(name=MAPS).metadata.name == MAPS
    configs.delete(name=MAPS)


def watched(core: client.CoreV1Api) -> None:
    core.create_namespaced_config_map("libraries", config_map("watched", "1"))
    watcher, seen = watch.Watch(), []
    for event in watcher.stream(
        core.list_namespaced_config_map, "libraries", label_selector=f"of={MAPS}", timeout_seconds=30
    ):
        seen.append((event["type"], event["object"].data["k"]))
        if event["type"] == "ADDED":
            core.replace_namespaced_config_map("watched", "libraries", config_map("watched", "2"))
        elif event["type"] == "MODIFIED":
            core.delete_namespaced_config_map("watched", "libraries")
        else:
            watcher.stop()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def informed(core: client.CoreV1Api) -> None:
    informer = SharedInformer(
        core.list_namespaced_config_map, namespace="libraries", label_selector=f"of={MAPS}"
    )
    seen: Queue[tuple[str, str]] = Queue()
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda one, kind=kind: seen.put((kind, one.data["k"])))
    core.create_namespaced_config_map("libraries", config_map("informed", "1"))
    informer.start()
    assert seen.get(timeout=30) == ("ADDED", "1")
    core.patch_namespaced_config_map("informed", "libraries", {"data": {"k": "2"}})
    assert seen.get(timeout=30) == ("MODIFIED", "2")
    core.delete_namespaced_config_map("informed", "libraries")
    assert seen.get(timeout=30) == ("DELETED", "2")
    informer.stop()


def elected() -> None:
    ends: list[str] = []

    def lead() -> None:
        ends.append("leads")
        raise RuntimeError("the work is done")  # which ends the leadership, too

    lock = LeaseLock("kubernetes-lock", "libraries", "me")
    settings = electionconfig.Config(
        lock,
        lease_duration=5,
        renew_deadline=4,
        retry_period=1,
        onstarted_leading=lead,
        onstopped_leading=lambda: ends.append("stopped"),
    )
    leaderelection.LeaderElection(settings).run()
    lease = client.CoordinationV1Api().read_namespaced_lease("kubernetes-lock", "libraries")
    assert (ends, lease.spec.holder_identity) == (["leads", "stopped"], "me")


config.load_kube_config()
api = client.CoreV1Api()
typed(api)
dynamic()
watched(api)
informed(api)
elected()
