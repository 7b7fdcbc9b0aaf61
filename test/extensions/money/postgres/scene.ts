// Books with usage records in a database, and lines of their spend log.

import type { TestContext } from "node:test";
import { gatewayInstanceId } from "../../../../src/extensions/scale/data-files/index.ts";
import * as postgres from "../../../../src/extensions/money/postgres/index.ts";
import type { UsageFilter, UsageRecord } from "../../../../src/extensions/money/records/index.ts";
import type { Line } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { PG_FOLDER } from "../../../support/postgres.ts";
import {
  createScene,
  request,
  type Scene,
  type SceneOptions,
} from "../../../support/written-books.ts";
import { within } from "../../../support/wait.ts";

export const NOON = "2026-01-31T12:00:00.000Z";

/** Books with records in a database. The store is closed when the test ends. */
export function scene(t: TestContext, store: string, options: SceneOptions = {}): Scene {
  const { dir = folder() } = options;
  // The package is resolved from the working directory.
  const cwd = process.cwd();
  process.chdir(PG_FOLDER);
  try {
    const extensions = [{ name: "postgres", ...postgres }];
    const at = createScene({ recovers: false, ...options, dir, store, extensions });
    t.after(() => within(at.books.store.close(), "the store to be closed"));
    const now = () => new Date(at.clock.now()).toISOString();
    return { ...at, other: (over) => scene(t, store, { ...options, dir, now: now(), ...over }) };
  } finally {
    process.chdir(cwd);
  }
}

/** The lines of a request, as the gateway of a data_dir writes them. */
export function own(at: Scene, n: number, time = NOON, over: Line = {}): Line[] {
  const spend_id = `sp_${gatewayInstanceId(at.dir).slice(0, 8)}${n.toString(16).padStart(24, "0")}`;
  return request(n, time, time, over).map((line) => ({ ...line, spend_id }));
}

/** 400 requests, numbered from `n`. */
export const lot = (at: Scene, n: number): Line[] =>
  Array.from({ length: 400 }, (_, index) => own(at, n + index)).flat();

export async function linesOf({ books }: Scene, day: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const { lines } of books.store.linesOf(day))
    texts.push(...lines.map(({ text }) => text));
  return texts;
}

export async function recordsOf({ books }: Scene, filter: UsageFilter): Promise<UsageRecord[]> {
  const found: UsageRecord[] = [];
  for await (const batch of books.store.records(filter)) found.push(...batch);
  return found;
}

export const idsOf = (records: readonly UsageRecord[]): number[] =>
  records.map(({ usage_id }) => Number.parseInt(usage_id.slice(-8), 16));
