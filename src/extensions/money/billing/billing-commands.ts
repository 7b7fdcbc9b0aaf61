// `billing statement` and `billing trace`.
import { JSON_OPTION, UsageError, type Command } from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { receiptsOf } from "../receipts/index.ts";
import { withoutDetails } from "../records/index.ts";
import { bookSizes, withCopiedBooks, withProgress } from "../books/index.ts";
import { sealsStatements } from "../usage/index.ts";
import { MONTH } from "./calendar.ts";
import { statement, statementCsv } from "./statement.ts";

const STATEMENT_COLUMNS = [
  "model",
  "requests",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "cost",
] as const;

const TRACE_COLUMNS = [
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  "prompt_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "cost",
  "currency",
  "ended_at",
  "usage_id",
] as const;

/** What an account owes for a month, by model; as CSV record by record. */
const runStatement = withCopiedBooks(async (context) => {
  const { books, args, terminal, extensions } = context;
  const { store } = books;
  const { account = "", month = "", json, currency: asked } = args.values;
  const format = args.values["format"] ?? (json === undefined ? "table" : "json");
  if (args.values["sealed"] !== undefined && format === "csv")
    throw new UsageError(
      "a sealed statement is JSON: --sealed and --format csv exclude each other",
    );
  const reading = <T>(work: () => Promise<T>): Promise<T> =>
    withProgress(context, "statement", () => bookSizes(context).usage(month), work);
  if (format === "csv") {
    const { print } = terminal;
    return await reading(() =>
      statementCsv(store, { filter: { account, month }, currency: asked, print }),
    );
  }
  const currency = asked ?? books.currency;
  const isSealed = args.values["sealed"] !== undefined;
  const sealer = books.signer && extensions.find(sealsStatements);
  if (isSealed && !sealer)
    throw new UsageError("--sealed needs seals.enabled in the configuration");
  const about = { account, month, currency };
  // A gateway vouches for what it has served itself.
  const bill = await reading(() => statement(store, about, isSealed));
  if (bill.total.requests === 0) terminal.warn(`${account} has no usage records in ${month}`);
  for (const [other, requests] of Object.entries(bill.other_currencies))
    terminal.warn(
      `warning: ${requests} requests were billed in ${other} and are not in these sums: ` +
        `--currency ${other} has them`,
    );
  if (isSealed && sealer)
    return await reading(() => sealer.printSealedStatement(books, bill, terminal.print));
  const rows = table(STATEMENT_COLUMNS, [...bill.lines, { model: "total", ...bill.total }]);
  const text = `${account}, ${month}, in ${currency}\n${rows}`;
  if (format === "json") return await terminal.print(`${JSON.stringify(bill)}\n`);
  return await terminal.print(text);
});

/** The usage records of a request id, and their receipts. */
const runTrace = withCopiedBooks(async ({ books, args, terminal }) => {
  const requestId = args.operand ?? "";
  const found = await books.store.find({ requestId, limit: MOST_TRACED });
  if (found.length === 0)
    throw new Error(
      `no usage record has the gateway_request_id ${JSON.stringify(requestId)}: ` +
        "it is on its way, or no provider was called",
    );
  const records = found.map(withoutDetails);
  if (args.values["json"] === undefined) return await terminal.print(table(TRACE_COLUMNS, records));
  const receipts = receiptsOf(books, found);
  const trace = { gateway_request_id: requestId, records, receipts };
  return await terminal.print(`${JSON.stringify(trace)}\n`);
});

/** How many records a trace has at most: those of the requests that ended last. */
const MOST_TRACED = 10_000;

const CURRENCY = /^[A-Z]{3}$/;
const FORMATS = ["table", "csv", "json"];

export const statementCommand: Command = {
  summary: "what an account owes, by model; as csv by request",
  example: "billing statement --account acme --month 2026-11",
  options: {
    account: { value: "A", meaning: "the account of the statement", required: true },
    month: {
      value: "YYYY-MM",
      meaning: "the month of the statement, in UTC",
      required: true,
      test: (text) => MONTH.test(text),
      expected: "a month such as 2026-11",
    },
    format: {
      value: "table|csv|json",
      meaning: "the form of the statement",
      fallback: "table",
      test: (text) => FORMATS.includes(text),
      expected: "table, csv or json",
    },
    currency: {
      value: "C",
      meaning: "take the requests that were billed in this currency",
      fallback: "currency of the configuration",
      test: (text) => CURRENCY.test(text),
      expected: "three capital letters such as USD",
    },
    sealed: { meaning: "write JSON with its proof, which `seal verify` checks" },
    json: JSON_OPTION,
  },
  run: runStatement,
};

export const traceCommand: Command = {
  summary: "the usage records of a request id, and their account",
  operand: "REQUEST_ID",
  operandMeaning: "the X-Request-Id of a response",
  example: "billing trace req_0123456789abcdef0123456789abcdef",
  options: { json: JSON_OPTION },
  run: runTrace,
};
