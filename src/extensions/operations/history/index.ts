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
 * All processes are looked at whenever the clock is a multiple of it, in milliseconds: every bin of
 * the history is one too, so that nothing is counted in its neighbour.
 */
const LOOK_MS = 2_500;

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
  /** The requests per minute of an account; null: unlimited. */
  const limitOf = (account: string): number | null => {
    const { accounts, limits } = host.current();
    const { rpm = limits.rpm } = accounts.get(account) ?? {};
    return rpm;
  };
  host.onLook(history.take);
  let timer: NodeJS.Timeout;
  function waitAndLook(): void {
    const wait = LOOK_MS - (host.clock.now() % LOOK_MS);
    timer = setTimeout(() => {
      waitAndLook();
      // While no process serves there is nothing to look at.
      host.look().catch(() => undefined);
    }, wait).unref();
  }
  waitAndLook();
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
    close: () => clearTimeout(timer),
  };
}
