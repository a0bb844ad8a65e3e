#!/usr/bin/env bash
# pykube-ng 23.6.0: `APIObject.update()` is no PUT. It merges what was read back into `obj` and sends all of it as a JSON
# merge patch. So a key that was taken out of `obj` and "updated" is still there afterwards, on the server and in `obj`,
# without an error. A label that is to go must be set to None.
source "$(dirname "$0")/lib.sh"
with_python pykube-ng==23.6.0
seen="$(PYTHONPATH="$(dirname "$0")" "$python" - <<'PYTHON'
import json

import pykube
import server

api = pykube.HTTPClient(pykube.KubeConfig(server.kubeconfig(server.serve())))
found = pykube.ConfigMap.objects(api).get_by_name("a")
del found.obj["data"]["dropped"]
found.update()
method, path, content_type, body = server.REQUESTS[-1]
print(method, path, content_type, json.loads(body)["data"])
PYTHON
)"
expect "$seen" <<'SEEN'
PATCH /api/v1/namespaces/default/configmaps/a application/merge-patch+json {'kept': '1', 'dropped': '1'}
SEEN
