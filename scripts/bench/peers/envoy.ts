// Envoy, a proxy in C++, as nothing but an HTTP proxy with one worker thread: what a gateway costs
// that does not look into the bodies.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, JSON_TYPE, scratch, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

const FILTERS = "type.googleapis.com/envoy.extensions.filters";

const addressOf = (port: number) => ({
  socket_address: { address: "127.0.0.1", port_value: port },
});

/** All that comes goes to the provider. Deadlines and bounds that would cut streams off are off. */
function connectionManager() {
  const router = `${FILTERS}.http.router.v3.Router`;
  const route = { match: { prefix: "/" }, route: { cluster: "provider", timeout: "0s" } };
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${FILTERS}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: "bench",
      stream_idle_timeout: "0s",
      route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
      http_filters: [{ name: "envoy.filters.http.router", typed_config: { "@type": router } }],
    },
  };
}

function configOf(port: number, upstreamPort: number) {
  const most = 100_000;
  const thresholds = [{ max_connections: most, max_pending_requests: most, max_requests: most }];
  const endpoint = { endpoint: { address: addressOf(upstreamPort) } };
  const listener = {
    address: addressOf(port),
    filter_chains: [{ filters: [connectionManager()] }],
  };
  const cluster = {
    name: "provider",
    type: "STATIC",
    circuit_breakers: { thresholds },
    load_assignment: { cluster_name: "provider", endpoints: [{ lb_endpoints: [endpoint] }] },
  };
  return { static_resources: { listeners: [listener], clusters: [cluster] } };
}

export const envoy: Peer = {
  name: "Envoy",
  id: "envoy",
  kind: (version) => ({
    name: `Envoy ${version}`,
    switchedOn:
      "nothing but its HTTP proxy and counters; no keys, no books, no access log, bodies unread",
    diskBytes: sizeOf(join(PEERS, "envoy")),
    async start(upstream) {
      const port = await freePort();
      const folder = scratch();
      const config = join(folder, "envoy.json");
      writeFileSync(config, JSON.stringify(configOf(port, Number(new URL(upstream).port))));
      const quiet = ["--log-level", "error", "--disable-hot-restart"];
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "m", headers: JSON_TYPE },
        port,
        command: [join(PEERS, "envoy/bin/envoy"), "-c", config, "--concurrency", "1", ...quiet],
        folder,
      });
    },
  }),
};
