// Metrics for Prometheus: counted in each process, and shown for all of them by GET /metrics of the
// admin listener.
import type { Extension } from "../../../core/extension/installer.ts";
import { once, reportsOf, type Host } from "../../scale/installation/index.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { startCounting } from "./counting.ts";
import { expose } from "./exposition.ts";
import { merge, type Samples } from "./samples.ts";

export { FAMILIES } from "./families.ts";
export { faultKind } from "./faults.ts";

const NAME = "metrics";

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
  host.onLook(({ status }) => {
    for (const [quantile, seconds] of Object.entries(status.event_loop_delay))
      delays[quantile] = Math.max(seconds, delays[quantile] ?? 0);
  });
  return async ({ res }) => {
    const look = await host.look();
    const samples = merge(reportsOf<Samples>(look, NAME));
    samples.set("chat_gateway_log_lines_dropped_total", droppedLines(host));
    const text = expose(samples, look.status, delays);
    delays = {};
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}

/** By log, where there are any. */
const droppedLines = (host: Host) =>
  new Map(
    Object.entries(host.droppedLines())
      .filter(([, lines]) => lines > 0)
      .map(([log, lines]) => [log, [lines]]),
  );
