// What it cost, from the usage records: added up by day, account and model, record by record, as a file, and the whole story of one
// request id, to which the spend log adds the attempts. What there is much of is added up here, sent in pages, or streamed.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { isDay, MONTH, shown, statementCsv } from "./billing.ts";
import { readLines } from "./files.ts";
import {
  parseSpendLine,
  type Dimension,
  type OpenRecord,
  type SettleRecord,
  type UsageRecord,
} from "./records.ts";
import { segmentsIn } from "./spend-log.ts";
import { copiedUpTo, type Ledger } from "./sync.ts";
import { DAY_MS } from "../../core/config/schema.ts";
import type { Cancel } from "../../core/http/cancel.ts";
import type { Exchange, Routes } from "../../core/http/exchange.ts";
import { sendJson } from "../../core/http/responses.ts";
import {
  fail,
  nonEmpty,
  object,
  optional,
  refine,
  string,
  withDefault,
  type Check,
} from "../../core/schema/checker.ts";

const ROWS = 500; // of one answer
const RECORDS = 100;
const FRESH = { "Cache-Control": "no-store" };
const month = string({ pattern: MONTH, expected: "a month such as 2026-11" });
const day = optional(
  refine(nonEmpty, (text) =>
    isDay(text) ? text : fail("invalid_value", "expected a day such as 2026-11-30"),
  ),
);
const by = refine(
  withDefault(
    string({
      pattern: /^(day|account|model)(,(day|account|model))*$/,
      expected: "a list of day, account and model",
    }),
    "model",
  ),
  (text) => [...new Set([...text.split(","), "currency"])] as Dimension[],
);
const skip = refine(
  withDefault(string({ pattern: /^\d{1,12}$/, expected: "a number" }), "0"),
  Number,
);
const name = string({ min: 1, pattern: /^[^\0]+$/, expected: "a name" });
const recordsQuery = object(
  { month, day, account: optional(name), model: optional(name), by, skip },
  { strict: true },
);
/** What a request asks for behind its path's `?`. Throws a ValidationError. */
const asked = <T>({ url = "" }: IncomingMessage, check: Check<T>): T =>
  check(Object.fromEntries(new URLSearchParams(url.replace(/^[^?]*/, ""))));
const unreadable = (cause: unknown) =>
  Promise.reject(new Error("the usage records cannot be read", { cause })); // not the fault of who asks
/** A path that answers with what `find` finds; that may give up when `cancel` is aborted. */
const finding = <T>(check: Check<T>, find: (query: T, cancel: Cancel) => Promise<object>) => ({
  GET: async ({ req, res, cancel }: Exchange) =>
    sendJson(res, 200, await find(asked(req, check), cancel).catch(unreadable), FRESH),
});

export const costRoutes = ({ dir, store, segments }: Ledger): Routes => ({
  "/costs": finding(recordsQuery, async ({ by, skip, ...filter }) => {
    const sums = [...(await store.sums(filter, by))].sort((a, b) => {
      if (a.cost === b.cost) return 0;
      return a.cost < b.cost ? 1 : -1;
    });
    return { rows: sums.slice(skip, skip + ROWS).map(shown), count: sums.length };
  }),
  "/usage": finding(recordsQuery, async (filter, cancel) => {
    const records: UsageRecord[] = [];
    for await (const batch of store.records({ ...filter, cancel }))
      if (records.push(...batch) >= RECORDS) break;
    return { records: records.slice(0, RECORDS) };
  }),
  "/usage.csv": {
    async GET({ req, res, cancel }) {
      const filter = await asked(req, recordsQuery); // first what came in the same packet is parsed: a fault in it is still told
      const disposition = `attachment; filename="usage-${filter.day ?? filter.month}.csv"`;
      res.writeHead(200, {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": disposition,
        ...FRESH,
      });
      await statementCsv(store, filter, async (lines) => {
        if (!res.write(lines)) await once(res, "drain", { signal: cancel.signal });
      }).catch(unreadable);
      res.end();
    },
  },
  /** All that is known of a request id: its usage records, and what the spend log says, which has the attempts. With a `day` only the spend
   * log is looked at, of that day and the one before: it has what was settled just now. */
  "/trace": finding(
    object({ request_id: name, day }, { strict: true }),
    async ({ request_id: requestId, day }, cancel) => {
      const records: UsageRecord[] = [];
      if (day === undefined)
        for await (const batch of store.records({ requestId, cancel }))
          if (records.push(...batch) >= ROWS) break;
      // A segment has the name of the day on which it was begun.
      const days = new Set(
        (day === undefined ? records.map(({ started_at }) => started_at) : [day]).flatMap((time) =>
          [0, DAY_MS].map((back) => new Date(Date.parse(time) - back).toISOString().slice(0, 10)),
        ),
      );
      const spend = new Map<string, OpenRecord | SettleRecord>();
      const copied = copiedUpTo({ dir, segments }, await store.marks());
      for (const segment of segmentsIn(dir)) {
        for await (const { lines } of readLines(
          join(dir, segment),
          days.has(segment.slice(0, 10)) ? 0 : copied.get(segment),
        )) {
          if (cancel.aborted) throw cancel.reason;
          for (const line of lines.filter((line) =>
            line.includes(`"gateway_request_id":${JSON.stringify(requestId)}`),
          )) {
            const record = parseSpendLine(line);
            if (record && (spend.size < ROWS || spend.has(record.spend_id)))
              spend.set(record.spend_id, record); // what was settled is in the place of what was opened
          }
        }
      }
      return { gateway_request_id: requestId, records, spend: [...spend.values()] };
    },
  ),
});
