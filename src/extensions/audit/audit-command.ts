// `audit`: proves the books. Exit code 1 and the differences if they are wrong.
import { JSON_OPTION, type Command } from "../../command-line/command.ts";
import { withLock } from "../data-files/index.ts";
import {
  bookSizes,
  BooksFault,
  copyShown,
  hasSpendLog,
  withBooks,
  withProgress,
  type BooksContext,
} from "../books/index.ts";
import { auditBooks, type AuditResult } from "./audit.ts";

/**
 * Compares all that can be compared, also if the usage records are so damaged that nothing can be
 * copied into them.
 */
const run = withBooks(async (context) => {
  const { books, args, terminal } = context;
  const faults = await copyOrExplain(context);
  const lock = { dir: books.spendDir, name: "books", clock: books.clock } as const;
  const sizes = bookSizes(context);
  const result = await withProgress(
    context,
    "audit",
    // The spend log is read a second time for what was never settled.
    () => 2 * sizes.spend + sizes.usage(),
    () => withLock(lock, () => auditBooks(books, faults)),
  );
  await terminal.answer(args, result, auditText(result, books.keepDays));
  return result.ok ? 0 : 1;
});

/** Copies what is settled by now. Resolves with why that is not possible. */
async function copyOrExplain(context: BooksContext): Promise<readonly string[]> {
  if (!hasSpendLog(context)) return [];
  try {
    await copyShown(context);
    return [];
  } catch (error) {
    if (!(error instanceof BooksFault)) throw error;
    return [error.message];
  }
}

/** The result for people. */
function auditText(result: AuditResult, keepDays: number): string {
  const { proved, retired, not_proved: rest } = result;
  const lines = [
    `settled ${result.settled} for ${costText(result.cost_settled)}; ` +
      `recorded ${result.recorded} for ${costText(result.cost_recorded)}; ` +
      `in flight ${result.in_flight}${heldText(result)}`,
    proved.requests > 0
      ? `proved: ${proved.requests} requests settled from ${proved.from} to ${proved.to}`
      : "proved: nothing, the spend log has no settled request that is in the usage records",
  ];
  if (retired.records > 0)
    lines.push(
      `proved by the sums of retired segments: ${retired.records} records ` +
        `from ${retired.from} to ${retired.to}`,
    );
  if (rest.records > 0)
    lines.push(
      `not proved: ${rest.records} usage records that ended from ${rest.from} to ${rest.to}: ` +
        `the spend log keeps ${keepDays} days and has nothing of them any more, ` +
        "and no sums of retired segments agree with them",
    );
  const verdict = result.ok
    ? "the books are right"
    : ["the books are wrong:", ...result.differences].join("\n  ");
  return [...lines, verdict, ""].join("\n");
}

/** Where nothing is in flight, nothing is held. */
const heldText = ({ held }: AuditResult): string => (held === "0" ? "" : `, with ${held} held`);

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
