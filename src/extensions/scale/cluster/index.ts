// Uses several cores: `server.workers` processes serve one port (node:cluster), and a primary
// process starts and replaces them.
import type { Installer } from "../../../core/extension/installer.ts";
import { programSlots } from "../../../command-line/command.ts";
import { defineSetting } from "../../../config/setting.ts";
import { integer } from "../../../config/fields.ts";
import { createSupervisor } from "./supervisor.ts";
import { runWorker } from "./worker.ts";

export { answerWorkers, callPrimary } from "./calls.ts";
export { openBroadcast } from "./broadcast.ts";

/** How many processes serve. Each has its own connections, breakers and requests in flight. */
const workers = defineSetting("server.workers", 1, () => integer(1, 256), {
  fixed: true,
});

export const settings = [workers];

export function install(gateway: Installer): void {
  gateway.fill(programSlots.supervise, (config, options) => {
    const count = workers.of(config);
    return count > 1 ? createSupervisor(config, count, options) : undefined;
  });
  gateway.fill(programSlots.work, runWorker);
}
