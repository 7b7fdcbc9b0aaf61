// The files of months as heads know them: what was added since the head before, byte for byte, and
// so the order of the lines.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createMonthFiles } from "../../books/index.ts";
import type { HeadLine, HeadMonth } from "./heads.ts";

const NEWLINE = 10;

/** Where a range is, and how many lines stand before it and in it. */
interface RangeContent {
  readonly sha256: string;
  readonly lines: number;
}

/** Reads the bytes of a file from the one place to the other. */
export async function readRange(path: string, from: number, to: number): Promise<RangeContent> {
  const digest = createHash("sha256");
  let lines = 0;
  if (to > from) {
    for await (const chunk of createReadStream(path, { start: from, end: to - 1 })) {
      const bytes = chunk as Buffer;
      digest.update(bytes);
      for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1))
        lines += 1;
    }
  }
  return { sha256: digest.digest("hex"), lines };
}

/** What was added to the months in a folder since the last of some heads. */
export async function addedToMonths(
  dir: string,
  heads: readonly HeadLine[],
): Promise<readonly HeadMonth[]> {
  const files = createMonthFiles(dir);
  if (!files.hasCursor()) return [];
  const cursor = files.readCursor();
  const added: HeadMonth[] = [];
  for (const [month, to] of [...cursor.months].sort()) {
    const rewritten = cursor.rewritten.get(month) ?? 0;
    const from = rangesOf(heads, month, rewritten).at(-1)?.to ?? 0;
    if (to <= from) continue;
    const { sha256 } = await readRange(files.pathOf(month, cursor), from, to);
    added.push({ month, rewritten, from, to, sha256 });
  }
  return added;
}

/** The ranges of a month that heads have, as long as it was not written anew. */
export const rangesOf = (
  heads: readonly HeadLine[],
  month: string,
  rewritten: number,
): readonly (HeadMonth & { readonly day: string })[] =>
  heads.flatMap(({ head }) =>
    head.months
      .filter((range) => range.month === month && range.rewritten === rewritten)
      .map((range) => ({ ...range, day: head.day })),
  );
