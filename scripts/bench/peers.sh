#!/usr/bin/env bash
# Installs the gateways that the benchmark compares with into a folder outside the project, each if its toolchain is here.
# What cannot be installed is left out, and the benchmark says so.
set -uo pipefail
folder=${BENCH_PEERS:-$HOME/.cache/chat-gateway-bench}
mkdir -p "$folder/npm" "$folder/go/bin"

# Its own dependencies' ranges have moved on since: with today's it answers every stream with 500.
npm install --silent --no-audit --no-fund --prefix "$folder/npm" @portkey-ai/gateway@1.15.2 hono@4.9.7 @hono/node-server@1.14.0 @hono/node-ws@1.2.0 || echo "Portkey could not be installed" >&2

if command -v go >/dev/null; then
  GOBIN="$folder/go/bin" go install github.com/maximhq/bifrost/transports/bifrost-http@latest &&
    go version -m "$folder/go/bin/bifrost-http" | awk '$1 == "mod" { print $3 }' >"$folder/go/bifrost.version" ||
    echo "Bifrost could not be installed" >&2
fi

if command -v python3 >/dev/null; then
  python3 -m venv "$folder/python" && "$folder/python/bin/pip" install --quiet 'litellm[proxy]==1.106.2' &&
    "$folder/python/bin/python" -c 'from importlib.metadata import version; print(version("litellm"))' >"$folder/python/litellm.version" ||
    echo "LiteLLM could not be installed" >&2
fi
