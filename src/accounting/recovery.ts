// What a process that died has left behind: perhaps a torn last line, which is cut off, and open lines without a settle line,
// which are settled as "interrupted": the provider's figures died with the process, so they cost nothing. Whoever calls this
// holds the books, so that it happens once; if it dies half-way the next process goes on where it stopped.
import { appendFileSync, existsSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "./files.ts";
import { isAlive } from "./process-lock.ts";
import { NO_TOKENS, parseSpendLine, type OpenRecord, type SettleRecord } from "./records.ts";
import { holderOf } from "./spend-log.ts";

/** Recovers the segments in `dir` whose process is dead; resolves with how many requests it has settled. */
export async function recoverSegments(dir: string, currency: string, now: number): Promise<number> {
  let interrupted = 0;
  for (const mark of readdirSync(dir).filter((name) => name.endsWith(".open"))) {
    const segment = join(dir, mark.replace(/open$/, "jsonl"));
    if (await isAlive(holderOf(segment))) continue;
    if (existsSync(segment)) {
      const { unsettled, end } = await readSegment(segment);
      const lines = [...unsettled.values()].map((open) => `${JSON.stringify(interruptedRecord(open, currency, now))}\n`);
      truncateSync(segment, end);
      appendFileSync(segment, lines.join(""), { flush: true });
      interrupted += lines.length;
    }
    rmSync(holderOf(segment), { force: true });
    rmSync(join(dir, mark), { force: true });
  }
  return interrupted;
}

/** What of a segment is still unsettled, and where its last whole line ends. `each` is given every settle line, and whether it was open. */
export async function readSegment(path: string, to = Infinity, each: (record: SettleRecord, opened: boolean) => void = () => {}) {
  const unsettled = new Map<string, OpenRecord>();
  let end = 0;
  for await (const batch of readLines(path, 0, to)) {
    for (const line of batch.lines) {
      const record = parseSpendLine(line);
      if (record?.type === "open") unsettled.set(record.spend_id, record);
      else if (record) each(record, unsettled.delete(record.spend_id));
    }
    end = batch.end;
  }
  return { unsettled, end };
}

function interruptedRecord({ type: _, stream: __, spend_id, time, ...about }: OpenRecord, currency: string, now: number): SettleRecord {
  const endedAt = Math.max(now, Date.parse(time)); // it may have been opened while this pass was under way
  return {
    type: "settle", spend_id, time: new Date(endedAt).toISOString(), ...about, model_served: null, provider: null,
    status: "interrupted", http_status: null, error_code: null, finish_reason: null, attempts: [], usage: NO_TOKENS,
    usage_source: "none", cost: "0", currency, first_token_ms: null, duration_ms: endedAt - Date.parse(time),
  };
}
