// `usage/cursor.json`: how far the spend log was copied, and how many bytes of each open day count.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { replaceFile } from "../../scale/data-files/index.ts";
import { BooksFault, MENDING } from "../days/index.ts";
import type { LogCursor } from "../records/index.ts";

/** What cursor.json says. */
export interface Cursor {
  /** How far the spend log was copied. */
  readonly segments: LogCursor;
  /** How many bytes of each open day count. */
  readonly days: Readonly<Record<string, number>>;
}

/** Reads the file, which may not be there yet. Throws a BooksFault if it makes no sense. */
export function readCursor(path: string): Cursor {
  if (!existsSync(path)) return { segments: {}, days: {} };
  const { segments, days } = asObject(parseJson(readFileSync(path, "utf8")));
  const counts = Object.values(asObject(segments)).flatMap((segment) => {
    const { bytes, lines, unsettled } = asObject(segment);
    return [bytes, lines, unsettled];
  });
  const all = [...counts, ...Object.values(asObject(days))];
  if (!segments || !days || all.some((count) => asCount(count) === undefined))
    throw new BooksFault(`${path} cannot be read: ${MENDING}`);
  return { segments, days } as Cursor;
}

/** The same for a rebuild, which goes on from nothing if the file makes no sense. */
export function readCursorIfWhole(path: string): Cursor {
  try {
    return readCursor(path);
  } catch (error) {
    if (error instanceof BooksFault) return { segments: {}, days: {} };
    throw error;
  }
}

export async function writeCursor(path: string, cursor: Cursor): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(cursor)}\n`);
}
