// Reads the books without the gateway's code. Each request must have one open line and one settle
// line in a segment of the spend log, and one usage record with the same values, in the file of the
// day on which the request is booked.

import { createHash } from "node:crypto";
import { type Evidence, type JsonObject, type JsonLinesFile, textOf } from "./evidence.ts";
import type { Findings, JudgedPhase } from "./judge.ts";
import type { Counts } from "./money.ts";

/** One request in the spend log. */
export interface Entry {
  /** The number of the gateway whose spend log contains it. */
  readonly gateway: number;
  readonly open: JsonObject;
  readonly settle: JsonObject;
  /** The segment, the number of the settle line there, and the hash of both lines. */
  readonly log: { readonly segment: string; readonly line: number; readonly sha256: string };
  /** The day on which it must be booked. */
  readonly day: string;
}

const dayAfter = (day: string): string =>
  new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

/**
 * The day on which a settle line is booked: the first day, not before its request ended, whose line
 * in days.jsonl covers the settle line; if there is none, the first day that is still open.
 */
function bookedDay(days: readonly JsonObject[], ended: string, segment: string, line: number) {
  let covered = 0;
  for (const { day, segments } of days) {
    const own = segments.find((each: JsonObject) => each["segment"] === segment);
    covered = own?.lines ?? covered;
    if (day >= ended && covered >= line) return day;
  }
  const last: string = days.at(-1)?.["day"] ?? "";
  return ended > last ? ended : dayAfter(last);
}

/** All requests that were opened and settled, in the order of each gateway's log. */
export function readEntries({ gateways }: Evidence, findings: Findings): Entry[] {
  const known = new Set<string>();
  function entriesOf({ name, lines }: JsonLinesFile, gateway: number): Entry[] {
    const opened = new Map<string, JsonObject>();
    const entries = lines.flatMap((line, index): Entry[] => {
      const { type, spend_id: id } = line;
      if (type === "open") {
        const isNew = !known.has(id) && /^sp_[0-9a-f]{32}$/.test(id);
        findings.check(isNew, () => `${name}: ${id} was opened twice, or is no spend_id`);
        known.add(id);
        opened.set(id, line);
        return [];
      }
      const open = opened.get(id);
      const isRight = type === "settle" && open !== undefined;
      findings.check(isRight, () => `${name}: ${type} ${id} was settled twice, or never opened`);
      if (!open) return [];
      opened.delete(id);
      const both = textOf(open) + textOf(line);
      const sha256 = createHash("sha256").update(both).digest("hex");
      const log = { segment: name, line: index + 1, sha256 };
      const { days } = gateways[gateway]!;
      const day = bookedDay(days, line["time"].slice(0, 10), name, index + 1);
      return [{ gateway, open, settle: line, log, day }];
    });
    for (const id of opened.keys())
      findings.check(false, () => `${name}: ${id} was opened and never settled`);
    return entries;
  }
  return gateways.flatMap(({ segments }, gateway) =>
    segments.flatMap((segment) => entriesOf(segment, gateway)),
  );
}

/** The counts in a settle line or a receipt. */
export const countsOf = (usage: JsonObject): Counts => ({
  prompt: usage["prompt_tokens"],
  hit: usage["prompt_cache_hit_tokens"],
  write: usage["cache_write_tokens"] ?? 0,
  write1h: usage["cache_write_1h_tokens"] ?? 0,
  completion: usage["completion_tokens"],
  reasoning: usage["reasoning_tokens"],
});

/** What the books must state about a settled request, by the names that usage records have. */
export function factsOf({ open, settle, log, day }: Entry): JsonObject {
  const { usage, attempts } = settle;
  return {
    ...settle,
    ...usage,
    cache_write_tokens: usage.cache_write_tokens ?? 0,
    usage_id: settle["spend_id"],
    request_id: settle["gateway_request_id"],
    model: settle["model_served"] ?? settle["model_requested"],
    started_at: open["time"],
    ended_at: settle["time"],
    attempts: attempts.map(({ model, share }: JsonObject) => [model, share?.cost]),
    log,
    day,
  };
}

/** Members that every usage record must have. */
const REQUIRED = [
  "usage_id",
  "account",
  "key_id",
  "status",
  "cost",
  "usage_source",
  "prices",
  "log",
];

/** Each member of a usage record must agree with the lines of the log. */
function judgeRecord({ details, ...record }: JsonObject, entry: Entry, findings: Findings): void {
  const attempts = details.attempts.map(([model, , , share]: any) => [model, share?.cost]);
  const stated: JsonObject = { prices: null, ...record, ...details, attempts };
  const facts = factsOf(entry);
  for (const name of new Set([...REQUIRED, ...Object.keys(stated)]))
    findings.equal(stated[name], facts[name], `usage record ${facts["spend_id"]}, ${name}`);
}

/** Each settled request must have one usage record, on its day, with the settled values. */
export function judgeRecords({ evidence, entries, findings }: JudgedPhase): void {
  const { rows, gateways } = evidence;
  const missing = new Map(entries.map((entry) => [entry.settle["spend_id"], entry]));
  const files = gateways.flatMap(({ usageFiles }) => usageFiles);
  for (const { name, lines } of files)
    for (const { usage_id, day } of lines)
      findings.equal(`${day}.jsonl`, name, `the file of usage record ${usage_id}`);
  for (const record of rows ?? files.flatMap(({ lines }) => lines)) {
    const id: string = record["usage_id"];
    const entry = missing.get(id);
    missing.delete(id);
    findings.check(entry !== undefined, () => `usage record ${id} is there twice, or not settled`);
    if (entry) judgeRecord(record, entry, findings);
  }
  for (const id of missing.keys())
    findings.check(false, () => `${id} was settled and has no usage record`);
}
