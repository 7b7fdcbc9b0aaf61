// `audit`: proves that the books are complete and right. If not, prints the differences and exits
// with 1.
import { formatMoney } from "../../../core/ledger/price.ts";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { BooksFault, copySettled, hasFileStore, type UnsettledRequest } from "../usage/index.ts";
import {
  bookSizes,
  hasSpendLog,
  withBooks,
  withProgress,
  type BooksContext,
} from "../books/index.ts";
import { AMOUNT, costsByCurrency, parseMoney, type Summer } from "../records/index.ts";
import {
  createFindings,
  proveBooks,
  readDayLines,
  type Findings,
  type RecordSpan,
} from "../proof/index.ts";
import { checkKeptSums } from "./kept-sums.ts";

/** What an audit found. `audit --json` prints it. */
export interface AuditResult {
  /** Whether there is no difference. */
  readonly ok: boolean;
  /** Requests in the spend log. */
  readonly settled: number;
  /** Usage records that they are compared with. */
  readonly recorded: number;
  /** Requests that are opened and not settled yet. */
  readonly in_flight: number;
  /** What is held for them of budgets: an exact decimal. */
  readonly held: string;
  /** Exact decimals by currency. */
  readonly cost_settled: Readonly<Record<string, string>>;
  /** Exact decimals by currency. */
  readonly cost_recorded: Readonly<Record<string, string>>;
  /** Requests that are in the usage records once, as they were settled. */
  readonly proved: {
    readonly requests: number;
    readonly from: string | null;
    readonly to: string | null;
  };
  /** Usage records without lines in the spend log that the lines of closed days prove. */
  readonly retired: RecordSpan;
  /** Usage records that neither lines in the spend log nor a line of a closed day prove. */
  readonly not_proved: RecordSpan;
  /** Sentences for the operator, at most some 10,000. Empty: the books are proved. */
  readonly differences: readonly string[];
}

const run = withBooks(async (context) => {
  const { books, args, terminal } = context;
  const findings = createFindings();
  try {
    if (hasSpendLog(context)) await copySettled(context.books);
  } catch (error) {
    if (!(error instanceof BooksFault)) throw error;
    findings.add("the books", error.message);
  }
  const sizes = bookSizes(context);
  const result = await withProgress(
    context,
    "audit",
    () => 2 * (sizes.spend + sizes.usage()),
    () => books.locked(() => auditBooks(context, findings)),
  );
  await terminal.answer(args, result, auditText(result));
  return result.ok ? 0 : 1;
});

async function auditBooks(
  { books, config }: BooksContext,
  findings: Findings,
): Promise<AuditResult> {
  const { dataDir, store, days, retention } = books;
  for (const { detail } of await store.inspect()) findings.add("the usage records", detail);
  const {
    segments,
    days: proved,
    totals,
  } = await proveBooks({
    dataDir,
    dayLines: readDayLines(days.path, findings),
    records: hasFileStore(config) ? "files" : store,
    mayBeGone: retention.isExpired,
    findings,
  });
  await checkKeptSums(store, proved ?? [], findings);
  const unsettled = [...segments.values()].flatMap((segment) => segment.unsettled);
  const differences = findings.list();
  const { records, from, to } = totals.equal;
  return {
    ok: differences.length === 0,
    settled: countOf(totals.settled),
    recorded: countOf(totals.recorded),
    in_flight: unsettled.length,
    held: formatMoney(heldFor(unsettled)),
    cost_settled: costsByCurrency(totals.settled.sums()),
    cost_recorded: costsByCurrency(totals.recorded.sums()),
    proved: { requests: records, from, to },
    retired: totals.retired,
    not_proved: totals.notProved,
    differences,
  };
}

const countOf = (summer: Summer<"currency">): number =>
  summer.sums().reduce((count, { requests }) => count + requests, 0);

/** The sum of the holds of requests, in pico-units. Skips a hold that is not an amount. */
function heldFor(requests: readonly UnsettledRequest[]): bigint {
  return requests.reduce(
    (sum, { hold = "0" }) => sum + (AMOUNT.test(hold) ? parseMoney(hold) : 0n),
    0n,
  );
}

/** The result for people. */
function auditText(result: AuditResult): string {
  const { proved, retired, not_proved: rest, held } = result;
  const lines = [
    `settled ${result.settled} for ${costText(result.cost_settled)}; ` +
      `recorded ${result.recorded} for ${costText(result.cost_recorded)}; ` +
      `in flight ${result.in_flight}${held === "0" ? "" : `, with ${held} held`}`,
    proved.requests > 0
      ? `proved: ${proved.requests} requests settled from ${proved.from} to ${proved.to}`
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
    : ["the books are wrong:", ...result.differences].join("\n  ");
  return [...lines, verdict, ""].join("\n");
}

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
