// The parts that exist once, however many processes serve. The admin listener and everything that
// it shows stand on this.
import type { Extension, GatewayPart } from "../../../core/extension/extension.ts";
import { createHost, NAME } from "./host.ts";
import { createLoopDelay } from "./loop-delay.ts";
import { processReport, type ProcessReport } from "./process-report.ts";

export type {
  Host,
  HostExtension,
  HostPart,
  InstallationStatus,
  ModelStatus,
  Status,
} from "./contracts.ts";
export { answering, NO_STORE, queryOf } from "./json-routes.ts";

export const extension: Extension = {
  name: NAME,
  createHost,
  start({ current }): GatewayPart {
    const loop = createLoopDelay();
    const report = (): ProcessReport => processReport(current(), loop.take());
    return { open: async () => loop.start(), report, close: loop.stop };
  },
};
