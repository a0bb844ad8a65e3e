#!/usr/bin/env bash
# gopkg.in/evanphx/json-patch.v4 v4.13.0, with which API servers apply JSON patches, differs from RFC 6902: `replace` of a
# member that is not there adds it, `test` of an absent member against null passes, and the index -1 is the last item for
# `remove` and one behind it for `add`. So "replace" guards nothing; only a `test` with a value does.
source "$(dirname "$0")/lib.sh"
with_go gopkg.in/evanphx/json-patch.v4@v4.13.0 <<'GO'
package main

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func main() {
	for _, operation := range []string{
		`{"op":"replace","path":"/a/x","value":1}`,
		`{"op":"remove","path":"/a/x"}`,
		`{"op":"test","path":"/a/x","value":null}`,
		`{"op":"add","path":"/l/-1","value":3}`,
		`{"op":"remove","path":"/l/-1"}`,
	} {
		patch, err := jsonpatch.DecodePatch([]byte("[" + operation + "]"))
		if err != nil {
			panic(err)
		}
		after, err := patch.Apply([]byte(`{"a":{},"l":[1,2]}`))
		fmt.Println(operation, string(after), err)
	}
}
GO
expect "$("$program")" <<'SEEN'
{"op":"replace","path":"/a/x","value":1} {"a":{"x":1},"l":[1,2]} <nil>
{"op":"remove","path":"/a/x"}  error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value
{"op":"test","path":"/a/x","value":null} {"a":{},"l":[1,2]} <nil>
{"op":"add","path":"/l/-1","value":3} {"a":{},"l":[1,2,3]} <nil>
{"op":"remove","path":"/l/-1"} {"a":{},"l":[1]} <nil>
SEEN
