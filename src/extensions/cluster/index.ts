// Many cores: `server.workers` processes that serve one port (node:cluster), and a first process
// that starts and replaces them.
import type { Extension } from "../../core/extension/extension.ts";
import { defineSetting } from "../../core/extension/setting.ts";
import { integer } from "../../core/config/fields.ts";
import { withDefault } from "../../core/schema/checker.ts";
import { createSupervisor } from "./supervisor.ts";
import { runWorker } from "./worker.ts";

/** How many processes serve, each with connections, breakers and requests in flight of its own. */
const workers = defineSetting("server.workers", 1, () => withDefault(integer(1, 256), 1), {
  fixed: true,
});

export const extension: Extension = {
  name: "cluster",
  settings: [workers],
  supervise(config, options) {
    const count = workers.of(config);
    return count > 1 ? createSupervisor(config, count, options) : undefined;
  },
  work: runWorker,
};
