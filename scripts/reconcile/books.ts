// Reads the books by itself: each request must have one open line and one settle line in a segment
// of the spend log, and one usage record that says the same on the day on which it is booked.

import { createHash } from "node:crypto";
import { type House, type Line, type LinesFile, textOf } from "./house.ts";
import type { Findings } from "./judge.ts";
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

const dayAfter = (day: string): string =>
  new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);

/**
 * The day on which a settle line is booked: the first day, from the end of its request on, whose
 * line in days.jsonl covers it or, if no line does, the first open day.
 */
function bookedDay(days: readonly Line[], ended: string, segment: string, line: number): string {
  let seen = 0;
  for (const { day, segments } of days) {
    seen = segments.find((each: Line) => each["segment"] === segment)?.lines ?? seen;
    if (day >= ended && seen >= line) return day;
  }
  const last: string = days.at(-1)?.["day"] ?? "";
  return ended > last ? ended : dayAfter(last);
}

/** Every request that was opened and settled, in the order of the log of each gateway. */
export function readEntries({ estates }: House, findings: Findings): Entry[] {
  const ever = new Set<string>();
  function entriesOf({ name, lines }: LinesFile, gateway: number): Entry[] {
    const opened = new Map<string, Line>();
    const entries = lines.flatMap((line, index): Entry[] => {
      const { type, spend_id: id } = line;
      if (type === "open") {
        const isNew = !ever.has(id) && /^sp_[0-9a-f]{32}$/.test(id);
        findings.check(isNew, () => `${name}: ${id} was opened twice, or is no spend_id`);
        ever.add(id);
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
      const { days } = estates[gateway]!;
      const day = bookedDay(days, line["time"].slice(0, 10), name, index + 1);
      return [{ gateway, open, settle: line, log, day }];
    });
    for (const id of opened.keys())
      findings.check(false, () => `${name}: ${id} was opened and never settled`);
    return entries;
  }
  return estates.flatMap(({ segments }, gateway) =>
    segments.flatMap((segment) => entriesOf(segment, gateway)),
  );
}

/** The counts that a settle line or a receipt states. */
export const countsOf = (usage: Line): Counts => ({
  prompt: usage["prompt_tokens"],
  hit: usage["prompt_cache_hit_tokens"],
  write: usage["cache_write_tokens"] ?? 0,
  write1h: usage["cache_write_1h_tokens"] ?? 0,
  completion: usage["completion_tokens"],
  reasoning: usage["reasoning_tokens"],
});

/** All that the books must say of a settled request, by the names that they have for it. */
export function factsOf({ open, settle, log, day }: Entry): Line {
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
    attempts: attempts.map(({ model, share }: Line) => [model, share?.cost]),
    log,
    day,
  };
}

/** What a usage record cannot be without. */
const LEAST = ["usage_id", "account", "key_id", "status", "cost", "usage_source", "prices", "log"];

/** Each member of a usage record says what the lines of the log say, by the same name. */
function judgeRecord({ details, ...record }: Line, entry: Entry, findings: Findings): void {
  const attempts = details.attempts.map(([model, , , share]: any) => [model, share?.cost]);
  const stated: Line = { prices: null, ...record, ...details, attempts };
  const facts = factsOf(entry);
  for (const name of new Set([...LEAST, ...Object.keys(stated)]))
    findings.equal(stated[name], facts[name], `usage record ${facts["spend_id"]}, ${name}`);
}

/** The usage records: each settled request once, on its day, as it was settled. */
export function judgeRecords(
  { rows, estates }: House,
  entries: readonly Entry[],
  findings: Findings,
): void {
  const missing = new Map(entries.map((entry) => [entry.settle["spend_id"], entry]));
  const files = estates.flatMap(({ usageFiles }) => usageFiles);
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
