// The files that the usage sync makes of the records when a day closes, computed anew: the order of
// the records, their sums, the ids of a month, and how far the spend log was copied.

import { byDay, type Entry } from "./books.ts";
import { sha256, textsOf } from "./days.ts";
import type { Findings } from "./findings.ts";
import type { Books, Estate, Line, TextFile } from "./house.ts";
import { pico } from "./money.ts";

const DIMENSIONS = ["day", "account", "key_id", "model", "provider", "currency"];
const COUNTS = [
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "reasoning_tokens",
];

/** Sums by all dimensions, as sorted texts. A record is a sum of one request. */
function summed(sums: readonly Line[]): string[] {
  const totals = new Map<string, { counts: number[]; cost: bigint }>();
  for (const sum of sums) {
    const name = JSON.stringify(DIMENSIONS.map((dimension) => sum[dimension] ?? ""));
    const total = totals.get(name) ?? { counts: [0, ...COUNTS.map(() => 0)], cost: 0n };
    const counts = [sum["requests"] ?? 1, ...COUNTS.map((count) => sum[count])];
    total.counts = total.counts.map((count, at) => count + counts[at]);
    total.cost += pico(sum["cost"]);
    totals.set(name, total);
  }
  return [...totals].map(([name, { counts, cost }]) => `${name} ${counts} ${cost}`).sort();
}

/** The entries of a month's ids, sorted: request id, account, day, and where the line begins. */
function idsOf(days: ReadonlyMap<string, readonly Line[]>): string {
  const entries: string[] = [];
  for (const [day, records] of days) {
    let offset = 0;
    for (const record of records) {
      const { gateway_request_id: id, account } = record;
      const [ofId, ofAccount] = [id, account].map((text) => sha256(text).toString("hex"));
      const place = Number(day.slice(8)).toString(16).padStart(2, "0");
      const at = offset.toString(16).padStart(10, "0");
      entries.push(ofId!.slice(0, 16) + ofAccount!.slice(0, 8) + place + at);
      offset += Buffer.byteLength(JSON.stringify(record)) + 1;
    }
  }
  return entries.sort().join("");
}

function judgeEstate(estate: Estate, entries: readonly Entry[], findings: Findings): void {
  const { segments, usageFiles, sums, ids, cursor } = estate;
  const days = byDay(entries);
  const names = (files: readonly TextFile[], ending: string) =>
    files.map(({ name }) => name.replace(ending, ""));
  findings.equal(names(usageFiles, ".jsonl"), [...days.keys()].sort(), "the days of usage/");
  findings.equal(names(sums, ".sums"), [...days.keys()].sort(), "the sums of usage/");
  for (const { name, text } of usageFiles) {
    const places = textsOf(text).map((line) => /"log":\{[^}]*\}/.exec(line)?.[0]);
    const own = days.get(name.slice(0, 10)) ?? [];
    const expected = own.map(({ log }) => `"log":${JSON.stringify(log)}`);
    findings.equal(places, expected, `${name}: the order of its lines`);
  }
  for (const { name, text } of sums) {
    const own = days.get(name.slice(0, 10)) ?? [];
    findings.equal(summed(JSON.parse(text)), summed(own), name);
  }
  for (const { name, text } of ids) {
    const own = [...days].filter(([day]) => day.startsWith(name.slice(0, 7)));
    findings.equal(text, idsOf(new Map(own)), name);
  }
  const months = new Set([...days.keys()].map((day) => day.slice(0, 7)));
  findings.equal(names(ids, ".ids"), [...months].sort(), "the months of usage/");
  const copied = segments.map(({ name, text }) => {
    const lines = textsOf(text);
    const first = JSON.parse(lines[0]!)["spend_id"];
    const place = { first, bytes: Buffer.byteLength(text), lines: lines.length, unsettled: 0 };
    return [name, place];
  });
  const said = Object.entries(cursor["segments"] ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  findings.equal(said, copied, "cursor.json");
}

export function judgeProjection(house: Books, entries: readonly Entry[], findings: Findings): void {
  if (house.rows) return;
  house.estates.forEach((estate, gateway) => {
    const own = entries.filter((entry) => entry.gateway === gateway);
    judgeEstate(estate, own, findings);
  });
}
