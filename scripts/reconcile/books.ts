// Reads the books by itself: segments of the spend log as pairs of lines, and usage records. What
// is not one open line and one settle line a request is a violation.

import { type Findings, inOrder } from "./findings.ts";
import type { House, Line, TextFile } from "./house.ts";
import type { Counts } from "./money.ts";

/** One request in the spend log. */
export interface Entry {
  /** The gateway in whose spend log it is. */
  readonly gateway: number;
  readonly open: Line;
  readonly settle: Line;
}

/** The lines of a file. A line that is torn, or no JSON, is a violation. */
export function linesOf({ name, text }: TextFile, findings: Findings): Line[] {
  findings.check(text === "" || text.endsWith("\n"), () => `${name}: its last line is torn`);
  return text
    .split("\n")
    .slice(0, -1)
    .flatMap((line, index) => {
      try {
        return [JSON.parse(line) as Line];
      } catch {
        findings.check(false, () => `${name}, line ${index + 1}: no JSON: ${line.slice(0, 120)}`);
        return [];
      }
    });
}

/** Every request of a phase that was opened. */
export function readEntries(house: House, findings: Findings): Entry[] {
  const ever = new Set<string>();
  return house.estates.flatMap(({ segments }, gateway) =>
    segments.flatMap((segment) => {
      const lines = linesOf(segment, findings);
      for (const { spend_id: id } of lines.filter(({ type }) => type === "open")) {
        findings.check(!ever.has(id), () => `${segment.name}: ${id} was opened twice`);
        ever.add(id);
      }
      return pairsOf(segment.name, lines, findings).map((pair) => ({ gateway, ...pair }));
    }),
  );
}

/** The open lines of a segment with their settle lines. */
function pairsOf(name: string, lines: readonly Line[], findings: Findings) {
  const open = new Map<string, Line>();
  const pairs: Omit<Entry, "gateway">[] = [];
  for (const line of lines) {
    const id: string = line["spend_id"];
    if (line["type"] === "open") {
      open.set(id, line);
      continue;
    }
    const opened = open.get(id);
    findings.check(opened !== undefined, () => `${name}: ${id} was settled twice, or never opened`);
    if (opened) pairs.push({ open: opened, settle: line });
    open.delete(id);
  }
  for (const id of open.keys())
    findings.check(false, () => `${name}: ${id} was opened and never settled`);
  return pairs;
}

/** The counts of a settle line or of a usage record. */
export const countsOf = (usage: Line, write1h: number): Counts => ({
  prompt: usage["prompt_tokens"],
  hit: usage["prompt_cache_hit_tokens"],
  write: usage["cache_write_tokens"] ?? 0,
  write1h,
  completion: usage["completion_tokens"],
  reasoning: usage["reasoning_tokens"],
});

/** An attempt as a usage record has it, with its share if there is one. */
const attemptOf = ({ model, outcome, duration_ms, share }: Line): unknown => {
  if (!share) return [model, outcome, duration_ms];
  const { cost, prices, ...usage } = share;
  return [model, outcome, duration_ms, { usage, cost, ...(prices && { prices }) }];
};

/** What a usage record keeps for receipts. */
const detailsOf = (settle: Line): Line => ({
  model_requested: settle["model_requested"],
  error_code: settle["error_code"] ?? undefined,
  finish_reason: settle["finish_reason"] ?? undefined,
  first_token_ms: settle["first_token_ms"] ?? undefined,
  usage_source: settle["usage_source"],
  cache_write_1h_tokens: settle["usage"].cache_write_1h_tokens,
  attempts: settle["attempts"].map(attemptOf),
  prices: settle["prices"] ?? undefined,
  notes: settle["notes"],
});

/** What the usage record of a settled request must say. */
function recordOf({ open, settle }: Entry): Line {
  const { usage } = settle;
  return {
    usage_id: settle["spend_id"],
    gateway_request_id: settle["gateway_request_id"],
    account: settle["account"],
    key_id: settle["key_id"],
    model: settle["model_served"] ?? settle["model_requested"],
    provider: settle["provider"],
    status: settle["status"],
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    prompt_cache_hit_tokens: usage.prompt_cache_hit_tokens,
    prompt_cache_miss_tokens: usage.prompt_cache_miss_tokens,
    reasoning_tokens: usage.reasoning_tokens,
    cost: settle["cost"],
    currency: settle["currency"],
    started_at: open["time"],
    ended_at: settle["time"],
    cache_write_tokens: usage.cache_write_tokens ?? 0,
    details: detailsOf(settle),
  };
}

/** The usage records: each settled request once, as it was settled. */
export function judgeRecords(house: House, entries: readonly Entry[], findings: Findings): void {
  const records =
    house.rows ??
    house.estates.flatMap(({ usageFiles }) =>
      usageFiles.flatMap((file) => linesOf(file, findings)),
    );
  const expected = new Map(entries.map((entry) => [entry.settle["spend_id"], recordOf(entry)]));
  const seen = new Set<string>();
  for (const record of records) {
    const id: string = record["usage_id"];
    findings.check(!seen.has(id), () => `usage record ${id} is there twice`);
    seen.add(id);
    const settled = expected.get(id);
    if (settled) findings.equal(inOrder(record), inOrder(settled), `usage record ${id}`);
    else findings.check(false, () => `usage record ${id} was never settled`);
  }
  for (const id of expected.keys())
    findings.check(seen.has(id), () => `${id} was settled and has no usage record`);
}
