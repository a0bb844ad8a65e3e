#!/usr/bin/env bash
# cel-expr-python 0.1.3, the CEL project's binding of its C++ runtime: a macro ends after 9,999 items with "Iteration budget
# exceeded"; Python cannot set it. cel-go, and so OCM and API servers, have no such limit but a cost, which they set. An
# expression over a list of 10,000 clusters is right there, and an error here.
source "$(dirname "$0")/lib.sh"
with_python cel-expr-python==0.1.3
seen="$("$python" - <<'PYTHON'
from cel_expr_python import cel

environment = cel.NewEnv(variables={"items": cel.Type.List(cel.Type.INT)})
program = environment.compile("items.exists(item, item == -1)")
for count in (9_999, 10_000):
    try:
        print(count, program.eval(data={"items": list(range(count))}).value())
    except RuntimeError as error:
        print(count, error)
PYTHON
)"
expect "$seen" <<'SEEN'
9999 False
10000 INTERNAL: Iteration budget exceeded [INTERNAL]
SEEN
