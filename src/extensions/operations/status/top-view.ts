// What `top` shows: lines of text made from a snapshot of the gateway and from what it has counted
// since an earlier one.
import { table } from "../../../command-line/table.ts";
import { accountTable } from "./accounts.ts";
import type { ModelStatus } from "../../scale/installation/index.ts";
import { healthOf, lastFault, stateText } from "./health.ts";
import type { Snapshot } from "./look.ts";
import { countsBetween, periodText, type Counts } from "./rates.ts";
import { refusalsLine } from "./refusals.ts";
import { configurationText, reloadLines } from "./reloads.ts";

const FIRST_TOKEN = "gen_ai_server_time_to_first_token_seconds";
const TOKENS = "gen_ai_client_token_usage_sum";

/** `before` undefined: the figures are sums since the start of the gateway. */
export function topLines(address: string, look: Snapshot, before: Snapshot | undefined): string[] {
  const counts = countsBetween(before, look);
  const { status } = look;
  const models = table(
    ["model", "provider", "state", "asked", "failed", "tokens out", "last fault"],
    status.models.map((model) => modelRow(model, counts)),
  );
  const text = `chat-gateway at ${address}
${[healthOf(status).sentence, ...reloadLines(status)].join("\n")}

${requestsLine(counts)}
${answersLine(counts)}
${refusalsLine(counts)}
${processLine(look)}

${models}
${accountTable(status)}`;
  return text.trimEnd().split("\n").map(visible);
}

/** Names and faults come from elsewhere: they must not steer the terminal. */
const visible = (line: string): string => line.replace(/[\p{Cc}\p{Cf}]/gu, "");

/** A figure a second, or the sum since the start. */
function rateText(count: number, { seconds }: Counts): string {
  if (seconds === undefined) return String(count);
  const rate = count / seconds;
  return `${rate >= 100 ? Math.round(rate) : rate.toFixed(1)}/s`;
}

function requestsLine(counts: Counts): string {
  const name = "chat_gateway_requests_total";
  const of = (pattern: RegExp): string => {
    const count = counts.sum(
      name,
      ({ path = "", status = "" }) => isChat(path) && pattern.test(status),
    );
    return rateText(count, counts);
  };
  return (
    `chat requests ${periodText(counts)}: ${of(/./)}; ok ${of(/^2/)}, ` +
    `429 ${of(/^429/)}, other 4xx ${of(/^4(?!29)/)}, 5xx ${of(/^5/)}`
  );
}

const isChat = (path: string): boolean => path === "/v1/chat/completions";

function answersLine(counts: Counts): string {
  const out = counts.sum(TOKENS, (labels) => labels["gen_ai_token_type"] === "output");
  const input = counts.sum(TOKENS, (labels) => labels["gen_ai_token_type"] === "input");
  const tokens = `tokens in ${rateText(input, counts)}, out ${rateText(out, counts)}`;
  const [half, most] = [counts.quantile(FIRST_TOKEN, 0.5), counts.quantile(FIRST_TOKEN, 0.95)];
  if (half === undefined || most === undefined) return `${tokens}; no first token yet`;
  return `${tokens}; first token: half ${boundText(half)}, 95 % ${boundText(most)}`;
}

/** Above the last bound nothing is measured. */
const boundText = (seconds: number): string =>
  seconds === Infinity ? "longer than is measured" : `within ${seconds} s`;

const lateText = ({ status }: Snapshot): string =>
  `${Math.round((status.event_loop_delay["0.99"] ?? 0) * 1000)} ms`;

const processLine = (look: Snapshot): string =>
  `in flight ${look.status.in_flight}, ` +
  `event loop late by ${lateText(look)} (0.99 quantile), ${processesText(look)}; ` +
  configurationText(look.status);

const processesText = ({ status }: Snapshot): string =>
  status.workers === 1 ? "1 process" : `${status.workers} processes`;

function modelRow(model: ModelStatus, counts: Counts) {
  const attempts = (isMeant: (outcome: string) => boolean): string =>
    rateText(
      counts.sum(
        "chat_gateway_attempts_total",
        (labels) => labels["model"] === model.model && isMeant(labels["outcome"] ?? ""),
      ),
      counts,
    );
  const tokens = counts.sum(
    TOKENS,
    (labels) =>
      labels["gen_ai_response_model"] === model.model && labels["gen_ai_token_type"] === "output",
  );
  return {
    model: model.model,
    provider: model.provider,
    state: stateText(model),
    asked: attempts(() => true),
    failed: attempts((outcome) => outcome !== "completed" && outcome !== "cancelled"),
    "tokens out": rateText(tokens, counts),
    "last fault": lastFault(model) || undefined,
  };
}
