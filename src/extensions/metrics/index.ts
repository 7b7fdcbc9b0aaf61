// Metrics for Prometheus: counted in each process, and shown for all of them by GET /metrics of the
// admin listener.
import type { Host, HostExtension, HostPart, Look } from "../installation/index.ts";
import type { Handler } from "../../core/http/exchange.ts";
import { startCounting } from "./counting.ts";
import { expose } from "./exposition.ts";
import { merge, type Samples } from "./samples.ts";

export { FAMILIES } from "./families.ts";
export { since, type Samples } from "./samples.ts";

const NAME = "metrics";

/** What all processes of a look have counted. */
export const samplesOf = ({ extensions }: Look): Samples =>
  merge(extensions.flatMap((reports) => (reports[NAME] as Samples | undefined) ?? []));

export const extension: HostExtension = {
  name: NAME,
  observe: startCounting,
  startOnce: (host): HostPart => ({ adminRoutes: { "/metrics": { GET: metricsHandler(host) } } }),
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
    const text = expose(samplesOf(look), look.status, delays);
    delays = {};
    res.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8").end(text);
  };
}
