// The accountant of a gateway, or of the workers of one: by what is in memory or, where gateways
// share their limits, by what they all know.
import { embeddedText } from "../../embedded.ts";
import type { Clock } from "../../core/clock.ts";
import type { Config } from "../../core/config.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type { Extension } from "../../core/extension/extension.ts";
import { gatewayInstanceId } from "../books/index.ts";
import { onError, openStoredScript } from "../redis/index.ts";
import type { Accountant } from "./contracts.ts";
import { createLocalAccountant } from "./local.ts";
import { booksReader } from "./read-books.ts";
import { createSharedAccountant } from "./shared.ts";
import { createBudgetWarnings } from "./warnings.ts";

export interface AccountantOptions {
  /** The configuration at the start. */
  readonly config: Config;
  readonly extensions: readonly Extension[];
  readonly clock: Clock;
  readonly diagnose: Diagnose;
  /** As LocalOptions.quietMs. */
  readonly quietMs: number;
}

/** Throws a ValidationError if the package of the store is missing. */
export function createAccountant(options: AccountantOptions): Accountant {
  const { config, extensions, clock, diagnose, quietMs } = options;
  const readBooks = booksReader(config, { clock, diagnose, extensions, ownOnly: true });
  const warnings = createBudgetWarnings(diagnose);
  const meanwhile = onError.of(config);
  const script = openStoredScript(config, embeddedText("extensions/budgets/script.lua"), {
    failed(message) {
      const fate = meanwhile === "local" ? "each gateway decides by itself" : "they are refused";
      const detail = `requests with a budget: ${fate} until the store can be asked: ${message}`;
      diagnose({ event: "budgets_store_failed", level: "error", detail });
    },
    recovered: () => diagnose({ event: "budgets_store_recovered", level: "info" }),
  });
  const memory = { clock, diagnose, readBooks, quietMs };
  if (!script) return createLocalAccountant({ ...memory, warnings });
  // Here only what all gateways have spent is worth a warning.
  const local = createLocalAccountant({ ...memory, warnings: { take: () => undefined } });
  const gatewayId = () => gatewayInstanceId(config.data_dir);
  return createSharedAccountant({
    script,
    local,
    warnings,
    onError: meanwhile,
    gatewayId,
    clock,
    diagnose,
  });
}
