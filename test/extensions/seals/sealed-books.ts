// Sealed books of several days, written by the real ledger on a clock that tests move.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createBooks, type Books } from "../../../src/extensions/books/index.ts";
import type { Settlement } from "../../../src/core/ledger/ledger.ts";
import { allExtensions, checkConfig } from "../../support/config.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { configFile } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { runHere } from "../../support/run-here.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** When the first of the days begins. */
export const FIRST_DAY = Date.parse("2026-03-02T00:00:00.000Z");

export interface SealedBooks {
  readonly dir: string;
  readonly clock: FakeClock;
  /** The configuration's file, for commands. */
  readonly config: string;
  /** What was reported so far. */
  readonly events: Record<string, unknown>[];
  /** Opens the books as a gateway does, and closes them when the work is done. */
  serve(work: (books: Books) => Promise<void>): Promise<void>;
  /** So many requests of each account, settled at once, in a gateway of their own. */
  requests(count: number, accounts?: readonly string[]): Promise<void>;
  /** Runs a command on these books. */
  command(...args: string[]): ReturnType<typeof runHere>;
  /** `seal verify` of the data_dir, without any configuration. */
  verify(
    ...args: string[]
  ): Promise<{ readonly ok: boolean; readonly findings: string[] } & Record<string, any>>;
}

export function settlement(tokens: number): Settlement {
  return {
    status: "completed",
    httpStatus: 200,
    errorCode: null,
    finishReason: "stop",
    attempts: [{ model: "m", provider: "lab", outcome: "completed", duration_ms: 5 }],
    firstTokenMs: 3,
    modelServed: tokens % 2 === 0 ? "even" : "odd",
    provider: "lab",
    usage: {
      prompt_tokens: tokens,
      completion_tokens: 2 * tokens,
      total_tokens: 3 * tokens,
      prompt_cache_hit_tokens: 0,
      prompt_cache_miss_tokens: tokens,
      // Every third request has written to a cache.
      prompt_tokens_details: {
        cached_tokens: 0,
        ...(tokens % 3 === 0 && { cache_write_tokens: tokens }),
      },
      completion_tokens_details: { reasoning_tokens: 0 },
    } as Settlement["usage"],
    usageSource: "provider",
    cost: `0.${String(tokens).padStart(6, "0")}1`,
    currency: "USD",
  };
}

/** Opens a request and settles it. */
export async function settleOne(books: Books, account: string, tokens: number): Promise<void> {
  const entry = books.open({
    requestId: `request ${tokens} — ${account}`,
    account,
    keyId: "key_0123456789abcdef",
    modelRequested: "m",
    stream: false,
  });
  await entry.opened;
  await entry.settle(settlement(tokens));
}

/** `over`: further settings. */
export function sealedBooks(over: object = {}): SealedBooks {
  const dir = folder();
  const json = demo({
    data_dir: dir,
    seals: { enabled: true },
    usage: { sync_ms: 3_600_000 },
    ...over,
  });
  const config = checkConfig(json, {});
  const clock = createFakeClock(FIRST_DAY + 12 * HOUR);
  const events: Record<string, unknown>[] = [];
  const diagnose = (event: object): void => {
    events.push(event as Record<string, unknown>);
  };
  let tokens = 0;
  const serve: SealedBooks["serve"] = async (work) => {
    const books = createBooks(config, { clock, diagnose, extensions: allExtensions });
    await books.start();
    await work(books);
    await books.close();
  };
  const file = configFile(json);
  return {
    dir,
    clock,
    config: file,
    events,
    serve,
    requests: (count, accounts = ["acme", "beta"]) =>
      serve(async (books) => {
        for (let index = 0; index < count; index += 1)
          for (const account of accounts) {
            tokens += 1;
            await settleOne(books, account, tokens);
          }
      }),
    command: (...args) => runHere([...args, "--config", file]),
    async verify(...args) {
      const { code, stdout, stderr } = await runHere(["seal", "verify", dir, "--json", ...args]);
      if (stdout === "") throw new Error(stderr);
      const result = JSON.parse(stdout);
      if (result.ok !== (code === 0)) throw new Error(`exit ${code} of ${stdout}`);
      return result;
    },
  };
}

/** Books of three days, each with so many requests of two accounts, the first two closed. */
export async function threeDays(count = 4, over: object = {}): Promise<SealedBooks> {
  const books = sealedBooks(over);
  for (let day = 0; day < 3; day += 1) {
    await books.requests(count);
    if (day < 2) books.clock.advance(23 * HOUR);
  }
  return books;
}

export const filesOf = (dir: string, folderName: string): string[] =>
  readdirSync(join(dir, folderName))
    .map((name) => join(folderName, name))
    .sort();

export const textOfFile = (dir: string, file: string): string =>
  readFileSync(join(dir, file), "utf8");
