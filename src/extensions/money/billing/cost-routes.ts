// The admin listener's paths about costs, from the usage records: added up, record by record, as a
// file, and all that is known of one request id. Long answers are cut into pages, or streamed.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Cancel } from "../../../core/http/cancel.ts";
import type { Exchange, Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import type { Dimension, Sum, UsageFilter, UsageRecord } from "../records/index.ts";
import {
  fail,
  nonEmpty,
  object,
  optional,
  refine,
  string,
  withDefault,
  type Check,
} from "../../../core/schema/checker.ts";
import { DAY_MS } from "../../../config/fields.ts";
import type { BooksFiles, SharedBooks } from "../usage/index.ts";
import { isDay, MONTH } from "./calendar.ts";
import { printed, statementCsv } from "./statement.ts";
import { traceRequest } from "./trace.ts";

/** How many sums a page has. */
const ROWS = 500;
/** How many records a page has. */
const RECORDS = 100;
const NO_STORE = { "Cache-Control": "no-store" };

const month = string({ pattern: MONTH, expected: "a month such as 2026-11" });
const day = optional(
  refine(nonEmpty, (text) =>
    isDay(text) ? text : fail("invalid_value", "expected a day such as 2026-11-30"),
  ),
);
const by = refine(
  withDefault(
    string({
      pattern: /^(day|account|key|model|provider)(,(day|account|key|model|provider))*$/,
      expected: "a list of day, account, key, model and provider",
    }),
    "model",
  ),
  (text) => [...new Set([...text.split(",").map(dimensionOf), "currency"])] as Dimension[],
);
const dimensionOf = (word: string): string => (word === "key" ? "key_id" : word);
const skip = refine(
  withDefault(string({ pattern: /^\d{1,12}$/, expected: "a number" }), "0"),
  Number,
);
const name = string({ min: 1, pattern: /^[^\0]+$/, expected: "a name" });
const fields = {
  month: optional(month),
  day,
  from: day,
  to: day,
  account: optional(name),
  key: optional(name),
  model: optional(name),
  provider: optional(string({ pattern: /^[^\0]*$/, expected: "a name" })),
  by,
  skip,
};
/** Days of a span at most: what is added up is held in memory. */
const MAX_SPAN_DAYS = 800;

/** Which records are asked for: those of a month, or of a span of days. */
const recordsQuery = refine(object(fields, { strict: true }), ({ key, ...query }) => {
  assertSpan(query);
  return { ...query, key_id: key };
});

function assertSpan({ month: only, from, to }: Pick<UsageFilter, "month" | "from" | "to">): void {
  if (from === undefined && to === undefined) {
    if (only === undefined)
      fail("missing_required_parameter", "is required, unless there are from and to", ["month"]);
    return;
  }
  if (only !== undefined) fail("invalid_value", "is a month or a span, not both", ["month"]);
  if (from === undefined) fail("missing_required_parameter", "is required with to", ["from"]);
  if (to === undefined) fail("missing_required_parameter", "is required with from", ["to"]);
  const length = (Date.parse(to!) - Date.parse(from!)) / DAY_MS;
  if (length < 0) fail("invalid_value", "is before from", ["to"]);
  if (length >= MAX_SPAN_DAYS)
    fail("invalid_value", `a span has at most ${MAX_SPAN_DAYS} days`, ["to"]);
}

const traceQuery = object({ request_id: name, day }, { strict: true });

/** What follows the `?` of a request's path. Throws a ValidationError. */
const queryOf = <T>({ url = "" }: IncomingMessage, check: Check<T>): T =>
  check(Object.fromEntries(new URLSearchParams(url.replace(/^[^?]*/, ""))));

/** Turns any error of reading the books into an internal one: the query was valid. */
const failReading = (cause: unknown): Promise<never> =>
  Promise.reject(new Error("the usage records cannot be read", { cause }));

/** Answers a GET with what `find` resolves with. `cancel` is aborted when the client leaves. */
const answering = <T>(
  check: Check<T>,
  find: (query: T, cancel: Cancel) => Promise<object>,
): Routes[string] => ({
  GET: async ({ req, res, cancel }: Exchange) => {
    const query = queryOf(req, check);
    sendJson(res, 200, await find(query, cancel).catch(failReading), NO_STORE);
  },
});

/** The paths, to be added to the admin listener's. */
export const costRoutes = (books: SharedBooks): Routes => ({
  "/costs": answering(recordsQuery, async ({ by, skip, ...filter }) => {
    const sums = [...(await books.files.store.sums(filter, by))].sort(costliestFirst);
    return { rows: sums.slice(skip, skip + ROWS).map(printed), count: sums.length };
  }),
  "/usage": answering(recordsQuery, async (filter, cancel) => {
    const records: UsageRecord[] = [];
    for await (const batch of books.files.store.records(filter, filter.skip)) {
      if (cancel.aborted) throw cancel.reason;
      records.push(...batch);
      if (records.length >= RECORDS) break;
    }
    return { records: records.slice(0, RECORDS) };
  }),
  "/usage.csv": {
    GET: (exchange) => sendCsv(books.files, exchange),
  },
  "/trace": answering(traceQuery, ({ request_id, day }, cancel) =>
    traceRequest(books, { requestId: request_id, day, cancel }),
  ),
});

function costliestFirst(a: Sum, b: Sum): number {
  if (a.cost === b.cost) return 0;
  return a.cost < b.cost ? 1 : -1;
}

const spanName = ({ day: only, month: whole, from, to }: UsageFilter): string =>
  only ?? whole ?? `${from}-to-${to}`;

async function sendCsv({ store }: BooksFiles, { req, res, cancel }: Exchange): Promise<void> {
  // Awaiting lets Node parse the rest of the packet first: a fault in it is answered before the
  // head is sent.
  const filter = await queryOf(req, recordsQuery);
  res.writeHead(200, {
    "Content-Type": "text/csv; charset=utf-8",
    "Content-Disposition": `attachment; filename="usage-${spanName(filter)}.csv"`,
    ...NO_STORE,
  });
  const print = async (lines: string): Promise<void> => {
    if (!res.write(lines)) await once(res, "drain", { signal: cancel.signal });
  };
  await statementCsv(store, { filter, print }).catch(failReading);
  res.end();
}
