// vLLM's router, a load balancer for model servers, in Rust within a Python process.

import { join } from "node:path";
import { freePort, JSON_TYPE, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

export const vllmRouter: Peer = {
  name: "vllm-router",
  id: "vllm-router",
  kind: (version) => ({
    name: `vllm-router ${version}`,
    switchedOn:
      "retries, circuit breaker, health checks and metrics as by default; no keys, no books",
    diskBytes: sizeOf(join(PEERS, "vllm-router")),
    async start(upstream) {
      const port = await freePort();
      const metricsPort = await freePort();
      const address = ["--host", "127.0.0.1", "--port", String(port)];
      const workers = ["--worker-urls", upstream, "--worker-startup-check-interval", "1"];
      const policy = ["--policy", "round_robin", "--prometheus-port", String(metricsPort)];
      const file = join(PEERS, "vllm-router/bin/vllm-router");
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "m", headers: JSON_TYPE },
        port,
        command: [file, ...address, ...workers, ...policy, "--log-level", "error"],
      });
    },
  }),
};
