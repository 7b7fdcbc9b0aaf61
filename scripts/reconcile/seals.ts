// The lines of days.jsonl and of `seal head`, computed anew from the spend log, and what `seal
// verify` says of them.

import { createPublicKey, verify } from "node:crypto";
import { type Entry, recordOf } from "./books.ts";
import { closedDays, dayAfter, rootOf, sha256, textsOf } from "./days.ts";
import { type Findings, inOrder } from "./findings.ts";
import type { Books, Estate, Line, TextFile } from "./house.ts";
import { amountOf, pico, sum } from "./money.ts";

/** The beginning of a segment as a line has it. */
function segmentOf(file: TextFile | undefined, lines: number): Line {
  const texts = textsOf(file?.text ?? "").slice(0, lines);
  const text = texts.map((line) => `${line}\n`).join("");
  return {
    segment: file?.name,
    first: /"spend_id":"(\w+)"/.exec(text)?.[1],
    bytes: Buffer.byteLength(text),
    lines: texts.length,
    sha256: sha256(text).toString("hex"),
  };
}

/** What some records come to, as a line says it. */
export function sumOf(records: readonly Line[]): Line {
  const texts = records.map((record) => JSON.stringify(record));
  const file = texts.map((text) => `${text}\n`).join("");
  const currencies = [...new Set(records.map(({ currency }) => currency as string))].sort();
  const costOf = (name: string): bigint =>
    sum(records.filter(({ currency }) => currency === name).map(({ cost }) => pico(cost)));
  return {
    records: records.length,
    cost: Object.fromEntries(currencies.map((name) => [name, amountOf(costOf(name))])),
    file_bytes: Buffer.byteLength(file),
    file_sha256: sha256(file).toString("hex"),
    root: rootOf(texts),
  };
}

function judgeSignature(text: string, publicKey: string, what: string, findings: Findings): void {
  const { signature, public_key } = JSON.parse(text) as Line;
  if (publicKey === "") {
    findings.equal([signature, public_key], [undefined, undefined], `${what}: its signature`);
    return;
  }
  const at = text.lastIndexOf(',"signature":"');
  const key = createPublicKey(publicKey);
  const signed = sha256(`${text.slice(0, at)}}`);
  findings.check(
    at > 0 && verify(null, signed, key, Buffer.from(signature, "hex")),
    () => `${what}: its signature is wrong`,
  );
  const raw = key.export({ type: "spki", format: "der" }).subarray(-32).toString("hex");
  findings.equal(public_key, raw, `${what}: its public key`);
}

/** What is known of an estate while its lines are gone through. */
interface Chain {
  readonly estate: Estate;
  readonly findings: Findings;
  /** The requests of the gateway, in the order of the log. */
  readonly entries: readonly Entry[];
  readonly texts: readonly string[];
  readonly lines: readonly Line[];
}

/** How many lines of each segment the first `count` lines of days.jsonl have seen. */
const seenBy = ({ lines }: Chain, count: number): Map<string, number> =>
  new Map(
    lines
      .slice(0, count)
      .flatMap(({ segments }) => segments.map(({ segment, lines }: Line) => [segment, lines])),
  );

/** A line, of a closed day or a head of the moment, with `records` that it must have. */
function judgeLine(chain: Chain, text: string, records: readonly Entry[], what: string): void {
  const { estate, findings, texts } = chain;
  const line: Line = JSON.parse(text);
  const { day, made_at, public_key, signature } = line;
  const number: number = line["number"];
  const seen = seenBy(chain, number - 1);
  const segments = line["segments"].map(({ segment, lines }: Line) => {
    findings.check(lines > (seen.get(segment) ?? 0), () => `${what}: ${segment} has nothing new`);
    const file = estate.segments.find(({ name }) => name === segment);
    return segmentOf(file, lines);
  });
  const before = texts[number - 2];
  const previous = before === undefined ? null : sha256(before).toString("hex");
  const expected = { day, number, previous, segments, ...sumOf(records.map(recordOf)) };
  findings.equal(
    inOrder(line),
    inOrder({ ...expected, made_at, public_key, signature }),
    `${what}, anew`,
  );
  judgeSignature(text, estate.publicKey, what, findings);
}

function judgeDays(chain: Chain): void {
  const { estate, findings, entries, texts, lines } = chain;
  for (const [index, line] of lines.entries()) {
    const { day, number } = line;
    const what = `days.jsonl, line ${index + 1}`;
    const before = lines[index - 1]?.["day"];
    findings.equal([number, day], [index + 1, before ? dayAfter(before) : day], what);
    const own = entries.filter((entry) => entry.day === day);
    judgeLine(chain, texts[index]!, own, what);
  }
  // All days of the run are over and closed, so the lines must have seen everything.
  const seen = Object.fromEntries(seenBy(chain, lines.length));
  const there = estate.segments
    .map(({ name, text }) => [name, textsOf(text).length] as const)
    .filter(([, count]) => count > 0);
  findings.equal(inOrder(seen), inOrder(Object.fromEntries(there)), "days.jsonl: all segments");
  const days = lines.map(({ day }) => day);
  const without = entries.filter(({ day }) => !days.includes(day));
  findings.equal(without.map(({ open }) => open["spend_id"]).slice(0, 3), [], "in no day");
}

/** A head has what was not on a line by then. */
function judgeHead(chain: Chain, text: string): void {
  const head: Line = JSON.parse(text);
  const what = `head of ${head["made_at"]}`;
  const closed = head["number"] - 1;
  const last: string = chain.lines[closed - 1]?.["day"] ?? "";
  const seen = seenBy(chain, closed);
  for (const { segment, lines } of head["segments"]) seen.set(segment, lines);
  // Day by day, each in the order of the log.
  const own = chain.entries
    .filter(({ day, log }) => day > last && log.line <= (seen.get(log.segment) ?? 0))
    .sort((a, b) => (a.day < b.day ? -1 : Number(a.day > b.day)));
  judgeLine(chain, text, own, what);
}

/** The lines of closed days, and heads. */
export function judgeLines(books: Books, entries: readonly Entry[], findings: Findings): void {
  books.estates.forEach((estate, gateway) => {
    const chain: Chain = {
      estate,
      findings,
      entries: entries.filter((entry) => entry.gateway === gateway),
      texts: textsOf(estate.days.text),
      lines: closedDays(estate.days),
    };
    judgeDays(chain);
    for (const head of estate.heads) judgeHead(chain, head);
  });
}

/** What `seal verify` says. */
export function judgeVerification({ estates }: Books, findings: Findings): void {
  estates.forEach(({ verify: { ok, findings: found, key_stated } }, gateway) => {
    const what = `seal verify of gateway ${gateway}`;
    findings.equal([ok, found, key_stated], [true, [], true], what);
  });
}
