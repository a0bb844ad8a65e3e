#!/usr/bin/env bash
# msgspec 0.23.0 rounds nanoseconds, where Python's own `fromisoformat` and Go's MicroTime cut them: a time of the last half
# microsecond of a year is decoded as the next year. Who sorts by it, or compares it with the same text read elsewhere,
# finds an event after the one that it caused.
source "$(dirname "$0")/lib.sh"
with_python msgspec==0.23.0
seen="$("$python" - <<'PYTHON'
from datetime import datetime

import msgspec

for text in ("2026-12-31T23:59:59.9999994Z", "2026-12-31T23:59:59.9999996Z"):
    decoded = msgspec.json.decode(f'"{text}"', type=datetime)
    print(text, "->", decoded.isoformat(), "cut:", msgspec.convert(text[:26] + "Z", datetime).isoformat())
PYTHON
)"
expect "$seen" <<'SEEN'
2026-12-31T23:59:59.9999994Z -> 2026-12-31T23:59:59.999999+00:00 cut: 2026-12-31T23:59:59.999999+00:00
2026-12-31T23:59:59.9999996Z -> 2027-01-01T00:00:00+00:00 cut: 2026-12-31T23:59:59.999999+00:00
SEEN
