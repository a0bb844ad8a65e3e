#!/usr/bin/env bash
# sigs.k8s.io/kueue v0.19.0, v0.19.1 and v0.19.2: patch releases bring feature gates that are on at once, among them
# MultiKueueRemoteSpecSync (0.19.1). A manager refuses a gate that it does not know ("unrecognized feature gate", seen with
# main ff69552e) and does not start: a configuration that
# turns one off for 0.19.1 stops 0.19.0, so hub and workers can share it only from the patch release on.
source "$(dirname "$0")/lib.sh"
cat >"$folder/gates.py" <<'PYTHON'
"""Print the gates of a kube_features.go that are on by default, sorted."""

import re
import sys

text = open(sys.argv[1]).read()
for gate, body in sorted(re.findall(r"^\t(\w+):\s*\{(.*?)^\t\}", text, re.MULTILINE | re.DOTALL)):
    if re.findall(r"Default:\s*(\w+)", body)[-1:] == ["true"]:
        print(gate)
PYTHON
for version in 0.19.0 0.19.1 0.19.2; do
  (cd "$folder" && GOFLAGS=-mod=mod go mod download -json "sigs.k8s.io/kueue@v$version") |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"] + "/pkg/features/kube_features.go")' |
    xargs python3 "$folder/gates.py" >"$folder/$version"
done
seen="$(for pair in "0.19.0 0.19.1" "0.19.1 0.19.2"; do
  read -r old new <<<"$pair"
  comm -13 "$folder/$old" "$folder/$new" | sed "s/^/on since $new: /"
done)"
expect "$seen" <<'SEEN'
on since 0.19.1: FlavorFungibilityPreserveScanProgress
on since 0.19.1: LWSImmutableGroupSize
on since 0.19.1: MultiKueueRemoteSpecSync
on since 0.19.1: SkipAncestorCheckForDeletedWorkloads
on since 0.19.1: TASValidateWorkloadSliceSize
on since 0.19.1: WorkloadValidateResourcesAreNonNegative
on since 0.19.1: WorkloadValidationForPodSetMetadata
on since 0.19.2: PodIntegrationValidateGroupOwner
on since 0.19.2: ValidateRayAndSparkJobUpdates
SEEN
