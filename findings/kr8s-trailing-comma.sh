#!/usr/bin/env bash
# kr8s 0.20.15: `get(kind, name)` is no GET of the name but a list with `fieldSelector=metadata.name=a,`, with a comma at
# the end. It works, as the field selectors of k8s.io/apimachinery v0.36.2 drop empty parts (even "," alone selects all);
# its label selectors do not: there the same comma is an error. So a server must be kind to the one, and not to the other.
source "$(dirname "$0")/lib.sh"
with_python kr8s==0.20.15
with_go k8s.io/apimachinery@v0.36.2 <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	for _, text := range []string{"metadata.name=a,", ","} {
		selector, err := fields.ParseSelector(text)
		fmt.Printf("fields %q: %q %v\n", text, selector, err)
	}
	_, err := labels.Parse("name=a,")
	fmt.Printf("labels %q: %v\n", "name=a,", err)
}
GO
seen="$(PYTHONPATH="$(dirname "$0")" "$python" - "$folder/config" <<'PYTHON'
import json
import pathlib
import sys

import kr8s
import server

pathlib.Path(sys.argv[1]).write_text(json.dumps(server.kubeconfig(server.serve())))
list(kr8s.api(kubeconfig=sys.argv[1]).get("configmaps", "a"))
print(server.REQUESTS[-1][1])
PYTHON
)
$("$program")"
expect "$seen" <<'SEEN'
/api/v1/namespaces/default/configmaps?limit=100&fieldSelector=metadata.name%3Da%2C
fields "metadata.name=a,": "metadata.name=a" <nil>
fields ",": "" <nil>
labels "name=a,": found '', expected: identifier after ','
SEEN
