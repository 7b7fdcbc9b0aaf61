// The recent past, in memory: figures of the last day at falling resolution, and the last requests.
// Each process records its own; the admin listener shows them as one.
import type { Extension } from "../../../core/extension/installer.ts";
import {
  once,
  type Host,
  type HostPart,
  type InstallationStatus,
} from "../../scale/installation/index.ts";
import type { ProcessReport } from "./contracts.ts";
import { createHistory } from "./history.ts";
import { startRecorder } from "./recorder.ts";
import { historyRoutes } from "./routes.ts";

const NAME = "history";
/** How often all processes are looked at, in milliseconds. */
const LOOK_MS = 3_000;

const reportsIn = ({ extensions }: InstallationStatus): readonly ProcessReport[] =>
  extensions.flatMap((reports) => (reports[NAME] as ProcessReport | undefined) ?? []);

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
  const limitOf = (account: string): number | null => {
    const { accounts, limits } = host.current();
    const { rpm = limits.rpm } = accounts.get(account) ?? {};
    return rpm;
  };
  host.onLook((look) => {
    const { in_flight: inFlight, event_loop_delay: delay } = look.status;
    history.take(reportsIn(look), { inFlight, loopDelay: delay["0.99"] ?? 0 });
  });
  // While no process serves there is nothing to look at.
  const look = () => host.look().catch(() => undefined);
  const timer = setInterval(look, LOOK_MS).unref();
  return { adminRoutes: historyRoutes(history, limitOf), close: () => clearInterval(timer) };
}
