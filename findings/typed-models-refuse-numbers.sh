#!/usr/bin/env bash
# kubernetes 37.0.2: its models are pydantic's, and strict: `limits: {cpu: 1}`, as most YAML is written and as
# every API server accepts it, is refused by `V1Container`, which wants "1". The dynamic client takes it as it is.
source "$(dirname "$0")/lib.sh"
with_python kubernetes==37.0.2
seen="$("$python" - <<'PYTHON'
from kubernetes.client import V1Container

for cpu in ("1", 1):
    try:
        container = V1Container.from_dict({"name": "c", "resources": {"limits": {"cpu": cpu}}})
        print(repr(cpu), container.resources.limits)
    except ValueError as error:
        print(repr(cpu), type(error).__name__, error.errors()[0]["msg"])
PYTHON
)"
expect "$seen" <<'SEEN'
'1' {'cpu': '1'}
1 ValidationError Input should be a valid string
SEEN
