// The recent past, in memory: figures of the last day at falling resolution, and the last requests.
// Each process records its own; the admin listener shows them as one.
import type { Installer } from "../../../core/extension/installer.ts";
import { strict } from "../../../config/fields.ts";
import { string, withDefault } from "../../../core/schema/checker.ts";
import { answering, once, type Host, type HostPart } from "../../scale/installation/index.ts";
import { createHistory } from "./history.ts";
import { startRecorder } from "./recorder.ts";
import { requestsQuery } from "./requests.ts";
import { RANGES, type RangeName } from "./timeline.ts";

/**
 * Milliseconds between two collections of reports. Collections happen at multiples of this on the
 * clock. So do the starts of bins, so each count falls into the right bin.
 */
const COLLECT_MS = 2_500;

const RANGE = new RegExp(`^(${Object.keys(RANGES).join("|")})$`);
const rangeQuery = strict({
  range: withDefault(string({ pattern: RANGE, expected: "15m, 1h, 6h or 24h" }), "15m"),
});

export function install(gateway: Installer): void {
  gateway.observe(({ clock, on }) => {
    const recorder = startRecorder(clock);
    on("report", recorder.report);
    return recorder.observe;
  });
  gateway.on(once, keepHistory);
}

function keepHistory(host: Host): HostPart {
  const history = createHistory(host.clock);
  host.onStatus(history.add);
  let timer: NodeJS.Timeout;
  function scheduleCollection(): void {
    const wait = COLLECT_MS - (host.clock.now() % COLLECT_MS);
    timer = setTimeout(() => {
      scheduleCollection();
      // Rejects while no process serves.
      host.collectStatus().catch(() => undefined);
    }, wait).unref();
  }
  scheduleCollection();
  return {
    adminRoutes: {
      "/history": answering(rangeQuery, ({ range }) => history.range(range as RangeName)),
      "/requests": answering(requestsQuery, ({ skip, limit, ...filter }) =>
        history.find(filter, { skip, limit }),
      ),
    },
    close: () => clearTimeout(timer),
  };
}
