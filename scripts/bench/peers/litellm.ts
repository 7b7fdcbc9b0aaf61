// LiteLLM, a gateway in Python.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, JSON_TYPE, scratch, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

export const litellm: Peer = {
  name: "LiteLLM",
  id: "litellm",
  kind: (version) => ({
    name: `LiteLLM ${version}`,
    switchedOn: "a master key; no database and therefore no books, no telemetry, one worker",
    diskBytes: sizeOf(join(PEERS, "litellm")),
    async start(upstream) {
      const port = await freePort();
      const folder = scratch();
      const config = join(folder, "config.yaml");
      const params = { model: "openai/m", api_base: `${upstream}/v1`, api_key: "sk-bench" };
      writeFileSync(
        config,
        JSON.stringify({
          model_list: [{ model_name: "m", litellm_params: params }],
          general_settings: { master_key: "sk-bench" },
        }),
      );
      const file = join(PEERS, "litellm/bin/litellm");
      const address = ["--host", "127.0.0.1", "--port", String(port)];
      const headers = { ...JSON_TYPE, authorization: "Bearer sk-bench" };
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "m", headers },
        port,
        command: [file, "--config", config, ...address, "--telemetry", "False"],
        env: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
        folder,
      });
    },
  }),
};
