// The other gateways, which peers.sh installs.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../test/support/port.ts";
import { scratch, sizeOf, started, type CALL, type Kind } from "../target.ts";
import { envoyConfig } from "./envoy.ts";

/** The folder that peers.sh installs into. */
const PEERS = process.env["BENCH_PEERS"] ?? join(homedir(), ".cache", "chat-gateway-bench");

interface Peer {
  /** Its name in the output. */
  readonly name: string;
  /** Its name in peers.sh, and its folder in PEERS. */
  readonly id: string;
  readonly switchedOn: string;
  /** The path of chat completions, and a model. Absent: those of CALL. */
  readonly call?: Partial<typeof CALL>;
  /** The text of a file that it reads. Absent: none. */
  readonly config?: (upstream: string, port: number) => string;
  /** The name of that file. */
  readonly file?: string;
  /** Absent: it says itself where it listens. */
  readonly takesPort?: false;
  /** Its program's file and arguments. */
  readonly command: (start: Start) => readonly string[];
}
interface Start {
  readonly installed: string;
  readonly upstream: string;
  readonly port: number;
  /** For the metrics. */
  readonly other: number;
  /** The path of its configuration. */
  readonly config: string;
}

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

const ALL: readonly Peer[] = [
  // A proxy in C++ with one worker thread: what a gateway costs that does not look into the bodies.
  {
    name: "Envoy",
    id: "envoy",
    switchedOn:
      "nothing but its HTTP proxy and counters; no keys, no books, no access log, bodies unread",
    config: (upstream, port) => JSON.stringify(envoyConfig(upstream, port)),
    file: "envoy.json",
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
      ...[join(installed, "bin/vllm-router"), "--host", "127.0.0.1", "--port", String(port)],
      ...["--worker-urls", upstream, "--worker-startup-check-interval", "1"],
      ...["--policy", "round_robin", "--prometheus-port", String(other), "--log-level", "error"],
    ],
  },
  // A gateway in Rust, as its Python package has it.
  {
    name: "TensorZero",
    id: "tensorzero",
    switchedOn: "observability off and therefore no books; no keys; started within Python",
    call: { path: "/openai/v1/chat/completions", model: "tensorzero::model_name::m" },
    config: tensorzeroConfig,
    file: "tensorzero.toml",
    takesPort: false,
    command: ({ installed, config }) => [join(installed, "bin/python"), tensorzeroStarter, config],
  },
];

/** A peer of a version that is installed, as a target. */
function kindOf(peer: Peer, version: string): Kind {
  const { name, id, switchedOn, call, config, file = "none", takesPort = true, command } = peer;
  const installed = join(PEERS, id);
  return {
    name: `${name} ${version}`,
    switchedOn,
    diskBytes: sizeOf(installed),
    isPeer: true,
    async start(upstream) {
      const [port, other] = [await freePort(), await freePort()];
      const folder = scratch();
      const path = join(folder, file);
      if (config) writeFileSync(path, config(upstream, port));
      return started({
        name: this.name,
        ...(call && { call }),
        ...(takesPort && { port }),
        command: command({ installed, upstream, port, other, config: path }),
        env: { TENSORZERO_LOG: "error", RUST_LOG: "error" },
        folder,
      });
    },
  };
}

/** The peers that are installed, and the names of those that are not. */
export function peers(): { readonly found: Kind[]; readonly absent: string[] } {
  const found: Kind[] = [];
  const absent: string[] = [];
  for (const peer of ALL) {
    const note = join(PEERS, `${peer.id}.version`);
    if (existsSync(note)) found.push(kindOf(peer, readFileSync(note, "utf8").trim()));
    else absent.push(peer.name);
  }
  return { found, absent };
}
