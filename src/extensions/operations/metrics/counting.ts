// Counts the requests of one process: an observer that adds each event to the tally.
import type { AccessRecord, Exchange } from "../../../core/http/exchange.ts";
import type { Opening, Settlement } from "../../../core/ledger/ledger.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { faultKind } from "./faults.ts";
import { isCounted, isRefused, outcomeOf } from "./outcome.ts";
import { count, type ConsoleFamily, type Tally } from "./tally.ts";

/** The most accounts that have a series of their own in the refusals. */
const MAX_ACCOUNTS = 1_000;
/** The label of all further accounts. */
const OTHER = "other";

/** Returns the function that creates the observer of an exchange. */
export function startCounting(tally: Tally): (exchange: Exchange | undefined) => RequestObserver {
  const accounts = new Set<string>();

  /** The account, or OTHER if too many have had errors before it. */
  function knownAccount(account: string): string {
    if (account === "") return ""; // not authenticated
    if (accounts.size < MAX_ACCOUNTS) accounts.add(account);
    return accounts.has(account) ? account : OTHER;
  }

  const chunkSent = (model: string, ms: number): void =>
    count(tally, "chat_gateway_time_between_chunks_seconds", [model], ms / 1000);
  const settled = (...event: Parameters<Required<RequestObserver>["settled"]>): void =>
    countSettlement(tally, ...event);

  return (exchange) => ({
    responded(route, record) {
      const { status, model, account, error_code } = record;
      count(tally, "chat_gateway_requests_total", [route, String(status), model ?? ""]);
      if (error_code !== undefined)
        count(tally, "chat_gateway_refusals_total", [knownAccount(account ?? ""), error_code]);
      if (isCounted(route, record)) countOutcome(tally, record, exchange);
    },
    chunkSent,
    settled,
  });
}

/** If the caller is not authenticated, the labels of account and key are "". */
function countOutcome(tally: Tally, record: AccessRecord, exchange: Exchange | undefined): void {
  const { status, error_code } = record;
  const account = record.account ?? "";
  const key = record.key_id ?? "";
  const outcome = outcomeOf(record);
  count(tally, "account", [outcome, account]);
  if (key !== "") count(tally, "key", ["requests", key]);
  if (key !== "" && isRefused(outcome)) count(tally, "key", ["refused", key]);
  if (!isRefused(outcome) && outcome !== "5xx") return;
  const code = error_code ?? String(status);
  const isLimited = code === "rate_limit_exceeded";
  // The account's limit or the key's, whichever refused the request. Refused receipts state none.
  const rpm = isLimited ? exchange?.res.getHeader("x-ratelimit-limit-requests") : undefined;
  count(tally, "refusal", [String(status), code, key, account, String(rpm ?? "")]);
}

function countSettlement(
  tally: Tally,
  { account, modelRequested, stream }: Opening,
  settlement: Settlement,
  durationMs: number,
): void {
  const { attempts, cost, currency, errorCode, firstTokenMs, recovery, usage } = settlement;
  const model = settlement.modelServed ?? "";
  const served = [settlement.provider ?? "", model];
  for (const attempt of attempts) {
    const asked = [attempt.provider, attempt.model];
    count(tally, "chat_gateway_attempts_total", [...asked, attempt.outcome]);
    const kind = faultKind(attempt);
    if (kind !== undefined) count(tally, "chat_gateway_upstream_faults_total", [...asked, kind]);
  }
  if (recovery !== undefined)
    count(tally, "chat_gateway_recoveries_total", [modelRequested, recovery]);
  const labels = [...served, modelRequested, errorCode ?? ""];
  count(tally, "gen_ai_server_request_duration_seconds", labels, durationMs / 1000);
  if (firstTokenMs !== null)
    count(tally, "gen_ai_server_time_to_first_token_seconds", served, firstTokenMs / 1000);
  if (cost !== "0") count(tally, "chat_gateway_cost_total", [model, currency], Number(cost));

  if (settlement.usageSource !== "none") countTokens(tally, usage, modelRequested, served);
  const { prompt_tokens, completion_tokens } = usage;
  const charge = { prompt_tokens, completion_tokens, cost: Number(cost) };
  countFigures(tally, "account", account, charge);
  if (model === "") return;
  countFigures(tally, "model", model, { requests: 1, ...charge });
  if (firstTokenMs === null || !stream) return;
  const stream_ms = Math.max(0, durationMs - firstTokenMs);
  countFigures(tally, "model", model, { stream_ms, stream_tokens: completion_tokens });
}

/** `served`: the names of the provider and of the model. */
function countTokens(
  tally: Tally,
  usage: Settlement["usage"],
  requested: string,
  served: readonly string[],
): void {
  const { prompt_cache_hit_tokens: hit, prompt_cache_miss_tokens: miss } = usage;
  // "cache_write" is a part of "input", and only some providers state it.
  const { cache_write_tokens: written = 0 } = usage.prompt_tokens_details;
  count(tally, "gen_ai_client_token_usage", ["input", ...served], usage.prompt_tokens);
  count(tally, "gen_ai_client_token_usage", ["output", ...served], usage.completion_tokens);
  if (written > 0) count(tally, "gen_ai_client_token_usage", ["cache_write", ...served], written);
  for (const [cache, tokens] of Object.entries({ hit, miss }))
    count(tally, "chat_gateway_prompt_tokens_total", [requested, served[1]!, cache], tokens);
}

function countFigures(
  tally: Tally,
  family: ConsoleFamily,
  name: string,
  figures: Readonly<Record<string, number>>,
): void {
  for (const [figure, value] of Object.entries(figures))
    if (value > 0) count(tally, family, [figure, name], value);
}
