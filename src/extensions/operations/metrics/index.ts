// Metrics for Prometheus: counted in each process, and shown for all of them by GET /metrics of the
// admin listener.
import type { Extension } from "../../../core/extension/installer.ts";
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
import { dropIdle, merge, type Tally } from "./tally.ts";

export { FAMILIES } from "./families.ts";
export { faultKind } from "./faults.ts";
export { isCounted, isRefused, OUTCOMES, outcomeOf, type Outcome } from "./outcome.ts";
export { growth, merge, rowsIn, type Tally } from "./tally.ts";

const NAME = "metrics";

/** The report of a process: data that can be sent to another process. */
export interface ProcessTally {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
  /** Counts the reports of the process: two looks at a time may end in another order. */
  readonly number: number;
  /** Counted since the start of the process. It goes on counting. */
  readonly tally: Tally;
}

/** The tallies of all processes. */
export const talliesOf = (look: InstallationStatus): readonly ProcessTally[] =>
  reportsOf<ProcessTally>(look, NAME);

export const extension: Extension = {
  name: NAME,
  install(gateway) {
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
  },
};

function metricsHandler(host: Host): Handler {
  // Each look measures the delays since the one before it, and others look too: here the longest
  // count until they are shown.
  let delays: Record<string, number> = {};
  host.onLook(({ status }) => {
    for (const [quantile, seconds] of Object.entries(status.event_loop_delay))
      delays[quantile] = Math.max(seconds, delays[quantile] ?? 0);
  });
  return async ({ res }) => {
    const look = await host.look();
    const tally = merge(talliesOf(look).map((each) => each.tally));
    const text = expose(tally, look.status, delays, look.droppedLines);
    delays = {};
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}
