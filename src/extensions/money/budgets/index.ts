// Budgets: what accounts and keys may spend in a day, a month or in all, and how many tokens they
// may take in a minute. Before a provider is called the most that a request can cost is held.
import cluster from "node:cluster";
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { GatewayContext, GatewayPart } from "../../../core/extension/extension.ts";
import type { HostExtension } from "../../scale/installation/index.ts";
import { aroundBounds, assumedOutputTokens } from "../estimates/index.ts";
import { createAccountant } from "./accountant.ts";
import { createHold } from "./hold.ts";
import { limitSettings } from "./limits.ts";
import { showCommand } from "./show-command.ts";
import { statusOf } from "./status.ts";
import { createRemoteAccountant, serveWorkers } from "./workers.ts";

export type * from "./contracts.ts";
export { REFUSED_BY_STORE } from "./contracts.ts";
export { periodName, type Budget, type Figures, type Purses } from "../spent/index.ts";
export { leastLeft } from "./token-windows.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "budgets",
  commands: { "budget show": showCommand },
  settings: [...limitSettings, assumedOutputTokens],
  start,
  startOnce: serveWorkers,
  status: (reports, { currency }) => ({ budgets: statusOf(reports, currency) }),
};

function start(context: GatewayContext): GatewayPart {
  let { config } = context;
  const accountant = cluster.isWorker ? createRemoteAccountant() : createAccountant(context);
  return {
    hold: createHold(accountant),
    around: aroundBounds,
    open: () => accountant.open(config),
    reload: (next) => () => {
      config = next;
      accountant.open(config);
    },
    report: () => accountant.standing(),
    close: accountant.close,
  };
}
