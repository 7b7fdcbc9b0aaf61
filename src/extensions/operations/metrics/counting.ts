// Counts the gateway's work in one process.
import type { Settlement } from "../../../core/ledger/ledger.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { faultKind } from "./faults.ts";
import { count, type Samples } from "./samples.ts";

/** The most accounts with errors that have series of their own. */
const MAX_ACCOUNTS = 1_000;
/** Stands for all further accounts. */
const OTHER = "other";

export interface Counting {
  /** Hears of all requests: it keeps nothing of any. */
  readonly observer: RequestObserver;
  /** Counted since the start. */
  readonly samples: Samples;
}

export function startCounting(): Counting {
  const samples: Samples = new Map();
  const accounts = new Set<string>();

  /** The account, or OTHER if too many have had errors before it. */
  function knownAccount(account: string): string {
    if (accounts.size < MAX_ACCOUNTS) accounts.add(account);
    return accounts.has(account) ? account : OTHER;
  }

  return {
    observer: {
      responded(route, { status, model, account, error_code }) {
        count(samples, "chat_gateway_requests_total", [route, String(status), model ?? ""]);
        if (error_code === undefined) return;
        count(samples, "chat_gateway_refusals_total", [knownAccount(account ?? ""), error_code]);
      },
      chunkSent: (model, ms) =>
        count(samples, "chat_gateway_time_between_chunks_seconds", [model], ms / 1000),
      settled({ modelRequested }, settlement, durationMs) {
        countAttempts(samples, settlement);
        const { recovery } = settlement;
        if (recovery !== undefined)
          count(samples, "chat_gateway_recoveries_total", [modelRequested, recovery]);
        countTimes(samples, modelRequested, settlement, durationMs);
        countCharge(samples, settlement);
      },
    },
    samples,
  };
}

function countAttempts(samples: Samples, { attempts }: Settlement): void {
  for (const attempt of attempts) {
    const { provider, model, outcome } = attempt;
    count(samples, "chat_gateway_attempts_total", [provider, model, outcome]);
    const kind = faultKind(attempt);
    if (kind !== undefined)
      count(samples, "chat_gateway_upstream_faults_total", [provider, model, kind]);
  }
}

/** The labels of the model and the provider that served; empty if none did. */
const servedBy = ({ provider, modelServed }: Settlement): readonly [string, string] => [
  provider ?? "",
  modelServed ?? "",
];

function countTimes(
  samples: Samples,
  modelRequested: string,
  settlement: Settlement,
  durationMs: number,
): void {
  const served = servedBy(settlement);
  const { errorCode, firstTokenMs } = settlement;
  const labels = [...served, modelRequested, errorCode ?? ""];
  count(samples, "gen_ai_server_request_duration_seconds", labels, durationMs / 1000);
  if (firstTokenMs !== null)
    count(samples, "gen_ai_server_time_to_first_token_seconds", served, firstTokenMs / 1000);
}

function countCharge(samples: Samples, settlement: Settlement): void {
  const { usage, usageSource, cost, currency, modelServed } = settlement;
  const served = servedBy(settlement);
  if (usageSource !== "none") {
    count(samples, "gen_ai_client_token_usage", ["input", ...served], usage.prompt_tokens);
    count(samples, "gen_ai_client_token_usage", ["output", ...served], usage.completion_tokens);
    const { cache_write_tokens: written = 0 } = usage.prompt_tokens_details;
    // A part of "input": only providers that state it have it.
    if (written > 0)
      count(samples, "gen_ai_client_token_usage", ["cache_write", ...served], written);
  }
  if (cost !== "0")
    count(samples, "chat_gateway_cost_total", [modelServed ?? "", currency], Number(cost));
}
