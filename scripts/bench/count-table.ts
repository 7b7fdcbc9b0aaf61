// The third table: what the relay and the gateway create for one request, counted. No load of the
// machine changes these figures.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder } from "../../test/support/folder.ts";
import { countIn, type Counts, type Figures } from "./counts.ts";
import { table } from "./table.ts";
import { type Target, TYPESCRIPT } from "./target.ts";
import { gatewayConfig } from "./targets.ts";

/** Counts in the relay and in the built file. */
export async function countTable(upstream: Target): Promise<string> {
  const place = folder();
  const file = join(place, "gateway.json");
  writeFileSync(file, JSON.stringify(gatewayConfig(upstream.url, place)));
  const headers = { ...upstream.headers, authorization: "Bearer sk-bench" };
  const target = { ...upstream, headers };
  const relay = await countIn([...TYPESCRIPT, "scripts/bench/relay.ts", upstream.url], target);
  const command = ["dist/chat-gateway.mjs", "serve", "--config", file, "--port", "0"];
  const gateway = await countIn(command, target);
  const rowsOf = (name: string, kind: keyof Figures, figure: keyof Counts, unit = 1) => [
    name,
    ...[relay, gateway].map((counts) => (counts[kind][figure] / unit).toFixed(1)),
  ];
  return table([
    ["", "relay", "chat-gateway"],
    rowsOf("promises for a whole reply", "whole", "promises"),
    rowsOf("timers", "whole", "timers"),
    rowsOf("KB allocated", "whole", "bytes", 1024),
    rowsOf("KB kept by a minor collection", "whole", "kept", 1024),
    rowsOf("promises for a streamed event", "event", "promises"),
    rowsOf("timers", "event", "timers"),
    rowsOf("KB allocated", "event", "bytes", 1024),
    rowsOf("KB kept by a minor collection", "event", "kept", 1024),
  ]);
}
