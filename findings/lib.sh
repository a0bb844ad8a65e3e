# Shared by the findings: a temporary folder with pinned public packages, and a comparison. Sourced, not run.
set -euo pipefail
folder="$(mktemp -d)"
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT

# with_python PACKAGE==VERSION…: $python has these packages, and nothing of the shell's Python.
with_python() {
  python3 -m venv "$folder/venv"
  python="$folder/venv/bin/python"
  "$python" -m pip install --quiet --disable-pip-version-check "$@"
  unset PYTHONPATH KUBECONFIG
}

# with_go MODULE@VERSION… <main.go: $program is that Go program with these modules.
with_go() {
  mkdir -p "$folder/go"
  cat >"$folder/go/main.go"
  program="$folder/go/finding"
  (
    cd "$folder/go"
    export GOFLAGS=-mod=mod
    go mod init finding
    go get "$@"
    go build -o finding .
  ) >"$folder/go.log" 2>&1 || { cat "$folder/go.log" >&2; exit 1; }
}

# expect <what was seen before; the first argument is what is seen now.
expect() {
  if diff -u --label "as described here" --label "seen now" - <(printf '%s\n' "$1"); then
    echo "$(basename "$0" .sh): as described."
  else
    echo "$(basename "$0" .sh): no longer as described." >&2
    exit 1
  fi
}
