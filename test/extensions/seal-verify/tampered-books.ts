// Sealed books of three days, of which two are closed, with all heads that an auditor may have
// kept; and copies of them in which somebody has changed something.

import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publicHexOf } from "../../../src/extensions/seals/heads/seal-key.ts";
import {
  verifyBooks,
  type Verification,
} from "../../../src/extensions/seal-verify/verify-books.ts";
import { folder } from "../../support/folder.ts";
import { runHere } from "../../support/run-here.ts";
import { threeDays } from "../seals/sealed-books.ts";

export const MONTH = "usage/2026-03.jsonl";

/** A copy of the books while it is changed. */
export interface Copy {
  readonly dir: string;
  read(file: string): string;
  write(file: string, text: string): void;
  remove(file: string): void;
  rename(from: string, to: string): void;
  /** Changes each line of a file. Undefined: the line is removed. */
  lines(file: string, change: (line: string, number: number) => string | undefined): void;
  /** Changes usage/cursor.json. */
  cursor(change: (cursor: any) => void): void;
  /** Lets usage/cursor.json count all of a month. `rewritten`: written anew so many times. */
  count(rewritten?: number): void;
}

export interface KeptBooks {
  readonly dir: string;
  /** The verification of a copy that was changed. */
  after(change: (copy: Copy) => void): Promise<Verification>;
  /** The findings of it. */
  findings(change: (copy: Copy) => void): Promise<readonly string[]>;
  /** What the command prints of such a copy, and how it exits. */
  printed(
    change: (copy: Copy) => void,
  ): Promise<{ readonly code: number | null; readonly text: string }>;
}

export async function keptBooks(): Promise<KeptBooks> {
  const books = await threeDays(2);
  const print = async (...args: string[]): Promise<string> => (await books.command(...args)).stdout;
  const pem = await print("seal", "public-key");
  const publicKey = publicHexOf(pem);
  const closed = readFileSync(join(books.dir, "seals/heads.jsonl"), "utf8");
  const kept = `${closed}${await print("seal", "head")}`.trimEnd().split("\n");
  const outside = folder();
  writeFileSync(join(outside, "key.pem"), pem);
  writeFileSync(join(outside, "heads.jsonl"), `${kept.join("\n")}\n`);

  function copyWith(change: (copy: Copy) => void): string {
    const dir = join(folder({ inMemory: true }), "data");
    cpSync(books.dir, dir, { recursive: true });
    change(copyIn(dir));
    return dir;
  }

  async function after(change: (copy: Copy) => void): Promise<Verification> {
    const dir = copyWith(change);
    const result = await verifyBooks(dir, { publicKey, kept });
    rmSync(dir, { recursive: true });
    return result;
  }

  return {
    dir: books.dir,
    after,
    findings: async (change) => (await after(change)).findings,
    async printed(change) {
      const dir = copyWith(change);
      const trust = [
        "--public-key",
        join(outside, "key.pem"),
        "--head",
        join(outside, "heads.jsonl"),
      ];
      const { code, stdout } = await runHere(["seal", "verify", dir, ...trust]);
      return { code, text: stdout };
    },
  };
}

function copyIn(dir: string): Copy {
  const read = (file: string): string => readFileSync(join(dir, file), "utf8");
  const write = (file: string, text: string): void => writeFileSync(join(dir, file), text);
  const cursor: Copy["cursor"] = (change) => {
    const json = JSON.parse(read("usage/cursor.json"));
    change(json);
    write("usage/cursor.json", JSON.stringify(json));
  };
  return {
    dir,
    read,
    write,
    cursor,
    remove: (file) => rmSync(join(dir, file)),
    rename: (from, to) => renameSync(join(dir, from), join(dir, to)),
    lines(file, change) {
      const lines = read(file).split("\n").slice(0, -1);
      const changed = lines.map((line, at) => change(line, at + 1));
      write(file, changed.flatMap((line) => (line === undefined ? [] : [`${line}\n`])).join(""));
    },
    count(rewritten) {
      cursor((json) => {
        json.months["2026-03"] = Buffer.byteLength(read(MONTH));
        if (rewritten !== undefined) json.rewritten = { "2026-03": rewritten };
      });
    },
  };
}
