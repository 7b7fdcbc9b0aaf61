// The other gateways: those installed by peers.sh, and why the others are missing.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { folder } from "../../../test/support/folder.ts";
import { freePort } from "../../../test/support/port.ts";
import { AUTHORIZED, CALL, sizeOf, type Kind } from "../targets.ts";

/** The folder that peers.sh installs into. */
const PEERS = process.env["BENCH_PEERS"] ?? join(homedir(), ".cache", "chat-gateway-bench");

interface Peer {
  /** Its name in the output. */
  readonly name: string;
  /** Its name in peers.sh. */
  readonly id: string;
  readonly switchedOn: string;
  /** The folder in PEERS that it is installed in. Absent: named after its id. */
  readonly folder?: string;
  /** The path of chat completions, and a model. Absent: those of CALL. */
  readonly call?: Partial<typeof CALL>;
  readonly headers?: (upstream: string) => Readonly<Record<string, string>>;
  /** The content of its configuration file. Absent: it needs none. */
  readonly config?: (upstream: string, port: number) => object | string;
  /** The name of the configuration file. Absent: `config.json`. */
  readonly file?: string;
  /** False: it chooses its own port and prints it. Absent: it listens on the port given. */
  readonly takesPort?: false;
  /** The program and its arguments. `config` is the path of its configuration file. */
  readonly command: (start: Start) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}
interface Start {
  readonly installed: string;
  readonly upstream: string;
  readonly port: number;
  /** The port of its metrics. */
  readonly other: number;
  readonly config: string;
}

const on = (port: number) => ["--host", "127.0.0.1", "--port", String(port)];
const tensorzeroStarter = fileURLToPath(new URL("start-tensorzero.py", import.meta.url));
const tensorzeroConfig = (upstream: string) => `[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true

[models.m]
routing = ["bench"]

[models.m.providers.bench]
type = "openai"
api_base = "${upstream}/v1"
model_name = "m"
api_key_location = "none"
`;

const FILTERS = "type.googleapis.com/envoy.extensions.filters";
const MOST = 100_000;

const addressOf = (port_value: number) => ({
  socket_address: { address: "127.0.0.1", port_value },
});

/** Envoy as an HTTP proxy to the provider, without timeouts and limits that would cut streams. */
function envoyConfig(upstream: string, port: number): object {
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

const ALL: readonly Peer[] = [
  // A proxy in C++ with one worker thread: the cost of a gateway that does not read the bodies.
  {
    name: "Envoy",
    id: "envoy",
    switchedOn:
      "nothing but its HTTP proxy and counters; no keys, no books, no access log, bodies unread",
    config: envoyConfig,
    command: ({ installed, config }) => [
      ...[join(installed, "bin/envoy"), "-c", config, "--concurrency", "1"],
      ...["--log-level", "error", "--disable-hot-restart"],
    ],
  },
  // A load balancer for model servers, in Rust within a Python process.
  {
    name: "vllm-router",
    id: "vllm-router",
    switchedOn:
      "retries, circuit breaker, health checks and metrics as by default; no keys, no books",
    command: ({ installed, upstream, port, other }) => [
      ...[join(installed, "bin/vllm-router"), ...on(port), "--worker-urls", upstream],
      ...["--worker-startup-check-interval", "1", "--policy", "round_robin"],
      ...["--prometheus-port", String(other), "--log-level", "error"],
    ],
  },
  // A gateway in Rust, started from its Python package.
  {
    name: "TensorZero",
    id: "tensorzero",
    switchedOn: "observability off and therefore no books; no keys; started within Python",
    call: { path: "/openai/v1/chat/completions", model: "tensorzero::model_name::m" },
    config: tensorzeroConfig,
    file: "tensorzero.toml",
    takesPort: false,
    command: ({ installed, config }) => [join(installed, "bin/python"), tensorzeroStarter, config],
    env: { TENSORZERO_LOG: "error", RUST_LOG: "error" },
  },
  // A gateway in TypeScript on Node.
  {
    name: "Portkey",
    id: "portkey",
    switchedOn: "the caller's key is passed on; no keys of its own, no books, no console",
    folder: "npm/node_modules",
    headers: (upstream) => ({
      ...AUTHORIZED,
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${upstream}/v1`,
    }),
    command: ({ installed, port }) => [
      ...[process.execPath, join(installed, "@portkey-ai/gateway/build/start-server.js")],
      ...[`--port=${port}`, "--headless"],
    ],
  },
  // A gateway in Python.
  {
    name: "LiteLLM",
    id: "litellm",
    switchedOn: "a master key; no database and therefore no books, no telemetry, one worker",
    headers: () => AUTHORIZED,
    file: "config.yaml",
    config(upstream) {
      const params = { model: "openai/m", api_base: `${upstream}/v1`, api_key: "sk-bench" };
      return {
        model_list: [{ model_name: "m", litellm_params: params }],
        general_settings: { master_key: "sk-bench" },
      };
    },
    command: ({ installed, config, port }) => [
      ...[join(installed, "bin/litellm"), "--config", config, ...on(port)],
      ...["--telemetry", "False"],
    ],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
  },
];

const noteOf = (file: string): string | undefined =>
  existsSync(join(PEERS, file)) ? readFileSync(join(PEERS, file), "utf8").trim() : undefined;

/** An installed version of a peer, as a target. */
function kindOf(peer: Peer, version: string): Kind {
  const { name, id, switchedOn, headers, config, takesPort = true, command, env = {} } = peer;
  const installed = join(PEERS, peer.folder ?? id);
  return {
    name: `${name} ${version}`,
    switchedOn,
    diskBytes: sizeOf(installed),
    isPeer: true,
    async startOf(upstream) {
      const [port, other] = [await freePort(), await freePort()];
      const file = join(folder(), peer.file ?? "config.json");
      const given = config?.(upstream, port) ?? "";
      writeFileSync(file, typeof given === "string" ? given : JSON.stringify(given));
      return {
        call: { ...peer.call, headers: { ...CALL.headers, ...headers?.(upstream) } },
        ...(takesPort && { port }),
        command: command({ installed, upstream, port, other, config: file }),
        env,
      };
    },
  };
}

/** The peers that can be started, and those that cannot, each with the reason. */
export function peers() {
  const found: Kind[] = [];
  const absent: { readonly name: string; readonly reason: string }[] = [];
  for (const peer of ALL) {
    const version = noteOf(`${peer.id}.version`);
    const missing = `it is not in ${PEERS} (scripts/bench/peers.sh installs it)`;
    if (version !== undefined) found.push(kindOf(peer, version));
    else absent.push({ name: peer.name, reason: noteOf(`${peer.id}.absent`) ?? missing });
  }
  return { found, absent };
}
