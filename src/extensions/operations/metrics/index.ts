// Metrics for Prometheus: counted in each process, and served as sums of all processes by GET
// /metrics of the admin listener.
import type { Installer } from "../../../core/extension/installer.ts";
import { randomHex } from "../../../core/ids.ts";
import { runInTurns } from "../../../core/turns.ts";
import { once, type Host } from "../../scale/installation/index.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { startCounting } from "./counting.ts";
import { expose } from "./exposition.ts";
import {
  createGrowth,
  dropIdle,
  droppedIn,
  forPrometheus,
  merge,
  type ProcessTally,
  type Tally,
} from "./tally.ts";

export { FAMILIES } from "./families.ts";
export { faultKind } from "./faults.ts";
export { isCounted, isRefused, OUTCOMES, outcomeOf, type Outcome } from "./outcome.ts";
export { createGrowth, rowsIn, type Tally } from "./tally.ts";

export function install(gateway: Installer): void {
  gateway.observe(({ on }) => {
    const tally: Tally = new Map();
    const process = randomHex(8);
    on("report", (): ProcessTally => {
      dropIdle(tally);
      return { process, tally };
    });
    return startCounting(tally);
  });
  gateway.on(once, (host) => ({ adminRoutes: { "/metrics": { GET: metricsHandler(host) } } }));
}

function metricsHandler(host: Host): Handler {
  // Each collection has the delays since the previous one. Other extensions collect too, so keep
  // the longest delays until the next GET /metrics.
  let delays: Record<string, number> = {};
  const growthIn = createGrowth(forPrometheus);
  let total: Tally = new Map();
  host.onStatus((collected) => {
    total = merge([total, growthIn(collected)]);
    for (const [quantile, seconds] of Object.entries(collected.delays))
      delays[quantile] = Math.max(seconds, delays[quantile] ?? 0);
  });
  return async ({ res, cancel }) => {
    const { status } = await host.collectStatus();
    const steps = expose(merge([total, droppedIn(host.droppedLines())]), status, delays);
    delays = {};
    const text = await runInTurns(steps, cancel);
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}
