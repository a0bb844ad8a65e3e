#!/usr/bin/env bash
# kubernetes 37.0.2 and k8s.io/apimachinery v0.36.2: a Lease's `renewTime` must have exactly six digits of a second, and
# this client writes none when they are all zero (`datetime.isoformat`). So a Lease that was read and is written back
# unchanged is refused once in a million times, and always where a program has rounded its times to seconds.
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2
with_go k8s.io/apimachinery@v0.36.2 <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	for _, text := range os.Args[1:] {
		var time metav1.MicroTime
		fmt.Println(text, "accepted:", json.Unmarshal([]byte(`"`+text+`"`), &time) == nil)
	}
}
GO
written="$("$python" - <<'PYTHON'
import datetime

from kubernetes.client import ApiClient, V1Lease, V1LeaseSpec

for microsecond in (0, 1):
    at = datetime.datetime(2026, 1, 1, microsecond=microsecond, tzinfo=datetime.timezone.utc)
    lease = V1Lease(spec=V1LeaseSpec(renew_time=at))
    print(ApiClient().sanitize_for_serialization(lease)["spec"]["renewTime"])
PYTHON
)"
expect "$("$program" $written 2026-01-01T00:00:00.123Z 2026-01-01T00:00:00.123456789Z)" <<'SEEN'
2026-01-01T00:00:00+00:00 accepted: false
2026-01-01T00:00:00.000001+00:00 accepted: true
2026-01-01T00:00:00.123Z accepted: false
2026-01-01T00:00:00.123456789Z accepted: false
SEEN
