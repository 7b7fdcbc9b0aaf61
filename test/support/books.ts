// Reads the books as any other program would (from the files under data_dir), and computes costs
// without the gateway's own arithmetic.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import * as money from "../../scripts/reconcile/money.ts";
import type { GatewayDeps } from "./config.ts";
import { folder } from "./folder.ts";
import { merge, startWith, user } from "./gateway.ts";
import { USAGE, type Behaviour } from "./provider.ts";
import { waitFor, within } from "./wait.ts";
import { today } from "./today.ts";

export type Line = Record<string, any>;
export interface Entry {
  readonly open: Line;
  readonly settle: Line;
}

/** The lines of a file. Each must be complete, and JSON. */
export function linesOf(path: string): Line[] {
  const text = readFileSync(path, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${path} ends in the middle of a line`);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** The names of the JSONL files in a folder of data_dir, sorted. */
const jsonlIn = (dir: string, inner: "spend" | "usage"): string[] =>
  (existsSync(join(dir, inner)) ? readdirSync(join(dir, inner)) : [])
    .filter((name) => name.endsWith(".jsonl"))
    .sort();

/** The spend log's segments, oldest first. */
export const segments = (dir: string): string[] => jsonlIn(dir, "spend");
export const segmentPath = (dir: string, name = segments(dir)[0] ?? "no segment"): string =>
  join(dir, "spend", name);
export const spendLines = (dir: string): Line[] =>
  segments(dir).flatMap((name) => linesOf(segmentPath(dir, name)));
export const settles = (dir: string): Line[] =>
  spendLines(dir).filter(({ type }) => type === "settle");
/** All requests in the spend log. Each must be opened and then settled once, in one segment. */
export function entries(dir: string): Entry[] {
  return segments(dir).flatMap((name) => {
    const open = new Map<string, Line>();
    const found: Entry[] = [];
    for (const line of linesOf(segmentPath(dir, name))) {
      const id: string = line["spend_id"];
      if (line["type"] === "open") {
        assert.ok(
          !open.has(id) && found.every((each) => each.open["spend_id"] !== id),
          `${id} was opened twice`,
        );
        open.set(id, line);
      } else {
        assert.ok(open.has(id), `${id} was settled without being open in ${name}`);
        found.push({ open: open.get(id)!, settle: line });
        open.delete(id);
      }
    }
    assert.deepEqual([...open.keys()], [], "opened, and not settled");
    return found;
  });
}

/** The only request in the books. */
export function only(dir: string): Entry {
  const found = entries(dir);
  assert.equal(found.length, 1, `${found.length} requests are in the books`);
  return found[0]!;
}

/** Waits for at least `count` settle lines: for replies whose client has left. */
export const settled = (dir: string, count = 1): Promise<Line[]> =>
  waitFor(() => {
    const found = settles(dir);
    return found.length >= count && found;
  }, `${count} settle lines`);

/** The path of a day's usage records. */
export const usageFile = (dir: string, day = today()): string => join(dir, "usage", `${day}.jsonl`);
/** The usage records in the file store. */
export const usageRecords = (dir: string): Line[] =>
  jsonlIn(dir, "usage").flatMap((name) => linesOf(join(dir, "usage", name)));
/** The number of usage records, not counting one that is still being written. */
export const usageCount = (dir: string): number =>
  jsonlIn(dir, "usage")
    .map((name) => readFileSync(join(dir, "usage", name), "utf8").split("\n").length - 1)
    .reduce((sum, lines) => sum + lines, 0);

// ---- lines that no gateway wrote

/** A spend_id that contains a number. */
export const spendId = (n: number): string => `sp_${n.toString(16).padStart(32, "0")}`;

export function openLine(n: number, over: Line = {}): Line {
  return {
    type: "open",
    spend_id: spendId(n),
    time: "2026-01-31T12:00:00.000Z",
    gateway_request_id: `request ${n}`,
    account: "acme",
    key_id: "key_0123456789abcdef",
    model_requested: "m",
    stream: false,
    ...over,
  };
}

export function settleLine(n: number, over: Line = {}): Line {
  const { type: _, stream: __, ...about } = openLine(n);
  return {
    type: "settle",
    ...about,
    time: "2026-01-31T12:00:01.500Z",
    model_served: "m",
    provider: "lab",
    status: "completed",
    http_status: 200,
    error_code: null,
    finish_reason: "stop",
    attempts: [{ model: "m", provider: "lab", outcome: "completed", duration_ms: 1_400 }],
    usage: COUNTED,
    usage_source: "provider",
    cost: costOf(COUNTED, PRICE),
    currency: "USD",
    first_token_ms: 100,
    duration_ms: 1_500,
    prices: null,
    ...over,
  };
}

/** The text of a file with these lines. A string is a line as it is; anything else becomes JSON. */
export const textOf = (lines: readonly (Line | string)[]): string =>
  lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");

/** Writes a segment that has no writer. `holder`: its process died, or released the segment. */
export function handMade(
  dir: string,
  name: string,
  text: string | Buffer,
  holder: "died" | "let go",
): void {
  mkdirSync(join(dir, "spend"), { recursive: true });
  writeFileSync(segmentPath(dir, name), text);
  if (holder === "died") writeFileSync(segmentPath(dir, name).replace("jsonl", "sock"), "");
}

// ---- money

/** A fraction as an exact decimal number, by long division. Fails unless the decimal is finite. */
export function decimal(numerator: bigint, denominator: bigint): string {
  let digits = "";
  let rest = numerator % denominator;
  while (rest > 0n) {
    digits += (rest * 10n) / denominator;
    rest = (rest * 10n) % denominator;
    assert.ok(digits.length < 100, "not a finite decimal");
  }
  return `${numerator / denominator}${digits && "."}${digits}`;
}

/** The sum of exact decimals. Asserts that these have no unnecessary zeros. */
export function sum(amounts: readonly string[]): string {
  const exact = amounts.map(money.pico);
  assert.deepEqual(exact.map(money.amountOf), amounts);
  return money.amountOf(money.sum(exact));
}

/** The cost of tokens, as the books write it. */
export function costOf(usage: Line, price: money.Price): string {
  const counts = {
    ...money.NO_COUNTS,
    prompt: usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"],
    hit: usage["prompt_cache_hit_tokens"],
    write: usage["cache_write_tokens"] ?? 0,
    completion: usage["completion_tokens"],
  };
  return money.amountOf(money.costOf(counts, price));
}

// ---- a gateway with prices

export const PRICE = { input_cache_hit: 0.5, input_cache_miss: 1.25, output: 10.000001 };
/** The USAGE of provider.ts, as the books write it. */
export const COUNTED = {
  prompt_tokens: USAGE.prompt_tokens,
  completion_tokens: USAGE.completion_tokens,
  total_tokens: USAGE.total_tokens,
  prompt_cache_hit_tokens: 8,
  prompt_cache_miss_tokens: 12,
  reasoning_tokens: 3,
};
export const NO_USAGE = Object.fromEntries(Object.keys(COUNTED).map((name) => [name, 0]));

/** Starts a provider, and a gateway with one model for each behaviour, all at PRICE. */
export async function priced(
  t: TestContext,
  behaviours: Readonly<Record<string, Behaviour>>,
  over: object = {},
  deps: GatewayDeps = {},
) {
  const dir = folder();
  const names = Object.keys(behaviours);
  const models = Object.fromEntries(names.map((name) => [name, { price: PRICE }]));
  const settings = merge({ data_dir: dir, models }, over) as object;
  const { provider, config, ...gw } = await startWith(t, behaviours, settings, deps);
  /** Sends a request. Resolves with the complete answer. */
  const ask = async (body: object = {}, headers: Record<string, string> = {}) => {
    const whole = { model: names[0], messages: user("Say something."), ...body };
    const response = await within(gw.chat(whole, headers), "an answer");
    return {
      status: response.status,
      id: response.headers.get("x-request-id") ?? "",
      headers: response.headers,
      text: await response.text(),
    };
  };
  return { dir, provider, gw, config, ask };
}

/** Writes a configuration to a file, for the command line. Returns the path. */
export function configFile(config: object): string {
  const file = join(folder(), "some.json");
  writeFileSync(file, JSON.stringify(config));
  return file;
}
