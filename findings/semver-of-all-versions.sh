#!/usr/bin/env bash
# k8s.io/apiserver v0.36.2, cel/library: `SemverLib()` without an option is said to be of the newest version, and is of the
# first: `semver(text, true)` and `isSemver(text, true)`, which an API server 1.36 knows, do not compile. OCM main uses it
# so: a Placement with them selects nothing, while the same text is valid in a rule of a CRD beside it.
source "$(dirname "$0")/lib.sh"
with_go k8s.io/apiserver@v0.36.2 <<'GO'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

func main() {
	for name, option := range map[string]cel.EnvOption{
		"SemverLib()":                 library.SemverLib(),
		"SemverLib(SemverVersion(1))": library.SemverLib(library.SemverVersion(1)),
	} {
		env, err := cel.NewEnv(option)
		if err != nil {
			panic(err)
		}
		_, issues := env.Compile("semver('v1.2', true).isGreaterThan(semver('1.0.0'))")
		defer fmt.Println(name, "compiles:", issues.Err() == nil)
	}
}
GO
expect "$("$program" | sort)" <<'SEEN'
SemverLib() compiles: false
SemverLib(SemverVersion(1)) compiles: true
SEEN
