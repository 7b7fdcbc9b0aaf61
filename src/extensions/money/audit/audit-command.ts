// `audit`: proves that the books are complete and right. If they are not, it prints the differences
// and exits with 1.
import { formatMoney } from "../../../core/ledger/price.ts";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { BooksFault, copySettled } from "../usage/index.ts";
import { assertSpendLog, withBooks, type BooksContext } from "../books/index.ts";
import {
  AMOUNT,
  DIMENSIONS,
  parseMoney,
  sumsText,
  type Dimension,
  type SumBy,
  type UsageStore,
} from "../records/index.ts";
import {
  booksToProve,
  costsOf,
  createFindings,
  proveBooks,
  totalIn,
  type DayProof,
  type Findings,
} from "../proof/index.ts";

const run = withBooks(async (context) => {
  const { books, args, terminal } = context;
  const findings = createFindings();
  try {
    assertSpendLog(context);
    for (const { detail } of await books.store.inspect()) findings.add("the usage records", detail);
    await copySettled(books);
  } catch (error) {
    if (!(error instanceof BooksFault)) throw error;
    findings.add("the books", error.message);
  }
  const result = await books.locked(() => auditBooks(context, findings));
  await terminal.printResult(args, result, textOf(result));
  return result.ok ? 0 : 1;
});

/** The result of an audit, as `audit --json` prints it. */
async function auditBooks(context: BooksContext, findings: Findings) {
  const { store } = context.books;
  const { segments, days = [] } = await proveBooks(booksToProve(context), findings);
  await checkKeptSums(store, days, findings);
  const requests = [...segments.values()].flatMap(({ unsettled }) => unsettled);
  const held = requests.reduce((sum, { hold }) => sum + amountOf(hold), 0n);
  const settled = totalIn(days, "same", "changed", "missing");
  const recorded = totalIn(days, "same", "changedRecords", "inserted");
  const isRetired = ({ closed, matchesLine }: DayProof) => closed !== undefined && matchesLine;
  const rest = days.filter((day) => !isRetired(day));
  const { records: proved, ...span } = spanOf(days, "same");
  const differences = findings.list();
  return {
    ok: differences.length === 0,
    // Requests in the spend log, and the usage records with which they are compared.
    settled: settled.records,
    recorded: recorded.records,
    in_flight: requests.length,
    held: formatMoney(held),
    cost_settled: costsOf(settled),
    cost_recorded: costsOf(recorded),
    // Requests whose usage record is as they were settled.
    proved: { requests: proved, ...span },
    // Usage records without lines in the spend log: `retired` ones are proved by closed days.
    retired: spanOf(days.filter(isRetired), "unlogged"),
    not_proved: spanOf(rest, "unlogged"),
    differences,
  };
}

/** The hold of a request in pico-units. 0: it has none, or it is malformed. */
const amountOf = (hold = "0"): bigint => (AMOUNT.test(hold) ? parseMoney(hold) : 0n);

/** How many records have this verdict, and when the first and the last of them ended. */
function spanOf(days: readonly DayProof[], verdict: "same" | "unlogged") {
  const { records, from, to } = totalIn(days, verdict);
  return { records, from, to };
}

/** The result of an audit as text. */
function textOf(result: Awaited<ReturnType<typeof auditBooks>>): string {
  const { proved, retired, not_proved: rest, held } = result;
  const lines = [
    `settled ${result.settled} for ${costText(result.cost_settled)}; ` +
      `recorded ${result.recorded} for ${costText(result.cost_recorded)}; ` +
      `in flight ${result.in_flight}${held === "0" ? "" : `, with ${held} held`}`,
    `proved: ${proved.requests} requests settled from ${proved.from ?? "-"} to ${proved.to ?? "-"}`,
  ];
  // Without lines in the spend log: their segments are deleted or lost.
  const others = [
    ["proved by the lines of closed days", retired],
    ["not proved", rest],
  ] as const;
  for (const [what, { records, from, to }] of others)
    if (records > 0) lines.push(`${what}: ${records} records from ${from} to ${to}`);
  const verdict = result.ok ? "the books are right" : "the books are wrong:";
  return `${[...lines, [verdict, ...result.differences].join("\n  ")].join("\n")}\n`;
}

/**
 * Reports the days whose stored sums, which statements and budgets read, do not match their
 * records. In a database, open days have some too.
 */
async function checkKeptSums(
  store: UsageStore,
  days: readonly DayProof[],
  findings: Findings,
): Promise<void> {
  for (const { day, closed, sums } of days) {
    if (closed?.records === 0) continue;
    try {
      const kept = await store.sums({ day, ownOnly: true }, DIMENSIONS);
      if (inOrder(kept) === inOrder(sums)) continue;
      const what = "are not those of its usage records: 'books rebuild' makes them anew";
      findings.add(`the sums of ${day}`, what);
    } catch (error) {
      findings.add(`the sums of ${day}`, `cannot be compared: ${(error as Error).message}`);
    }
  }
}

const inOrder = (sums: readonly SumBy<Dimension>[]): string =>
  sums
    .map((sum) => sumsText([sum]))
    .sort()
    .join("");

const costText = (costs: Readonly<Record<string, string>>): string =>
  Object.entries(costs)
    .map(([currency, cost]) => `${cost} ${currency}`)
    .join(", ") || "0";

export const auditCommand: Command = {
  summary: "prove that the books are complete and correct",
  example: "audit --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
