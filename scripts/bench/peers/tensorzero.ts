// TensorZero, a gateway in Rust, as its Python package has it: start-tensorzero.py lets the package
// start the gateway's HTTP server within the Python process.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { JSON_TYPE, scratch, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

const starter = fileURLToPath(new URL("start-tensorzero.py", import.meta.url));

const configOf = (upstream: string) => `[gateway]
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

export const tensorzero: Peer = {
  name: "TensorZero",
  id: "tensorzero",
  kind: (version) => ({
    name: `TensorZero ${version}`,
    switchedOn: "observability off and therefore no books; no keys; started within Python",
    diskBytes: sizeOf(join(PEERS, "tensorzero")),
    async start(upstream) {
      const folder = scratch();
      const config = join(folder, "tensorzero.toml");
      writeFileSync(config, configOf(upstream));
      return started({
        name: this.name,
        call: {
          path: "/openai/v1/chat/completions",
          model: "tensorzero::model_name::m",
          headers: JSON_TYPE,
        },
        command: [join(PEERS, "tensorzero/bin/python"), starter, config],
        env: { TENSORZERO_LOG: "error", RUST_LOG: "error" },
        folder,
      });
    },
  }),
};
