// The commands `billing statement` and `billing trace`.
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
} from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { receiptsOf } from "../receipts/index.ts";
import { SUMMED_COUNTS, withoutDetails } from "../records/index.ts";
import { withCopiedBooks } from "../books/index.ts";
import { makeStatement, MONTH, statementCsv } from "./statement.ts";

const STATEMENT_COLUMNS = ["model", "requests", ...SUMMED_COUNTS, "cost"] as const;
const TRACED = ["account", "model", "provider", "status", "cost", "currency", "usage_id"] as const;

/** The most records in a trace: those of the requests that ended last. */
const MAX_TRACED = 10_000;

function formatOf({ format, json }: CommandArguments["values"]): string {
  if (json === undefined) return format ?? "table";
  if ((format ?? "json") === "json") return "json";
  throw new UsageError(`--json and --format ${format} cannot be used together`);
}

/** Prints what an account owes for a month: by model or, as CSV, request by request. */
const runStatement = withCopiedBooks(async ({ books, args, terminal }) => {
  const { account = "", month = "", currency: requested } = args.values;
  const format = formatOf(args.values);
  const isSealed = args.values["sealed"] !== undefined;
  if (isSealed && format === "csv")
    throw new UsageError(
      "a sealed statement is JSON: --sealed and --format csv cannot be used together",
    );
  if (format === "csv")
    return await statementCsv(books.store, { account, month }, terminal.print, requested);
  const { signer } = books;
  if (isSealed && !signer)
    throw new UsageError("--sealed needs seals.enabled in the configuration");
  const currency = requested ?? books.currency;
  const makeBill = async () => {
    // A sealed bill has only what this gateway served, because its seals prove nothing else.
    const bill = await makeStatement(books.store, { account, month, currency }, isSealed);
    if (bill.total.requests === 0) terminal.warn(`${account} has no usage records in ${month}`);
    for (const [other, requests] of Object.entries(bill.other_currencies))
      terminal.warn(
        `warning: ${requests} requests were billed in ${other} and are not in these sums: ` +
          `--currency ${other} has them`,
      );
    return bill;
  };
  if (isSealed && signer) return await signer.printStatement(books, makeBill, terminal.print);
  const bill = await makeBill();
  if (format === "json") return await terminal.print(`${JSON.stringify(bill)}\n`);
  const rows = table(STATEMENT_COLUMNS, [...bill.lines, { model: "total", ...bill.total }]);
  return await terminal.print(`${account}, ${month}, in ${currency}\n${rows}`);
});

/** Prints the usage records of a request id, and their receipts. */
const runTrace = withCopiedBooks(async ({ books, args, terminal }) => {
  const { operand: requestId } = args;
  const found = await books.store.find({ requestId, limit: MAX_TRACED });
  if (found.length === 0)
    throw new Error(
      `no usage record has the gateway_request_id ${JSON.stringify(requestId)}: ` +
        "its request is still running, or the gateway refused it before calling a provider",
    );
  const records = found.map(withoutDetails);
  const trace = { gateway_request_id: requestId, records, receipts: receiptsOf(books, found) };
  await terminal.printResult(args, trace, table(TRACED, records));
});

export const statementCommand: Command = {
  summary: "what an account owes, by model; as csv, by request",
  example: "billing statement --account acme --month 2026-11",
  options: {
    account: { value: "A", help: "the account of the statement", required: true },
    month: {
      value: "YYYY-MM",
      help: "the month of the statement, in UTC",
      required: true,
      test: (text) => MONTH.test(text),
      expected: "a month such as 2026-11",
    },
    format: {
      value: "table|csv|json",
      help: "the format of the statement",
      fallback: "table",
      test: (text) => ["table", "csv", "json"].includes(text),
      expected: "table, csv or json",
    },
    currency: {
      value: "C",
      help: "show the requests billed in this currency",
      fallback: "currency of the configuration; csv: all",
      test: (text) => /^[A-Z]{3}$/.test(text),
      expected: "three capital letters such as USD",
    },
    sealed: { help: "write JSON with its proof, which `seal verify` checks" },
    json: JSON_OPTION,
  },
  run: runStatement,
};

export const traceCommand: Command = {
  summary: "the usage records of a request id, and their account",
  operand: "REQUEST_ID",
  operandHelp: "the X-Request-Id of a response",
  example: "billing trace req_0123456789abcdef0123456789abcdef",
  options: { json: JSON_OPTION },
  run: runTrace,
};
