"""kubernetes_asyncio: typed, dynamic, a watch, an apply."""

import asyncio

from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.dynamic import DynamicClient

NAME = "kubernetes-asyncio"


def config_map(value: str) -> dict[str, object]:
    metadata = {"name": NAME, "labels": {"of": NAME}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": value}}


async def watched(core: client.CoreV1Api) -> None:
    await core.create_namespaced_config_map("libraries", config_map("1"))
    seen = []
    async with watch.Watch().stream(
        core.list_namespaced_config_map, "libraries", label_selector=f"of={NAME}", timeout_seconds=30
    ) as events:
        async for event in events:
            seen.append((event["type"], event["object"].data["k"]))
            if event["type"] == "ADDED":
                await core.patch_namespaced_config_map(
                    NAME,
                    "libraries",
                    config_map("2"),
                    field_manager="m",
                    force=True,
                    _content_type="application/apply-patch+yaml",
                )
            elif event["type"] == "MODIFIED":
                await core.delete_namespaced_config_map(NAME, "libraries")
            else:
                break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def dynamic(api: client.ApiClient) -> None:
    configs = await (await DynamicClient(api)).resources.get(
        api_version="kueue.x-k8s.io/v1beta2", kind="MultiKueueConfig"
    )
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "MultiKueueConfig",
        "metadata": {"name": NAME},
        "spec": {"clusters": ["a"]},
    }
    assert (await configs.create(body)).spec.clusters == ["a"]
    applied = await configs.server_side_apply(
        body | {"spec": {"clusters": ["b"]}}, field_manager="m", force_conflicts=True
    )
    assert applied.spec.clusters == ["b"]
    await configs.delete(name=NAME)


async def main() -> None:
    async with await config.new_client_from_config() as api:
        await watched(client.CoreV1Api(api))
        await dynamic(api)
        template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
        job = {"metadata": {"generateName": f"{NAME}-"}, "spec": {"suspend": True, "template": template}}
        batch = client.BatchV1Api(api)
        name = (await batch.create_namespaced_job("libraries", job)).metadata.name
        assert (await batch.read_namespaced_job_status(name, "libraries")).status.active is None
        await batch.delete_namespaced_job(name, "libraries", propagation_policy="Foreground")


asyncio.run(main())
