#!/usr/bin/env bash
# k8s.io/apimachinery v0.36.2, resource.Quantity: a value that does not fit an int64 is not the largest one.
# `Value()` of 100E is 0, `MilliValue()` of 10P (ten million billion cores) is 0, and `MilliValue()` of 1Ei is negative.
# Who compares quotas as Kueue does, in milli-units of cpu and in bytes, gets 0 for "as much as you like"; and Value()
# rounds up, so a billionth of a GPU is one GPU.
source "$(dirname "$0")/lib.sh"
with_go k8s.io/apimachinery@v0.36.2 <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range []string{"8E", "9.3E", "100E", "9P", "10P", "1Ei", "1n"} {
		quantity := resource.MustParse(text)
		fmt.Println(text, quantity.Value(), quantity.MilliValue())
	}
}
GO
expect "$("$program")" <<'SEEN'
8E 8000000000000000000 0
9.3E 0 0
100E 0 0
9P 9000000000000000 9000000000000000000
10P 10000000000000000 0
1Ei 1152921504606846976 -9223372036854775808
1n 1 1
SEEN
