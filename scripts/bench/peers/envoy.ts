// Envoy's configuration as an HTTP proxy: all that comes goes to the provider. Deadlines and bounds
// that would cut streams off are off.

const FILTERS = "type.googleapis.com/envoy.extensions.filters";
const MOST = 100_000;

const addressOf = (port_value: number) => ({
  socket_address: { address: "127.0.0.1", port_value },
});

export function envoyConfig(upstream: string, port: number): object {
  const router = { "@type": `${FILTERS}.http.router.v3.Router` };
  const route = { match: { prefix: "/" }, route: { cluster: "provider", timeout: "0s" } };
  const manager = {
    "@type": `${FILTERS}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "bench",
    stream_idle_timeout: "0s",
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
    http_filters: [{ name: "envoy.filters.http.router", typed_config: router }],
  };
  const name = "envoy.filters.network.http_connection_manager";
  const filter_chains = [{ filters: [{ name, typed_config: manager }] }];
  const endpoint = { address: addressOf(Number(new URL(upstream).port)) };
  const thresholds = [{ max_connections: MOST, max_pending_requests: MOST, max_requests: MOST }];
  const cluster = {
    name: "provider",
    type: "STATIC",
    circuit_breakers: { thresholds },
    load_assignment: { cluster_name: "provider", endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  };
  const listener = { address: addressOf(port), filter_chains };
  return { static_resources: { listeners: [listener], clusters: [cluster] } };
}
