// Metrics for Prometheus: counted in each process, and shown for all of them by GET /metrics of the
// admin listener.
import type { Installer } from "../../../core/extension/installer.ts";
import { randomHex } from "../../../core/ids.ts";
import {
  once,
  reportsOf,
  type Host,
  type InstallationStatus,
} from "../../scale/installation/index.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { startCounting } from "./counting.ts";
import { expose } from "./exposition.ts";
import { dropIdle, type ProcessTally, type Tally } from "./tally.ts";
import { addDropped, createTotals, NAME } from "./totals.ts";

export { FAMILIES } from "./families.ts";
export { faultKind } from "./faults.ts";
export { isCounted, isRefused, OUTCOMES, outcomeOf, type Outcome } from "./outcome.ts";
export { growth, merge, rowsIn, type ProcessTally, type Tally } from "./tally.ts";

/** The tallies of the processes that serve at the moment. */
export const talliesOf = (look: InstallationStatus): readonly ProcessTally[] =>
  reportsOf<ProcessTally>(look, NAME);

export function install(gateway: Installer): void {
  gateway.observe(({ on }) => {
    const tally: Tally = new Map();
    const process = randomHex(8);
    const observer = startCounting(tally);
    let number = 0;
    on("report", (): ProcessTally => {
      number += 1;
      dropIdle(tally);
      return { process, number, tally };
    });
    return () => observer;
  });
  gateway.on(once, (host) => ({ adminRoutes: { "/metrics": { GET: metricsHandler(host) } } }));
}

function metricsHandler(host: Host): Handler {
  // Each look measures the delays since the one before it, and others look too: here the longest
  // count until they are shown.
  let delays: Record<string, number> = {};
  const totals = createTotals();
  host.onLook((look) => {
    totals.take(look.reports);
    for (const [quantile, seconds] of Object.entries(look.delays))
      delays[quantile] = Math.max(seconds, delays[quantile] ?? 0);
  });
  return async ({ res }) => {
    const { status } = await host.look();
    const { tally, dropped } = totals.sums();
    const text = expose(tally, status, delays, addDropped([dropped, host.droppedLines()]));
    delays = {};
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}
