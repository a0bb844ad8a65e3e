#!/usr/bin/env bash
# $KUBECONFIG may name several files, and kubectl merges them: a context of the second file is found. lightkube 1.0.1 and
# pykube-ng 23.6.0 take the whole list for one file's name; kr8s 0.20.15 reads `current-context` of the first file alone;
# kubernetes 37.0.2 and kubernetes_asyncio 36.1.0 merge as kubectl does.
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2 kubernetes_asyncio==36.1.0 lightkube==1.0.1 pykube-ng==23.6.0 kr8s==0.20.15
cat >"$folder/a" <<'YAML'
{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [], users: []}
YAML
cat >"$folder/b" <<'YAML'
apiVersion: v1
kind: Config
clusters: []
users: [{name: u, user: {token: nothing}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
YAML
seen="$(KUBECONFIG="$folder/a:$folder/b" "$python" - "$folder" <<'PYTHON'
import asyncio
import sys

import kr8s
import kubernetes
import kubernetes_asyncio
import lightkube
import pykube


def of_kubernetes():
    kubernetes.config.load_kube_config()
    return kubernetes.client.Configuration.get_default_copy().host


def of_asyncio():
    asyncio.run(kubernetes_asyncio.config.load_kube_config())
    return kubernetes_asyncio.client.Configuration.get_default_copy().host


for name, server in (
    ("kubernetes", of_kubernetes),
    ("kubernetes_asyncio", of_asyncio),
    ("lightkube", lambda: lightkube.KubeConfig.from_env().get().cluster.server),
    ("pykube-ng", lambda: pykube.KubeConfig.from_env().cluster["server"]),
    ("kr8s", lambda: kr8s.api().auth.server),
):
    try:
        print(name, server())
    except Exception as error:
        print(name, type(error).__name__, str(error).replace(sys.argv[1], "FOLDER"))
PYTHON
)"
expect "$seen" <<'SEEN'
kubernetes http://127.0.0.1:1
kubernetes_asyncio http://127.0.0.1:1
lightkube ConfigError Configuration file FOLDER/a:FOLDER/b not found
pykube-ng PyKubeError Configuration file FOLDER/a:FOLDER/b not found
kr8s KeyError 'current-context'
SEEN
