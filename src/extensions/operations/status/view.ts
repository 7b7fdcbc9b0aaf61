// What `status` and `top` show of a gateway: lines of text.
import { table } from "../../../command-line/table.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { healthOf, lastFault, stateText } from "./health.ts";
import type { GatewayState, Row, ShownHistory, ShownStatus } from "./gateway-state.ts";

/** The most rows of refusals that the line about them names. */
const MOST_NAMED = 5;
/** The number of 10-second bins for the last minute. The last bin is still running. */
const MINUTE = 7;

export function linesOf({ status, history }: GatewayState): string[] {
  const text = [
    healthOf(status).sentence,
    ...reloadLines(status),
    ...(history ? ["", ...historyLines(history)] : []),
    processLine(status),
    "",
    modelTable(status, history),
    accountTable(status),
  ].join("\n");
  return text.trimEnd().split("\n").map(visible);
}

/** Removes control characters: names and faults from outside must not steer the terminal. */
const visible = (line: string): string => line.replace(/[\p{Cc}\p{Cf}]/gu, "");

/** Lines about failed reloads and settings that need a restart. Empty: there are none. */
function reloadLines(status: ShownStatus): readonly string[] {
  const lines: string[] = [];
  const fault = status["config_fault"];
  if (fault) {
    const { time, path, message, count } = asObject(fault);
    const where = path ? `${path}: ` : "";
    const more = Number(count) > 1 ? ` (${Number(count)} faults in all)` : "";
    const state = `reload failed at ${time}, and the previous configuration stays in force`;
    lines.push(`${state}: ${where}${message}${more}`);
  }
  const restart = asArray(status["restart_needed"]);
  if (restart.length > 0)
    lines.push(`a restart is needed: ${restart.join(", ")} changed, and are read at start only`);
  const keys = asString(asObject(status["keys"])["fault"]);
  if (keys !== undefined)
    lines.push(`keys.json cannot be read, and the previous keys stay in force: ${keys}`);
  return lines;
}

const sum = (rows: readonly object[], ...names: readonly string[]): number =>
  (rows as readonly Row[])
    .flatMap((row) => names.map((name) => row[name] ?? 0))
    .reduce((total, value) => total + value, 0);

const REFUSED = ["401", "402", "429", "4xx"];
const ALL = ["ok", ...REFUSED, "5xx", "cancelled"];

function historyLines({ bins, total, accounts, refused }: ShownHistory): string[] {
  const minute = bins.slice(-MINUTE).filter((bin) => bin !== null);
  const rate = sum(minute, ...ALL) / Math.max(1, sum(minute, "seconds"));
  const { p50, p95 } = total.first_token;
  const first = p50 === null ? "no first token yet" : `first token: half ${p50} s, 95 % ${p95} s`;
  const named = refused
    .slice(0, MOST_NAMED)
    .map(({ account, code, count }) =>
      code === null ? `others ${count}` : `${account ?? "no valid key"} ${count} (${code})`,
    );
  const more = refused.length > MOST_NAMED ? [`${refused.length - MOST_NAMED} more`] : [];
  return [
    `requests in the last 15 minutes: ${sum([total], ...ALL)}; ok ${sum([total], "ok")}, ` +
      `429 ${sum([total], "429")}, other 4xx ${sum([total], "401", "402", "4xx")}, ` +
      `5xx ${sum([total], "5xx")}; in the last minute ${rate.toFixed(1)}/s`,
    `tokens in ${sum(accounts, "prompt_tokens")}, ` +
      `out ${sum(accounts, "completion_tokens")}; ${first}`,
    `refused or failed: ${[...named, ...more].join(", ") || "none"}`,
  ];
}

function processLine(status: ShownStatus): string {
  const file = asString(status["config_file"]);
  const late = Math.round((status.event_loop_delay["0.99"] ?? 0) * 1000);
  return (
    `version ${status.version}; requests in flight: ${status.in_flight}; ` +
    `processes: ${status.workers}; ` +
    `event loop late by ${late} ms; limits in ${status.limits.store}; ` +
    `configuration${file === undefined ? "" : ` ${file}`} of ${status.config_loaded_at}`
  );
}

const modelTable = ({ models }: ShownStatus, history: ShownHistory | undefined): string =>
  table(
    ["model", "provider", "state", "asked", "failed", "tokens out", "last fault"],
    models.map((model) => {
      const figures = history?.models.filter((row) => row.model === model.model) ?? [];
      return {
        model: model.model,
        provider: model.provider,
        state: stateText(model),
        asked: sum(figures, "attempts"),
        failed: sum(figures, "faults"),
        "tokens out": sum(figures, "completion_tokens"),
        "last fault": lastFault(model) || undefined,
      };
    }),
  );

/** Busiest accounts first. The requests of an account without a limit are not counted. */
const accountTable = ({ limits }: ShownStatus): string =>
  table(
    ["account", "requests a minute", "of at most"],
    [...limits.accounts]
      .sort((one, other) => other.used - one.used)
      .map(({ account, rpm, used }) => ({
        account,
        "requests a minute": rpm === null ? undefined : used,
        "of at most": rpm ?? "unlimited",
      })),
  );
