// Budgets: limits what accounts and keys may spend in a day, a month or in total, and how many
// tokens they may use in a minute. Holds the most that a request can cost before a provider is
// called.
import cluster from "node:cluster";
import { programSlots } from "../../../command-line/command.ts";
import { configHooks } from "../../../config/extension.ts";
import type { HoldFor } from "../../../core/chat/context.ts";
import type { GatewayContext, Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import { once } from "../../scale/installation/index.ts";
import { aroundBounds, assumedOutputTokens } from "../estimates/index.ts";
import { createAccountant } from "./accountant.ts";
import { createHold } from "./hold.ts";
import { limitSettings, unpricedModels } from "./limits.ts";
import { showCommand } from "./show-command.ts";
import { statusOf } from "./status.ts";
import { createRemoteAccountant, serveWorkers } from "./workers.ts";

export * from "./contracts.ts";
export { periodName, type Budget, type Figures, type SpendCounters } from "./spend-counters.ts";

export const settings = [...limitSettings, assumedOutputTokens];

export function install(gateway: Installer): void {
  gateway.fill(slots.hold, start);
  gateway.around(() => aroundBounds, { outside: ["recovery"] });
  gateway.fill(programSlots.command("budget show"), showCommand);
  gateway.on(once, serveWorkers);
  gateway.on(configHooks.warnings, unpricedModels);
  gateway.on(hooks.status, (reports, { currency }) => ({ budgets: statusOf(reports, currency) }));
}

function start(context: GatewayContext): HoldFor {
  const accountant = cluster.isWorker ? createRemoteAccountant() : createAccountant(context);
  context.on("open", () => accountant.open(context.config));
  context.on("reload", (next) => () => accountant.open(next));
  context.on("report", () => accountant.figures());
  context.on("close", accountant.close);
  return createHold(accountant);
}
