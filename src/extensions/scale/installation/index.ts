// The parts that exist once, however many processes serve. The admin listener and everything on it
// are such parts.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { start, type Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { createHost } from "./host.ts";
import { processReport, RESOLUTION_MS } from "./process-report.ts";

export {
  createLastReports,
  once,
  type Host,
  type HostPart,
  type InstallationStatus,
  type ModelStatus,
  type Status,
} from "./contracts.ts";
export { answering, isSystemError, NO_STORE, queryOf } from "./json-routes.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.host, createHost);
  gateway.on(start, ({ current, on }) => {
    const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    on("open", async () => {
      histogram.enable();
    });
    on("report", () => processReport(current(), histogram));
    on("close", () => {
      histogram.disable();
    });
  });
}
