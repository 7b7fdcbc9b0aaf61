// Reads from the spend log how requests have ended that a worker held money for when it died.
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseSpendLine, readLines, segmentsIn } from "../books/index.ts";
import { parseMoney } from "../usage-records/index.ts";
import type { Outcome } from "./contracts.ts";

/** Digits of a spend id before its token: `sp_` and 8 of the gateway's. */
const TOKEN_AT = "sp_".length + 8;

export interface SettledQuery {
  /** The folder of the spend log. */
  readonly spendDir: string;
  /** As Opening.token. */
  readonly tokens: ReadonlySet<string>;
  /** Segments that were not written since this moment are left out, in milliseconds since 1970. */
  readonly since: number;
}

/** The outcomes of those that were settled, by their tokens. Rejects if the log cannot be read. */
export async function readSettled(query: SettledQuery): Promise<ReadonlyMap<string, Outcome>> {
  const { spendDir, tokens, since } = query;
  const outcomes = new Map<string, Outcome>();
  const paths = segmentsIn(spendDir).map((name) => join(spendDir, name));
  for (const path of paths.filter((each) => statSync(each).mtimeMs >= since)) {
    for await (const { lines } of readLines(path)) {
      for (const line of lines) {
        const settled = outcomeIn(line);
        if (settled && tokens.has(settled.token)) outcomes.set(settled.token, settled.outcome);
      }
    }
  }
  return outcomes;
}

function outcomeIn(line: string): { token: string; outcome: Outcome } | undefined {
  const record = parseSpendLine(line);
  if (record?.type !== "settle" || record.status === "interrupted") return undefined;
  const { spend_id, cost, usage } = record;
  const outcome = { cost: parseMoney(cost), tokens: usage.total_tokens };
  return { token: spend_id.slice(TOKEN_AT), outcome };
}
