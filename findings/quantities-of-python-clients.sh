#!/usr/bin/env bash
# kubernetes 37.0.2, kubernetes.utils.parse_quantity: reads quantities that no API server accepts (1K, "1 Gi", 1_000,
# 1e3Ki, NaN), as it hands the number to decimal.Decimal. lightkube 1.0.1, lightkube.utils.quantity.parse_quantity: the
# reverse; it raises on the suffixes n and u, which metrics-server sends for CPU, and on 1E3, and rounds up to a thousandth.
# k8s.io/apimachinery v0.36.2 is asked for what is valid.
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2 lightkube==1.0.1
with_go k8s.io/apimachinery@v0.36.2 <<'GO'
package main

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range os.Args[1:] {
		if quantity, err := resource.ParseQuantity(text); err != nil {
			fmt.Println("Go", text, "refused")
		} else {
			fmt.Println("Go", text, quantity.AsDec())
		}
	}
}
GO
texts=(1K "1 Gi" 1_000 1e3Ki NaN 250000n 100u 1E3 0.1m)
seen="$("$program" "${texts[@]}")
$("$python" - "${texts[@]}" <<'PYTHON'
import sys
from kubernetes.utils import parse_quantity as kubernetes
from lightkube.utils.quantity import parse_quantity as lightkube

for name, parse in (("kubernetes", kubernetes), ("lightkube", lightkube)):
    for text in sys.argv[1:]:
        try:
            print(name, text, f"{parse(text):f}")
        except ValueError:
            print(name, text, "refused")
PYTHON
)"
expect "$seen" <<'SEEN'
Go 1K refused
Go 1 Gi refused
Go 1_000 refused
Go 1e3Ki refused
Go NaN refused
Go 250000n 0.000250000
Go 100u 0.000100
Go 1E3 1000
Go 0.1m 0.0001
kubernetes 1K 1000
kubernetes 1 Gi 1073741824
kubernetes 1_000 1000
kubernetes 1e3Ki 1024000
kubernetes NaN NaN
kubernetes 250000n 0.000250000
kubernetes 100u 0.000100
kubernetes 1E3 1000
kubernetes 0.1m 0.0001
lightkube 1K refused
lightkube 1 Gi refused
lightkube 1_000 refused
lightkube 1e3Ki 1024000.000
lightkube NaN refused
lightkube 250000n refused
lightkube 100u refused
lightkube 1E3 refused
lightkube 0.1m 0.001
SEEN
