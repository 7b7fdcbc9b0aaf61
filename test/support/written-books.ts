// Books whose spend log a test writes line by line, with a clock that the test moves.

import { existsSync, mkdirSync, readdirSync, readFileSync, appendFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../src/core/config.ts";
import { install } from "../../src/core/extension/install.ts";
import type { Extension } from "../../src/core/extension/installer.ts";
import type { UsageRecord } from "../../src/extensions/money/records/index.ts";
import { copySettled, openBooks, type SyncResult } from "../../src/extensions/money/usage/index.ts";
import { linesOf, openLine, settleLine, spendId, textOf, usageFile, type Line } from "./books.ts";
import { createFakeClock } from "./fake-clock.ts";
import { folder } from "./folder.ts";

export const DAY_MS = 86_400_000;

export interface SceneOptions {
  /** The data_dir. Absent: a new one. */
  readonly dir?: string;
  /** The time at which the clock starts. Absent: noon of 2026-01-31, UTC. */
  readonly now?: string;
  /** The value of `usage.store`. Absent: files. */
  readonly store?: string;
  readonly extensions?: readonly Extension[];
  readonly keepDays?: number;
  /** As in BooksFiles.recovers. Absent: true, so all segments count as those of dead processes. */
  readonly recovers?: boolean;
}

export type Scene = ReturnType<typeof openScene> & {
  /** The same data_dir opened by another process. */
  other(options?: SceneOptions): Scene;
};

export function createScene(options: SceneOptions = {}): Scene {
  const scene = openScene(options);
  const { dir, clock } = scene;
  const other = (over: SceneOptions = {}) =>
    createScene({ ...options, dir, now: new Date(clock.now()).toISOString(), ...over });
  return { ...scene, other };
}

function openScene(options: SceneOptions) {
  const { dir = folder({ inMemory: true }), now = "2026-01-31T12:00:00.000Z" } = options;
  const { store = "file", extensions = [], keepDays = 400, recovers = true } = options;
  const clock = createFakeClock(Date.parse(now));
  const events: Record<string, unknown>[] = [];
  const spendDir = join(dir, "spend");
  mkdirSync(spendDir, { recursive: true });
  const config = {
    data_dir: dir,
    currency: "USD",
    usage: { store },
    spend: { keep_days: keepDays },
  };
  const books = openBooks(config as unknown as Config, {
    clock,
    diagnose: (event) => events.push(event as Record<string, unknown>),
    installed: install(extensions),
    recovers,
  });
  /** Runs a pass of the usage sync. */
  const pass = (): Promise<SyncResult> => copySettled(books);
  /** The path of a segment. */
  const segment = (name: string): string => join(spendDir, name);
  return {
    dir,
    clock,
    books,
    /** The diagnostics. */
    events,
    pass,
    /** Moves the clock to a time in steps of at most a day, with a pass after each step. */
    async passUntil(time: string): Promise<void> {
      for (let left = Date.parse(time) - clock.now(); left > 0; ) {
        const step = Math.min(left, DAY_MS);
        clock.advance(step);
        left -= step;
        await pass();
      }
    },
    /** Appends lines to a segment. */
    write(name: string, ...lines: readonly (Line | string)[]): void {
      appendFileSync(segment(name), textOf(lines));
    },
    segment,
    /** The text of a day's file of usage records. */
    dayFile: (day: string) => readFileSync(usageFile(dir, day), "utf8"),
    /** The lines of days.jsonl. */
    closed: () => (existsSync(join(dir, "days.jsonl")) ? linesOf(join(dir, "days.jsonl")) : []),
    /** All records of the store. */
    async records(): Promise<UsageRecord[]> {
      const found: UsageRecord[] = [];
      for await (const batch of books.store.records({})) found.push(...batch);
      return found;
    },
  };
}

/** The lines of a request that began at a time, and ended at the same or another. */
export function request(n: number, began: string, ended = began, over: Line = {}): [Line, Line] {
  const duration_ms = Date.parse(ended) - Date.parse(began);
  const { gateway_request_id = `request ${n}`, account = "acme" } = over;
  return [
    openLine(n, { time: began, gateway_request_id, account }),
    settleLine(n, { time: ended, duration_ms, ...over }),
  ];
}

/** The numbers of requests, from the usage_ids of their records. */
export const numbersOf = (records: readonly { readonly usage_id: string }[]): number[] =>
  records.map(({ usage_id }) => Number.parseInt(usage_id.slice(3), 16));

/** Sums as JSON texts, sorted. */
export const sumTexts = (sums: readonly object[]): string[] =>
  sums
    .map((sum) =>
      JSON.stringify(sum, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    )
    .sort();

/** The contents of all files below a folder, by their paths. */
export function snapshot(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile());
  return Object.fromEntries(
    files
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
      .map((path) => [path.slice(dir.length + 1), readFileSync(path, "utf8")]),
  );
}

export { spendId };
