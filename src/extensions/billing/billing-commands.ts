// `billing statement` and `billing trace`.
import { withCopiedBooks } from "../books/index.ts";
import { answer, table, type Run } from "../commands/terminal.ts";
import { statement, statementCsv } from "./statement.ts";

const STATEMENT_COLUMNS = [
  "model",
  "requests",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
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
  "completion_tokens",
  "cost",
  "currency",
  "ended_at",
  "usage_id",
] as const;

/** What an account owes for a month, by model; as CSV record by record. */
export const statementCommand: Run = withCopiedBooks(async ({ books, args, terminal }) => {
  const { store } = books;
  const { account = "", month = "", format = args.values.json ? "json" : "table" } = args.values;
  if (format === "csv") {
    const { currency } = args.values;
    const { print } = terminal;
    return await statementCsv(store, { filter: { account, month }, currency, print });
  }
  const currency = args.values.currency ?? books.currency;
  const bill = await statement(store, { account, month, currency });
  if (bill.total.requests === 0) terminal.say(`${account} has no usage records in ${month}`);
  for (const [other, requests] of Object.entries(bill.other_currencies))
    terminal.say(
      `warning: ${requests} requests were billed in ${other} and are not in these sums: ` +
        `--currency ${other} has them`,
    );
  const rows = table(STATEMENT_COLUMNS, [...bill.lines, { model: "total", ...bill.total }]);
  const text = `${account}, ${month}, in ${currency}\n${rows}`;
  return await answer({ ...args, values: { json: format === "json" } }, terminal, bill, text);
});

/** The usage records of a request id. They are printed in batches, because there may be many. */
export const traceCommand: Run = withCopiedBooks(async ({ books, args, terminal }) => {
  const { json } = args.values;
  const requestId = args.operand;
  let found = 0;
  if (json) await terminal.print(`{"gateway_request_id":${JSON.stringify(requestId)},"records":[`);
  for await (const records of books.store.records({ requestId })) {
    if (json) {
      const separator = found > 0 ? "," : "";
      await terminal.print(`${separator}${JSON.stringify(records).slice(1, -1)}`);
    } else {
      await terminal.print(table(TRACE_COLUMNS, records));
    }
    found += records.length;
  }
  if (json) await terminal.print("]}\n");
  if (found === 0)
    throw new Error(
      `no usage record has the gateway_request_id ${JSON.stringify(requestId)}: ` +
        "it is on its way, or no provider was called",
    );
});
