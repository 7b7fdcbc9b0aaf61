// What is measured besides other gateways: the floor, and this gateway from its built file. And the
// provider behind all of them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "../../test/support/folder.ts";
import { fromSources, launch } from "../../test/support/program.ts";
import { CALL, sizeOf, started, stop, TYPESCRIPT, type Kind, type Target } from "./target.ts";

/** The provider that all of them have behind them; on the core of the load. */
export async function startProvider(): Promise<Target> {
  const running = launch(fromSources(process.cwd(), "scripts/bench/provider.ts"), []);
  return {
    name: "no gateway",
    url: await running.address,
    ...CALL,
    pid: running.child.pid!,
    startMs: 0,
    stop: () => stop(running),
  };
}

/** What any gateway on `node:http` has to do at least. */
export const relay: Kind = {
  name: "relay",
  switchedOn: "nothing but parsing and re-serialising both bodies and each event, on `node:http`",
  diskBytes: undefined,
  isPeer: false,
  start: (upstream) =>
    started({
      name: "relay",
      command: [process.execPath, ...TYPESCRIPT, "scripts/bench/relay.ts", upstream],
    }),
};

/** The configuration of a gateway that keeps its books in `place`. */
export function gatewayConfig(upstream: string, place: string) {
  const price = { input_cache_miss: 0.28, input_cache_hit: 0.028, output: 0.42 };
  return {
    data_dir: join(place, "data"),
    admin: { port: 0 },
    aliases: {},
    limits: { rpm: 1_000_000 },
    providers: { fast: { dialect: "openai", base_url: upstream } },
    models: { m: { provider: "fast", price } },
    keys: [{ account: "bench", key: "sk-bench" }],
  };
}

const FILE = "dist/chat-gateway.mjs";

/**
 * This gateway, with `over` in its configuration, and all that it does for every request switched
 * on.
 */
export const gateway = (over: object = {}): Kind => ({
  name: "chat-gateway",
  switchedOn: "a key, limits, all checks, prices, spend log, usage records, access log and metrics",
  diskBytes: sizeOf(FILE),
  isPeer: false,
  start(upstream) {
    const place = folder();
    const config = join(place, "gateway.json");
    writeFileSync(config, JSON.stringify({ ...gatewayConfig(upstream, place), ...over }));
    const call = { headers: { ...CALL.headers, authorization: "Bearer sk-bench" } };
    const command = [process.execPath, FILE, "serve", "--config", config, "--port", "0"];
    return started({ name: "chat-gateway", call, command });
  },
});
