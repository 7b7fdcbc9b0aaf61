// Portkey, a gateway in TypeScript on Node.

import { join } from "node:path";
import { freePort, JSON_TYPE, sizeOf, started } from "../target.ts";
import { PEERS, type Peer } from "./peer.ts";

const modules = join(PEERS, "npm/node_modules");

export const portkey: Peer = {
  name: "Portkey",
  id: "portkey",
  kind: (version) => ({
    name: `Portkey ${version}`,
    switchedOn: "the caller's key is passed on; no keys of its own, no books, no console",
    diskBytes: sizeOf(modules),
    async start(upstream) {
      const port = await freePort();
      const headers = {
        ...JSON_TYPE,
        authorization: "Bearer sk-bench",
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": `${upstream}/v1`,
      };
      const server = join(modules, "@portkey-ai/gateway/build/start-server.js");
      return started({
        name: this.name,
        call: { path: "/v1/chat/completions", model: "m", headers },
        port,
        command: [process.execPath, server, `--port=${port}`, "--headless"],
      });
    },
  }),
};
