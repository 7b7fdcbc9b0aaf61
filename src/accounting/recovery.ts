// What a process that died has left behind: perhaps a torn last line, which is cut off, and open lines without a settle line,
// which are settled as "interrupted": the provider's figures died with the process, so they cost nothing. Whoever calls this
// holds the books, so that it happens once; if it dies half-way the next process goes on where it stopped.
import { appendFileSync, existsSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "./files.ts";
import { isAlive } from "./process-lock.ts";
import { NO_TOKENS, parseSpendLine, settleRecord, type OpenRecord, type SettleRecord } from "./records.ts";
import { holderOf } from "./spend-log.ts";
import type { Ledger } from "./sync.ts";

/** Recovers the segments whose process is dead. */
export async function recover({ dir, currency, now, diagnose }: Ledger): Promise<void> {
  const interrupted = {
    model_served: null, provider: null, status: "interrupted", http_status: null, error_code: null, finish_reason: null, attempts: [],
    usage: NO_TOKENS, usage_source: "none", cost: "0", currency, first_token_ms: null,
  } as const;
  let requests = 0;
  for (const mark of readdirSync(dir).filter((name) => name.endsWith(".open"))) {
    const segment = join(dir, mark.replace(/open$/, "jsonl"));
    if (await isAlive(holderOf(segment))) continue;
    if (existsSync(segment)) {
      const { unsettled, end } = await readSegment(segment);
      const lines = [...unsettled.values()].map((open) => `${JSON.stringify(settleRecord(open, now(), interrupted))}\n`);
      truncateSync(segment, end);
      appendFileSync(segment, lines.join(""), { flush: true });
      requests += lines.length;
    }
    rmSync(holderOf(segment), { force: true });
    rmSync(join(dir, mark), { force: true });
  }
  if (requests > 0) diagnose({ event: "spend_recovered", level: "warn", requests, detail: "requests of a process that died were settled as interrupted" });
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
