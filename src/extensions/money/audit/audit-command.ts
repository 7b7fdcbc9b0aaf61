// `audit`: proves that the books are complete and right. If not, prints the differences and exits
// with 1.
import { formatMoney } from "../../../core/ledger/price.ts";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { BooksFault, copySettled } from "../usage/index.ts";
import { hasSpendLog, withBooks, type BooksContext } from "../books/index.ts";
import {
  AMOUNT,
  costsByCurrency,
  DIMENSIONS,
  parseMoney,
  sumsText,
  type Dimension,
  type SumBy,
  type UsageStore,
} from "../records/index.ts";
import {
  booksToProve,
  createFindings,
  proveBooks,
  type DayProof,
  type Findings,
  type RecordSpan,
} from "../proof/index.ts";

const run = withBooks(async (context) => {
  const { books, args, terminal } = context;
  const findings = createFindings();
  try {
    if (hasSpendLog(context)) await copySettled(context.books);
  } catch (error) {
    if (!(error instanceof BooksFault)) throw error;
    findings.add("the books", error.message);
  }
  const { result, text } = await books.locked(() => auditBooks(context, findings));
  await terminal.answer(args, result, text);
  return result.ok ? 0 : 1;
});

/** What an audit found, for programs and for people. */
async function auditBooks(context: BooksContext, findings: Findings) {
  const { store } = context.books;
  for (const { detail } of await store.inspect()) findings.add("the usage records", detail);
  const { segments, days = [] } = await proveBooks(booksToProve(context), findings);
  await checkKeptSums(store, days, findings);
  const holds = [...segments.values()].flatMap(({ unsettled }) => unsettled.map(heldFor));
  const settled = days.flatMap((day) => day.settled.sums());
  const recorded = days.flatMap((day) => day.recorded.sums());
  const isRetired = ({ closed, isProved }: DayProof): boolean => closed !== undefined && isProved;
  const differences = findings.list();
  const { records: requests, from, to } = spanOver(days.map((day) => day.unchanged));
  const result = {
    ok: differences.length === 0,
    // Requests in the spend log, and usage records that they are compared with.
    settled: countOf(settled),
    recorded: countOf(recorded),
    in_flight: holds.length,
    held: formatMoney(holds.reduce((sum, hold) => sum + hold, 0n)),
    cost_settled: costsByCurrency(settled),
    cost_recorded: costsByCurrency(recorded),
    // Requests that are in the usage records once, as they were settled.
    proved: { requests, from, to },
    // Usage records without lines in the spend log: those that the lines of closed days prove, and
    // those that nothing proves.
    retired: spanOver(days.filter(isRetired).map((day) => day.left)),
    not_proved: spanOver(days.filter((day) => !isRetired(day)).map((day) => day.left)),
    differences,
  };
  const { retired, not_proved: rest, held } = result;
  const lines = [
    `settled ${result.settled} for ${costText(result.cost_settled)}; ` +
      `recorded ${result.recorded} for ${costText(result.cost_recorded)}; ` +
      `in flight ${result.in_flight}${held === "0" ? "" : `, with ${held} held`}`,
    requests > 0
      ? `proved: ${requests} requests settled from ${from} to ${to}`
      : "proved: nothing, the spend log has no settled request that is in the usage records",
  ];
  if (retired.records > 0)
    lines.push(
      `proved by the lines of closed days: ${retired.records} records ` +
        `from ${retired.from} to ${retired.to}, whose segments are deleted`,
    );
  if (rest.records > 0)
    lines.push(
      `not proved: ${rest.records} usage records that ended from ${rest.from} to ${rest.to}: ` +
        "the spend log has nothing of them any more, and no line of a closed day proves them",
    );
  const verdict = result.ok
    ? "the books are right"
    : ["the books are wrong:", ...differences].join("\n  ");
  return { result, text: [...lines, verdict, ""].join("\n") };
}

/** What is held for a request, in pico-units. 0: nothing, or what is no amount. */
const heldFor = ({ hold = "0" }): bigint => (AMOUNT.test(hold) ? parseMoney(hold) : 0n);

const countOf = (sums: readonly SumBy<"currency">[]): number =>
  sums.reduce((count, { requests }) => count + requests, 0);

function spanOver(spans: readonly RecordSpan[]): RecordSpan {
  const times = spans.flatMap(({ from, to }) => [from, to]).filter((time) => time !== null);
  times.sort();
  const records = spans.reduce((sum, span) => sum + span.records, 0);
  return { records, from: times[0] ?? null, to: times.at(-1) ?? null };
}

/**
 * Reports the closed days whose stored sums, which statements and budgets read, do not match their
 * records.
 */
async function checkKeptSums(
  store: UsageStore,
  days: readonly DayProof[],
  findings: Findings,
): Promise<void> {
  for (const { day, closed, sums } of days) {
    if (!closed || closed.records === 0) continue;
    try {
      const kept = await store.sums({ day, ownOnly: true }, DIMENSIONS);
      if (textOf(kept) === textOf(sums)) continue;
      const what = "are not those of its usage records: 'books rebuild' makes them anew";
      findings.add(`the sums of ${day}`, what);
    } catch (error) {
      findings.add(`the sums of ${day}`, `cannot be compared: ${(error as Error).message}`);
    }
  }
}

const textOf = (sums: readonly SumBy<Dimension>[]): string =>
  sums
    .map((sum) => sumsText([sum]))
    .sort()
    .join("");

const costText = (costs: Readonly<Record<string, string>>): string =>
  Object.entries(costs)
    .map(([currency, cost]) => `${cost} ${currency}`)
    .join(", ") || "0";

export const auditCommand: Command = {
  summary: "prove that the books are right",
  example: "audit --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
