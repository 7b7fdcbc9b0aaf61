// `usage/cursor.json`: how far the spend log was copied, and how many bytes of each open day count.
import { existsSync, readFileSync } from "node:fs";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { LogCursor } from "../records/index.ts";

/** What cursor.json says. */
export interface Cursor {
  /** How far the spend log was copied. */
  readonly segments: LogCursor;
  /** How many bytes of each open day count. */
  readonly days: Readonly<Record<string, number>>;
}

const EMPTY: Cursor = { segments: {}, days: {} };

/** Reads the file, which may not be there yet. Throws if it is not what a gateway writes. */
export function readCursor(path: string): Cursor {
  if (!existsSync(path)) return EMPTY;
  const { segments, days } = asObject(parseJson(readFileSync(path, "utf8")));
  const counts = Object.values(asObject(segments)).flatMap((segment) => {
    const { bytes, lines, unsettled } = asObject(segment);
    return [bytes, lines, unsettled];
  });
  const all = [...counts, ...Object.values(asObject(days))];
  if (!segments || !days || all.some((count) => asCount(count) === undefined))
    throw new Error(
      `${path} cannot be read: stop the gateway, restore data_dir, run 'books rebuild' and start ` +
        "again",
    );
  return { segments, days } as Cursor;
}

/** The same for a rebuild, which goes on from nothing if the file is broken. */
export function readCursorIfWhole(path: string): Cursor {
  try {
    return readCursor(path);
  } catch (error) {
    faultIn(error);
    return EMPTY;
  }
}

/**
 * What an error says of a file that makes no sense, and stays as it is. Throws what the system says
 * of a file: that may pass.
 */
export function faultIn(error: unknown): string {
  if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
  return (error as Error).message;
}
