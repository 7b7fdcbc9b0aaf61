// The parts that exist once, however many processes serve. The admin listener and everything that
// it shows stand on this.
import { start, type Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { createHost, NAME } from "./host.ts";
import { createLoopDelay } from "./loop-delay.ts";
import { processReport, type ProcessReport } from "./process-report.ts";

export {
  once,
  reportsOf,
  type Host,
  type HostPart,
  type InstallationStatus,
  type ModelStatus,
  type Status,
} from "./contracts.ts";
export { answering, NO_STORE, queryOf } from "./json-routes.ts";

export const extension: Extension = {
  name: NAME,
  install(gateway) {
    gateway.fill(slots.host, createHost);
    gateway.on(start, ({ current, on }) => {
      const loop = createLoopDelay();
      on("open", async () => loop.start());
      on("report", (): ProcessReport => processReport(current(), loop.take()));
      on("close", loop.stop);
    });
  },
};
