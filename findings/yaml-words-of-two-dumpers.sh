#!/usr/bin/env bash
# PyYAML 6.0.4 writes these strings without quotes, as YAML 1.1 would have a point or a sign in such a number;
# sigs.k8s.io/yaml v1.6.0, with which kubectl reads, takes them for a number or a truth value. A label `12e5` arrives as
# 1200000, a name 1e3 as 1000, a key `y` as true.
source "$(dirname "$0")/lib.sh"
with_python pyyaml==6.0.4
with_go sigs.k8s.io/yaml@v1.6.0 <<'GO'
package main

import (
	"fmt"
	"io"
	"os"
	"sort"

	"sigs.k8s.io/yaml"
)

func main() {
	text, _ := io.ReadAll(os.Stdin)
	var read map[string]any
	if err := yaml.Unmarshal(text, &read); err != nil {
		panic(err)
	}
	keys := []string{}
	for key := range read {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		if _, same := read[key].(string); !same {
			fmt.Printf("%s is %T %v\n", key, read[key], read[key])
		}
	}
}
GO
seen="$("$python" - <<'PYTHON' | "$program"
import yaml

WORDS = "12e5 1e3 1E3 0o10 08 09 0b11 1_000 y Y n N yes on off 1:30 2026-01-01 0x1F .5 5. +1 ~ null = 1e".split()
print(yaml.safe_dump({f"key of {word}": word for word in WORDS}))
PYTHON
)"
expect "$seen" <<'SEEN'
key of 08 is float64 8
key of 09 is float64 9
key of 0o10 is float64 8
key of 12e5 is float64 1.2e+06
key of 1E3 is float64 1000
key of 1e3 is float64 1000
key of N is bool false
key of Y is bool true
key of n is bool false
key of y is bool true
SEEN
