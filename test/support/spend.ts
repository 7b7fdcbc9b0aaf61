// A spend log as a gateway would have written it, of any size, to have something to copy and to
// bill.

import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "./random.ts";

/** What careless copying would change. */
const REQUEST_IDS = (serial: number) => [
  `req-${serial}`,
  `"quoted", \\backslashed\\ ${serial}`,
  "the same for all",
  `${"long ".repeat(100)}${serial}`,
  `=1+1 ' ; -- ${serial}`,
  `{"json":${serial}}`,
  ` ${serial} `,
];
export const SPEND_ACCOUNTS = ["acme", "beta", 'Çelik, "Söhne" & 李'];

export interface SpendOptions {
  readonly requests: number;
  readonly seed?: number;
  /**
   * The time of the first and of the last request; absent: the last forty days, so that there are
   * two months or three.
   */
  readonly from?: number;
  readonly to?: number;
  /** Requests in a segment. */
  readonly perSegment?: number;
}

/** The lines of one request that is opened at `at`, in milliseconds since 1970. */
function entryOf(
  { between, pick }: ReturnType<typeof createRandom>,
  index: number,
  at: number,
): string {
  const hex = (digits: number) =>
    Array.from({ length: digits }, () => between(0, 15).toString(16)).join("");
  const duration_ms = between(0, 5_000);
  const [opened, settled] = [at, at + duration_ms].map((time) => new Date(time).toISOString());
  const about = {
    gateway_request_id: pick(REQUEST_IDS(index)),
    account: pick(SPEND_ACCOUNTS),
    key_id: `key_${hex(16)}`,
    model_requested: pick(["some", "other", "any/of them"]),
  };
  const status = pick([
    ...["completed", "completed", "completed", "failed", "cancelled", "interrupted"],
  ]);
  const served = status === "completed" || status === "cancelled";
  const [hit, miss, completion_tokens] = served
    ? [between(0, 9_000), between(0, 90_000), between(1, 900_000)]
    : [0, 0, 0];
  const usage = {
    prompt_tokens: hit + miss,
    completion_tokens,
    total_tokens: hit + miss + completion_tokens,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: miss,
    reasoning_tokens: between(0, completion_tokens),
    // Lines of earlier versions, and those of requests that wrote nothing, do not have it.
    ...(index % 3 === 0 && miss > 1 && { cache_write_tokens: Math.floor(miss / 2) }),
  };
  const spend_id = `sp_${hex(32)}`;
  const cost = served
    ? `${between(0, 99)}${pick(["", ".5", ".000000000001", `.${String(between(0, 999_999)).padStart(6, "0")}1`])}`
    : "0";
  const open = `${JSON.stringify({ type: "open", spend_id, time: opened, ...about, stream: index % 2 === 0 })}\n`;
  const settle = `${JSON.stringify({
    type: "settle",
    spend_id,
    time: settled,
    ...about,
    model_served: served ? pick(["some", "other"]) : null,
    provider: served ? "lab" : null,
    status,
    http_status: served ? 200 : null,
    error_code: null,
    finish_reason: null,
    attempts: [{ model: "some", provider: "lab", outcome: status, duration_ms }],
    usage,
    usage_source: served ? "provider" : "none",
    cost,
    currency: "USD",
    first_token_ms: served ? 1 : null,
    duration_ms,
  })}\n`;
  return open + settle;
}

/**
 * Writes `requests` requests into segments without a writer, each opened and settled, in the order
 * of their times.
 */
export function writeSpend(
  dataDir: string,
  {
    requests,
    seed = 1,
    to = Date.now() - 60_000,
    from = to - 40 * 86_400_000,
    perSegment = 50_000,
  }: SpendOptions,
): void {
  const dir = join(dataDir, "spend");
  mkdirSync(dir, { recursive: true });
  const random = createRandom(seed);
  const numbers = new Map<string, number>();
  for (let first = 0; first < requests; first += perSegment) {
    const at = (index: number) => Math.floor(from + ((to - from) * index) / requests);
    const day = new Date(at(first)).toISOString().slice(0, 10);
    numbers.set(day, (numbers.get(day) ?? 0) + 1);
    const fd = openSync(
      join(dir, `${day}.${String(numbers.get(day)).padStart(4, "0")}.jsonl`),
      "wx",
      0o600,
    );
    let lines = "";
    for (let index = first; index < Math.min(first + perSegment, requests); index += 1) {
      lines += entryOf(random, index, at(index));
      if (lines.length > 1_000_000) {
        writeSync(fd, lines);
        lines = "";
      }
    }
    writeSync(fd, lines);
    closeSync(fd);
  }
}
