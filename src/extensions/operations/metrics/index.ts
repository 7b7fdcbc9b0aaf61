// Metrics for Prometheus: counted in each process, and shown for all of them by GET /metrics of the
// admin listener.
import type { Extension } from "../../../core/extension/installer.ts";
import { once, type Host, type InstallationStatus } from "../../scale/installation/index.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { startCounting } from "./counting.ts";
import { expose } from "./exposition.ts";
import { merge, processOf, type Samples } from "./samples.ts";
import { createTopAccounts, type Figures } from "./top-accounts.ts";

export { FAMILIES } from "./families.ts";
export { faultKind } from "./faults.ts";

const NAME = "metrics";

/**
 * The counts of all processes of a snapshot. Up to 1,000 accounts of each process have series of
 * their own in it; GET /metrics shows fewer.
 */
export const samplesOf = (look: InstallationStatus): Samples => merge(reportsOf(look));

/** The counts of each process. */
const reportsOf = ({ extensions }: InstallationStatus): readonly Samples[] =>
  extensions.flatMap((reports) => (reports[NAME] as Samples | undefined) ?? []);

/** By the ids of the processes. */
const refusalsOf = (look: InstallationStatus): ReadonlyMap<string, Figures> =>
  new Map(
    reportsOf(look).map((samples) => [
      processOf(samples),
      samples.get("chat_gateway_refusals_total") ?? new Map(),
    ]),
  );

export const extension: Extension = {
  name: NAME,
  install(gateway) {
    gateway.observe(({ on }) => {
      const counting = startCounting();
      on("report", () => counting.samples);
      return () => counting.observer;
    });
    gateway.on(once, (host) => ({ adminRoutes: { "/metrics": { GET: metricsHandler(host) } } }));
  },
};

function metricsHandler(host: Host): Handler {
  // Each look measures the delays since the one before it, and others look too: here the longest
  // count until they are shown.
  let delays: Record<string, number> = {};
  const top = createTopAccounts(host.clock.monotonic);
  host.onLook((look) => {
    for (const [quantile, seconds] of Object.entries(look.status.event_loop_delay))
      delays[quantile] = Math.max(seconds, delays[quantile] ?? 0);
    top.take(refusalsOf(look));
  });
  return async ({ res }) => {
    const look = await host.look();
    const shown = new Map<string, Figures>(samplesOf(look));
    shown.set("chat_gateway_refusals_total", top.shown());
    shown.set("chat_gateway_log_lines_dropped_total", droppedLines(host));
    const text = expose(shown, look.status, delays);
    delays = {};
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}

/** By log, where there are any. */
const droppedLines = (host: Host): Figures =>
  new Map(
    Object.entries(host.droppedLines())
      .filter(([, lines]) => lines > 0)
      .map(([log, lines]) => [log, [lines]]),
  );
