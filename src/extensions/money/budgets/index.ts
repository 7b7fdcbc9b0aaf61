// Budgets: what accounts and keys may spend in a day, a month or in all, and how many tokens they
// may take in a minute. Before a provider is called the most that a request can cost is held.
import cluster from "node:cluster";
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { GatewayContext, GatewayPart } from "../../../core/extension/extension.ts";
import type { HostExtension } from "../../installation/index.ts";
import { aroundBounds, assumedOutputTokens } from "../estimates/index.ts";
import { createAccountant } from "./accountant.ts";
import { createHold } from "./hold.ts";
import { serveWorkers } from "./primary.ts";
import { accountBudget, accountTokens, keyBudget, keyTokens } from "./settings.ts";
import { showCommand } from "./show-command.ts";
import { statusOf } from "./status.ts";
import { createRemoteAccountant } from "./worker.ts";

export type { SharingExtension, SharingOptions } from "./accountant.ts";
export type * from "./contracts.ts";
export { NO_OUTCOME, REFUSED_BY_STORE } from "./contracts.ts";
export type { LocalAccountant } from "./local.ts";
export { accountOf, limitsIn } from "./limits.ts";
export type { BudgetWarnings } from "./warnings.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "budgets",
  commands: { "budget show": showCommand },
  settings: [accountBudget, accountTokens, keyBudget, keyTokens, assumedOutputTokens],
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
    report: () => accountant.standing(config),
    close: accountant.close,
  };
}
