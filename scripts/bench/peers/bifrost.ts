// Bifrost, a gateway in Go. Not tried yet: the module proxy within reach did not have it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, JSON_TYPE, scratch, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

const file = join(PEERS, "bifrost/bifrost-http");

export const bifrost: Peer = {
  name: "Bifrost",
  id: "bifrost",
  kind: (version) => ({
    name: `Bifrost ${version}`,
    switchedOn: "a provider's key; no keys for callers, errors logged, otherwise as by default",
    diskBytes: sizeOf(file),
    async start(upstream) {
      const port = await freePort();
      const folder = scratch();
      const keys = [{ name: "bench", value: "sk-bench", models: ["*"], weight: 1 }];
      const providers = { openai: { keys, network_config: { base_url: upstream } } };
      writeFileSync(join(folder, "config.json"), JSON.stringify({ providers }));
      const address = ["-host", "127.0.0.1", "-port", String(port)];
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "openai/m", headers: JSON_TYPE },
        port,
        command: [file, "-app-dir", folder, ...address, "-log-level", "error"],
        folder,
      });
    },
  }),
};
