// Paths of the admin listener about usage records: sums, single records, a CSV file, and everything
// known about one request id. Long answers are paginated or streamed.
import { once as onceEmitted } from "node:events";
import { DAY_MS, strict } from "../../../config/fields.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Exchange, Routes } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import {
  fail,
  nonEmpty,
  optional,
  refine,
  string,
  withDefault,
} from "../../../core/schema/checker.ts";
import {
  answering,
  isSystemError,
  NO_STORE,
  once,
  queryOf,
} from "../../scale/installation/index.ts";
import { MONTH, statementCsv, traceRequest } from "../../money/billing/index.ts";
import {
  isCalendarDay,
  printedSum,
  StoreError,
  type Dimension,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../../money/records/index.ts";
import { BooksFault, shareBooks, type SharedBooks } from "../../money/usage/index.ts";

/** The most sums on one page. */
const ROWS = 500;
/** The most records on one page. */
const RECORDS = 100;
/** The most days in a span, because the sums are held in memory. */
const MAX_SPAN_DAYS = 800;

export function install(gateway: Installer): void {
  gateway.on(once, (host) => {
    const books = shareBooks(host.config, host);
    return { adminRoutes: routes(books), close: books.close };
  });
}

const day = refine(nonEmpty, (text) =>
  isCalendarDay(text) ? text : fail("invalid_value", "expected a day such as 2026-11-30"),
);
const name = string({ min: 1, pattern: /^[^\0]+$/, expected: "a name" });
const by = string({
  pattern: /^(day|account|key|model|provider|currency)(,(day|account|key|model|provider))*$/,
  expected: "a list of day, account, key, model and provider",
});

const fields = strict({
  month: optional(string({ pattern: MONTH, expected: "a month such as 2026-11" })),
  day: optional(day),
  from: optional(day),
  to: optional(day),
  account: optional(name),
  key: optional(name),
  model: optional(name),
  provider: optional(string({ pattern: /^[^\0]*$/, expected: "a name" })),
  /** What sums are grouped by, in addition to the currency. `currency`: by nothing else. */
  by: withDefault(by, "model"),
  skip: withDefault(string({ pattern: /^\d{1,12}$/, expected: "a number" }), "0"),
});

/** Selects the records of a month, or of a span of days. */
const recordsQuery = refine(fields, ({ key: key_id, by: names, skip, ...rest }) => {
  const { month, from, to } = rest;
  if (month === undefined) assertSpan(from, to);
  else if ((from ?? to) !== undefined)
    fail("invalid_value", "is a month or a span, not both", ["month"]);
  const dimensions = [...names.replaceAll("key", "key_id").split(","), "currency"];
  const filter = { ...rest, key_id };
  return { filter, by: [...new Set(dimensions)] as Dimension[], skip: Number(skip) };
});

function assertSpan(from: string | undefined, to: string | undefined): void {
  if ((from ?? to) === undefined)
    fail("missing_required_parameter", "is required, unless there are from and to", ["month"]);
  if (from === undefined) fail("missing_required_parameter", "is required with to", ["from"]);
  if (to === undefined) fail("missing_required_parameter", "is required with from", ["to"]);
  const length = (Date.parse(to) - Date.parse(from)) / DAY_MS;
  if (length < 0) fail("invalid_value", "is before from", ["to"]);
  if (length >= MAX_SPAN_DAYS)
    fail("invalid_value", `a span has at most ${MAX_SPAN_DAYS} days`, ["to"]);
}

/** Throws a 503 with the message of a failure to read the books; rethrows any other error. */
function unreadable(error: Error): never {
  const isOfBooks = error instanceof BooksFault || error instanceof StoreError;
  if (!isOfBooks && !isSystemError(error)) throw error;
  const headers = { "Retry-After": "5" };
  const text = `The books cannot be read: ${error.message}`;
  throw new ApiError("server_overloaded", text, { headers, cause: error });
}

/** answering(), with the 503 of unreadable() if the books cannot be read. */
const reading: typeof answering = (check, find) =>
  answering(check, async (query, cancel) => {
    try {
      return await find(query, cancel);
    } catch (error) {
      return unreadable(error as Error);
    }
  });

/**
 * The day on which the page after `skip` records begins, and how many records are before that day.
 * Computed from the daily sums, so that the records of earlier days need not be read.
 */
async function startOfPage(store: UsageStore, filter: UsageFilter, skip: number) {
  let first = filter.from;
  let before = 0;
  const days = skip > 0 ? [...(await store.sums(filter, ["day"]))] : [];
  days.sort((one, other) => (one.day < other.day ? -1 : 1));
  for (const [index, { day, requests }] of days.entries()) {
    first = day;
    if (before + requests > skip || index === days.length - 1) break;
    before += requests;
  }
  return { first, before };
}

const routes = (books: SharedBooks): Routes => ({
  "/costs": reading(recordsQuery, async ({ filter, by: dimensions, skip }) => {
    const sums = [...(await books.files.store.sums(filter, dimensions))];
    sums.sort((one, other) => Number(other.cost - one.cost));
    return { rows: sums.slice(skip, skip + ROWS).map(printedSum), count: sums.length };
  }),
  "/usage": reading(recordsQuery, async ({ filter, skip }, cancel) => {
    const { store } = books.files;
    const records: UsageRecord[] = [];
    const { first, before } = await startOfPage(store, filter, skip);
    let passed = before;
    for await (const batch of store.records({ ...filter, from: first })) {
      if (cancel.aborted) throw cancel.reason;
      records.push(...batch.slice(Math.max(0, skip - passed)));
      passed += batch.length;
      if (records.length >= RECORDS) break;
    }
    return { records: records.slice(0, RECORDS) };
  }),
  "/usage.csv": { GET: (exchange) => sendCsv(books.files.store, exchange) },
  "/trace": reading(strict({ request_id: name }), ({ request_id }, cancel) =>
    traceRequest(books, request_id, cancel),
  ),
});

async function sendCsv(store: UsageStore, { req, res, cancel }: Exchange): Promise<void> {
  // The await lets Node parse the rest of the packet first, so that an HTTP error in it is answered
  // before the response's head is sent.
  const { filter } = await queryOf(req, recordsQuery);
  const days = filter.day ?? filter.month ?? `${filter.from}-to-${filter.to}`;
  const headers = {
    "Content-Type": "text/csv; charset=utf-8",
    "Content-Disposition": `attachment; filename="usage-${days}.csv"`,
    ...NO_STORE,
  };
  async function print(lines: string): Promise<void> {
    if (!res.headersSent) res.writeHead(200, headers);
    if (!res.write(lines)) await onceEmitted(res, "drain", { signal: cancel.signal });
  }
  // After the headers an error can only end the response; the server logs it.
  const failed = (error: Error): never => {
    if (res.headersSent) throw error;
    return unreadable(error);
  };
  await statementCsv(store, filter, print).catch(failed);
  res.end();
}
