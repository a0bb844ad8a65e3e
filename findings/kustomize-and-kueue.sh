#!/usr/bin/env bash
# sigs.k8s.io/kustomize/kustomize/v5 v5.8.0 knows scopes and references of built-in kinds alone. With `namePrefix` a
# MultiKueueConfig is renamed, and the AdmissionCheck that names it in `parameters` is not: Kueue's check then points to
# nothing. With `namespace` both cluster-scoped objects get a namespace. And of a ClusterRoleBinding's subjects it moves
# those whose account is in the same build, and every one that is called `default`, whoever's it is.
source "$(dirname "$0")/lib.sh"
GOBIN="$folder" go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.0 >"$folder/go.log" 2>&1 || { cat "$folder/go.log" >&2; exit 1; }
mkdir "$folder/build"
cat >"$folder/build/kustomization.yaml" <<'YAML'
namespace: other
namePrefix: x-
resources: [objects.yaml]
YAML
cat >"$folder/build/objects.yaml" <<'YAML'
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: gpus}
spec: {clusters: [c1]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: gpus}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: gpus}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, name: default, namespace: theirs}
- {kind: ServiceAccount, name: agent, namespace: theirs}
YAML
expect "$("$folder/kustomize" build "$folder/build")" <<'SEEN'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: x-b
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: view
subjects:
- kind: ServiceAccount
  name: default
  namespace: other
- kind: ServiceAccount
  name: agent
  namespace: theirs
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata:
  name: x-gpus
  namespace: other
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters:
    apiGroup: kueue.x-k8s.io
    kind: MultiKueueConfig
    name: gpus
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata:
  name: x-gpus
  namespace: other
spec:
  clusters:
  - c1
SEEN
