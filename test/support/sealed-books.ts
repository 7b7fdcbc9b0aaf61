// Books of three days, two of which are closed and signed, and functions that corrupt them.

import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSigner } from "../../src/extensions/money/seals/sign.ts";
import type { Extension } from "../../src/core/extension/installer.ts";
import { signerSlot } from "../../src/extensions/money/usage/index.ts";
import type { BooksToProve } from "../../src/extensions/money/proof/index.ts";
import { verifyBooks } from "../../src/extensions/money/seals/verify.ts";
import { configFile, openLine, textOf } from "./books.ts";
import { folder } from "./folder.ts";
import { demo } from "./gateway.ts";
import { runHere } from "./run-here.ts";
import { createScene, request, type Scene } from "./written-books.ts";

/** Signs the lines of days, as `seals.enabled` does. */
export const signing: Extension = {
  name: "signing",
  install: (gateway) => gateway.fill(signerSlot, (_config, dataDir) => createSigner(dataDir)),
};

/** The segments of a gateway with two workers. A is continued after midnight. */
export const A = "2026-01-31.0001.jsonl";
export const B = "2026-01-31.0002.jsonl";
export const C = "2026-02-01.0001.jsonl";
export const D = "2026-02-02.0001.jsonl";
export const E = "2026-02-02.0002.jsonl";

const at = (day: string, second: number): string =>
  new Date(Date.parse(`${day}T12:00:00.000Z`) + second * 1000).toISOString();

const ACCOUNTS = ["acme", "beta"];

/** The lines of six requests, of which three are open at the same time. */
function overlapping(day: string, first: number): object[] {
  const pairs = Array.from({ length: 6 }, (_, index) => {
    const n = first + index;
    const over = { account: ACCOUNTS[n % 2]! };
    return request(n, at(day, n), at(day, n + 3), over);
  });
  return pairs
    .flatMap(([open], index) => {
      const settled = pairs[index - 2]?.[1];
      return settled ? [open, settled] : [open];
    })
    .concat(pairs.slice(-2).map(([, settle]) => settle));
}

/** Closed: 2026-01-31 and 2026-02-01. Open: 2026-02-02. `over`: further options of the scene. */
export async function threeDays(over: Parameters<typeof createScene>[0] = {}): Promise<Scene> {
  const scene = createScene({ extensions: [signing], recovers: false, ...over });
  scene.write(A, ...overlapping("2026-01-31", 1));
  await scene.pass();
  scene.write(B, ...overlapping("2026-01-31", 11));
  // The second request ends on the next day, and its line precedes lines of the day that closes.
  scene.write(A, ...request(7, at("2026-01-31", 7), "2026-01-31T23:59:59.999Z"));
  scene.write(A, ...request(8, "2026-01-31T23:59:58.000Z", "2026-02-01T00:00:01.000Z"));
  await scene.passUntil("2026-02-01T00:01:00.000Z");
  // This request is written after its day was closed.
  scene.write(B, ...request(17, at("2026-01-31", 17)));
  scene.write(C, ...overlapping("2026-02-01", 21));
  await scene.passUntil("2026-02-02T12:01:00.000Z");
  scene.write(E, ...overlapping("2026-02-02", 41));
  await scene.pass();
  scene.write(D, ...overlapping("2026-02-02", 31));
  await scene.pass();
  scene.write(E, ...request(47, at("2026-02-02", 47)));
  await scene.pass();
  scene.write(D, openLine(99, { time: at("2026-02-02", 99) }));
  await scene.pass();
  return scene;
}

/** Copies a data_dir without its sockets. */
export function copyOf(dir: string): string {
  const copy = folder({ inMemory: true });
  cpSync(dir, copy, { recursive: true, filter: (path) => !path.endsWith(".sock") });
  return copy;
}

/** The findings of a verification of a data_dir, by default with its own public key. */
export async function findingsIn(
  dir: string,
  options: Partial<BooksToProve> & { publicKey?: string; keptLines?: readonly string[] } = {},
): Promise<readonly string[]> {
  const { keptLines = [], publicKey = publicKeyOf(dir), ...others } = options;
  const books = { dataDir: dir, records: "files" as const, ...others };
  return (await verifyBooks(books, { publicKey, keptLines })).result.findings;
}

export const publicKeyOf = (dir: string): string => createSigner(dir).publicHex;

export const textOfFile = (dir: string, file: string): string =>
  readFileSync(join(dir, file), "utf8");

/** Changes the lines of a file. */
export function edit(dir: string, file: string, change: (lines: string[]) => string[]): void {
  const lines = textOfFile(dir, file).split("\n").slice(0, -1);
  writeFileSync(join(dir, file), textOf(change(lines)));
}

/** Deletes segments, as the usage sync does after `spend.keep_days`. */
export function retire(dir: string, names: readonly string[]): void {
  const file = "usage/cursor.json";
  const cursor = JSON.parse(textOfFile(dir, file));
  for (const name of names) {
    rmSync(join(dir, "spend", name));
    delete cursor.segments[name];
  }
  writeFileSync(join(dir, file), `${JSON.stringify(cursor)}\n`);
}

/** Runs a command on a data_dir. */
export async function command(dir: string, args: readonly string[], over: object = {}) {
  const settings = { seals: { enabled: true }, spend: { keep_days: 36_500 } };
  const config = configFile(demo({ data_dir: dir, ...settings, ...over }));
  return await runHere([...args, "--config", config]);
}
