#!/usr/bin/env bash
# kubernetes_asyncio 36.1.0 writes Python's booleans into queries: `watch=True`, `force=True`. API servers read them with
# Go's strconv.ParseBool, which takes 1, t, T, true, TRUE and True, so nobody notices there; a proxy or a server of one's
# own that looks for `true` answers a watch with a list. kubernetes 37.0.2 writes `true`.
# (Its User-Agent says 33.3.0+snapshot in 36.1.0: who reads audit logs, looks for another version.)
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2 kubernetes_asyncio==36.1.0
seen="$(PYTHONPATH="$(dirname "$0")" "$python" - <<'PYTHON'
import asyncio

import kubernetes
import kubernetes_asyncio
import server

address = server.serve()
configuration = kubernetes.client.Configuration()
configuration.host = address
core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
APPLY = {"field_manager": "x", "force": True, "_content_type": "application/apply-patch+yaml"}
for _ in kubernetes.watch.Watch().stream(core.list_namespaced_config_map, "default"):
    break
core.patch_namespaced_config_map("a", "default", {"kind": "ConfigMap"}, **APPLY)


async def main():
    configuration = kubernetes_asyncio.client.Configuration(host=address)
    async with kubernetes_asyncio.client.ApiClient(configuration) as client:
        core = kubernetes_asyncio.client.CoreV1Api(client)
        async with kubernetes_asyncio.watch.Watch() as watch:
            async for _ in watch.stream(core.list_namespaced_config_map, "default"):
                break
        await core.patch_namespaced_config_map("a", "default", {"kind": "ConfigMap"}, **APPLY)
        print(client.user_agent)


asyncio.run(main())
for method, path, *_ in server.REQUESTS:
    print(method, path)
PYTHON
)"
expect "$seen" <<'SEEN'
OpenAPI-Generator/33.3.0+snapshot/python
GET /api/v1/namespaces/default/configmaps?watch=true
PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=x&force=true
GET /api/v1/namespaces/default/configmaps?watch=True
PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=x&force=True
SEEN
