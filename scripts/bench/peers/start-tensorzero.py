"""Starts TensorZero's gateway with the given configuration, and says where it listens."""

import signal
import sys

from tensorzero import _start_http_gateway

gateway = _start_http_gateway(
    config_file=sys.argv[1],
    clickhouse_url=None,
    postgres_url=None,
    valkey_url=None,
    async_setup=False,
)
print("listens on", gateway.base_url.removesuffix("/openai/v1"), flush=True)
signal.pause()
