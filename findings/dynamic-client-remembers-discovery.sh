#!/usr/bin/env bash
# kubernetes 37.0.2, kubernetes.dynamic.DynamicClient: what a server serves is kept in a file in the temporary folder, by
# the server's address, and believed by every later process without asking and without an end. A program that starts
# after an upgrade which took a version away (Kueue 0.20 takes v1beta1) goes on using the old one until its own miss.
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2
seen="$(TMPDIR="$folder" PYTHONPATH="$(dirname "$0")" "$python" - <<'PYTHON'
import glob
import os
import stat

import kubernetes
import server
from kubernetes import dynamic

configuration = kubernetes.client.Configuration()
configuration.host = server.serve()
for start in (1, 2):
    server.DISCOVERED.clear()
    client = dynamic.DynamicClient(kubernetes.client.ApiClient(configuration))
    resource = client.resources.get(api_version="v1", kind="ConfigMap")
    print("start", start, "asked", server.DISCOVERED)
server.DISCOVERY["/api/v1"]["resources"].clear()
client = dynamic.DynamicClient(kubernetes.client.ApiClient(configuration))
print("no longer served, still found:", client.resources.get(api_version="v1", kind="ConfigMap").kind)
kept = glob.glob(os.environ["TMPDIR"] + "/osrcp-*.json")
print(len(kept), "file of mode", oct(stat.S_IMODE(os.stat(kept[0]).st_mode)))
client.patch(resource, {"data": {}}, name="a", namespace="default")
print("a patch is by default", server.REQUESTS[-1][2])
PYTHON
)"
expect "$seen" <<'SEEN'
start 1 asked ['/version', '/apis', '/api/v1']
start 2 asked []
no longer served, still found: ConfigMap
1 file of mode 0o644
a patch is by default application/strategic-merge-patch+json
SEEN
