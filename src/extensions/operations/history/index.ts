// The recent past, in memory: figures of the last day at falling resolution, and the last requests.
// Each process records its own; the admin listener shows them as one.
import type { Extension } from "../../../core/extension/installer.ts";
import { object, string, withDefault } from "../../../core/schema/checker.ts";
import {
  answering,
  once,
  reportsOf,
  type Host,
  type HostPart,
} from "../../scale/installation/index.ts";
import { createHistory } from "./history.ts";
import { startRecorder, type ProcessReport } from "./recorder.ts";
import { requestsQuery } from "./requests.ts";
import { RANGES, type RangeName } from "./timeline.ts";

const NAME = "history";
/** How often all processes are looked at, in milliseconds. */
const LOOK_MS = 3_000;

const RANGE = new RegExp(`^(${Object.keys(RANGES).join("|")})$`);
const rangeQuery = object(
  { range: withDefault(string({ pattern: RANGE, expected: "15m, 1h, 6h or 24h" }), "15m") },
  { strict: true },
);

export const extension: Extension = {
  name: NAME,
  install(gateway) {
    gateway.observe(({ clock, on }) => {
      const recorder = startRecorder(clock);
      on("report", recorder.report);
      return recorder.observe;
    });
    gateway.on(once, keepHistory);
  },
};

function keepHistory(host: Host): HostPart {
  const history = createHistory(host.clock);
  /** The requests per minute of an account; null: unlimited. */
  const limitOf = (account: string): number | null => {
    const { accounts, limits } = host.current();
    const { rpm = limits.rpm } = accounts.get(account) ?? {};
    return rpm;
  };
  host.onLook((look) => {
    const { in_flight: inFlight, event_loop_delay: delay } = look.status;
    const reports = reportsOf<ProcessReport>(look, NAME);
    history.take(reports, { inFlight, loopDelay: delay["0.99"] ?? 0 });
  });
  // While no process serves there is nothing to look at.
  const look = () => host.look().catch(() => undefined);
  const timer = setInterval(look, LOOK_MS).unref();
  return {
    adminRoutes: {
      "/history": answering(rangeQuery, ({ range }) => {
        const report = history.range(range as RangeName);
        const refusals = report.refusals.map((episode) => ({
          ...episode,
          account_rpm: episode.account === null ? null : limitOf(episode.account),
        }));
        return { ...report, refusals };
      }),
      "/requests": answering(requestsQuery, ({ skip, limit, ...filter }) =>
        history.find(filter, { skip, limit }),
      ),
    },
    close: () => clearInterval(timer),
  };
}
