#!/usr/bin/env bash
# prometheus_client 0.26.0 for Python names a bucket le="1.0", github.com/prometheus/client_golang v1.23.2 le="1". Up to
# Prometheus 2 that is kept as it is sent, so `bucket{le="1"}` finds the buckets of Kueue and none of a Python controller;
# Prometheus 3 makes both 1.0 when it scrapes, so a rule that was written for Kueue by le="1" finds nothing after an upgrade.
source "$(dirname "$0")/lib.sh"
with_python prometheus_client==0.26.0
with_go github.com/prometheus/client_golang@v1.23.2 github.com/prometheus/common/expfmt <<'GO'
package main

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

func main() {
	registry := prometheus.NewRegistry()
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "go_seconds", Buckets: []float64{0.5, 1, 10}})
	registry.MustRegister(histogram)
	histogram.Observe(1)
	families, _ := registry.Gather()
	for _, family := range families {
		expfmt.MetricFamilyToText(os.Stdout, family)
	}
}
GO
seen="$("$program" | grep bucket)
$("$python" - <<'PYTHON' | grep bucket
import prometheus_client

registry = prometheus_client.CollectorRegistry()
prometheus_client.Histogram("python_seconds", "-", buckets=(0.5, 1, 10), registry=registry).observe(1)
print(prometheus_client.generate_latest(registry).decode())
PYTHON
)"
expect "$seen" <<'SEEN'
go_seconds_bucket{le="0.5"} 0
go_seconds_bucket{le="1"} 1
go_seconds_bucket{le="10"} 1
go_seconds_bucket{le="+Inf"} 1
python_seconds_bucket{le="0.5"} 0.0
python_seconds_bucket{le="1.0"} 1.0
python_seconds_bucket{le="10.0"} 1.0
python_seconds_bucket{le="+Inf"} 1.0
SEEN
