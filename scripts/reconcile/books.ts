// Reads the books by itself: segments of the spend log as pairs of lines, and usage records. What
// is not one open line and one settle line a request is a violation. A usage record must be, byte
// by byte, what its two lines and its place make of it.

import { bookedDay, closedDays, sha256, textsOf } from "./days.ts";
import type { Findings } from "./findings.ts";
import type { Books, Estate, Line, TextFile } from "./house.ts";
import type { Counts } from "./money.ts";

/** One request in the spend log. */
export interface Entry {
  /** The gateway in whose spend log it is. */
  readonly gateway: number;
  readonly open: Line;
  readonly settle: Line;
  /** The segment, the number of the settle line in it, and the hash of both lines. */
  readonly log: { readonly segment: string; readonly line: number; readonly sha256: string };
  /** The day on which it must be booked. */
  readonly day: string;
}

/** The lines of a file. One that is torn, or no JSON, is a violation, and an object without members. */
function linesOf({ name, text }: TextFile, findings: Findings): Line[] {
  findings.check(text === "" || text.endsWith("\n"), () => `${name}: its last line is torn`);
  return textsOf(text).map((line, index) => {
    try {
      return JSON.parse(line) as Line;
    } catch {
      findings.check(false, () => `${name}, line ${index + 1}: no JSON: ${line.slice(0, 120)}`);
      return {};
    }
  });
}

/** Every request that was opened, in the order of the log of each gateway. */
export function readEntries({ estates }: Books, findings: Findings): Entry[] {
  const ever = new Set<string>();
  return estates.flatMap(({ segments, days }, gateway) => {
    const closed = closedDays(days);
    return segments.flatMap((segment) =>
      pairsOf(segment, ever, findings).map((pair) => {
        const day = bookedDay(closed, pair.settle["time"], pair.log);
        return { gateway, ...pair, day };
      }),
    );
  });
}

/** The open lines of a segment with their settle lines. `ever`: all ids so far. */
function pairsOf(segment: TextFile, ever: Set<string>, findings: Findings) {
  const { name } = segment;
  const isNamed = /^\d{4}-\d\d-\d\d\.\d{4,}\.jsonl$/.test(name);
  findings.check(isNamed, () => `a segment with the name ${name}`);
  const texts = textsOf(segment.text);
  const open = new Map<string, { readonly line: Line; readonly text: string }>();
  const pairs: Omit<Entry, "gateway" | "day">[] = [];
  for (const [index, line] of linesOf(segment, findings).entries()) {
    const { type, spend_id: id } = line;
    const text = `${texts[index]!}\n`;
    if (type === "open") {
      const isNew = !ever.has(id) && /^sp_[0-9a-f]{32}$/.test(id);
      findings.check(isNew, () => `${name}: ${id} was opened twice, or is no spend_id`);
      ever.add(id);
      open.set(id, { line, text });
      continue;
    }
    const opened = open.get(id);
    const isRight = type === "settle" && opened !== undefined;
    findings.check(isRight, () => `${name}: ${type} ${id} was settled twice, or never opened`);
    if (!opened) continue;
    const hash = sha256(opened.text, text).toString("hex");
    const log = { segment: name, line: index + 1, sha256: hash };
    pairs.push({ open: opened.line, settle: line, log });
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

/** What the usage record of a settled request must say, in the order of its members. */
export function recordOf({ open, settle, log, day }: Entry): Line {
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
    day,
    details: detailsOf(settle),
    log,
  };
}

/** The usage records: each settled request once, on its day, as it was settled. */
export function judgeRecords(house: Books, entries: readonly Entry[], findings: Findings): void {
  const records = house.rows ?? house.estates.flatMap((estate) => recordsIn(estate, findings));
  const expected = new Map(entries.map((entry) => [entry.settle["spend_id"], recordOf(entry)]));
  const seen = new Set<string>();
  for (const record of records) {
    const id: string = record["usage_id"];
    findings.check(!seen.has(id), () => `usage record ${id} is there twice`);
    seen.add(id);
    const settled = expected.get(id);
    if (settled) findings.equal(record, settled, `usage record ${id}`);
    else findings.check(false, () => `usage record ${id} was never settled`);
  }
  for (const id of expected.keys())
    findings.check(seen.has(id), () => `${id} was settled and has no usage record`);
}

/** The records of the files of a gateway, each in the file of its day. */
function recordsIn({ usageFiles }: Estate, findings: Findings): Line[] {
  return usageFiles.flatMap((file) => {
    const records = linesOf(file, findings);
    for (const { usage_id, day } of records)
      findings.equal(`${day}.jsonl`, file.name, `the file of usage record ${usage_id}`);
    return records;
  });
}
