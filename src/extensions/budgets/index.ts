// Budgets: what accounts and keys may spend in a day, a month or in all, and how many tokens they
// may take in a minute. Before a provider is called the most that a request can cost is held.
import cluster from "node:cluster";
import type { ProgramExtension } from "../../command-line/command.ts";
import type { GatewayContext, GatewayPart } from "../../core/extension/extension.ts";
import type { HostExtension } from "../installation/index.ts";
import { createAccountant } from "./accountant.ts";
import type { Figures } from "./contracts.ts";
import { createHold } from "./hold.ts";
import { limitsIn } from "./limits.ts";
import { serveWorkers } from "./primary.ts";
import { aroundBounds } from "./reply-bound.ts";
import {
  accountBudget,
  accountTokens,
  assumedOutputTokens,
  keyBudget,
  keyTokens,
} from "./settings.ts";
import { showCommand } from "./show-command.ts";
import { statusOf } from "./status.ts";
import { createRemoteAccountant } from "./worker.ts";

export type { SharingExtension, SharingOptions } from "./accountant.ts";
export type * from "./contracts.ts";
export { NO_OUTCOME } from "./contracts.ts";
export type { LocalAccountant } from "./local.ts";
export { accountOf } from "./limits.ts";
export { periodEnd, periodName } from "./periods.ts";
export { leastLeft } from "./token-limits.ts";
export type { BudgetWarnings } from "./warnings.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "budgets",
  commands: { "budget show": showCommand },
  settings: [accountBudget, accountTokens, keyBudget, keyTokens, assumedOutputTokens],
  start,
  startOnce: serveWorkers,
  status: (reports, config) => ({
    budgets: statusOf(reports as readonly (readonly Figures[] | undefined)[], config),
  }),
};

function start(context: GatewayContext): GatewayPart {
  const { clock, diagnose, extensions } = context;
  let config = context.config;
  /** There are budgets, so that everything that is spent is counted. */
  let isCounting = false;
  const accountant = cluster.isWorker
    ? createRemoteAccountant()
    : createAccountant({ config, clock, diagnose, extensions, quietMs: 0 });

  /** Looks at the budgets of the configuration, so that they are known before a request comes. */
  async function look(): Promise<void> {
    const limits = limitsIn(config);
    if (limits.some(({ budget }) => budget)) isCounting = true;
    await accountant.figures(limits);
  }

  return {
    hold: createHold({
      accountant,
      isCounting: () => isCounting,
      found() {
        isCounting = true;
      },
    }),
    around: aroundBounds,
    async open() {
      await accountant.start(limitsIn(config));
      await look();
    },
    reload: (next) => () => {
      config = next;
      look();
    },
    report: accountant.known,
    close: accountant.close,
  };
}
