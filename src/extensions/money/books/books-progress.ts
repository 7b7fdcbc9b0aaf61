// How far a long command on the books is: how much it is going to read, and how much it has read.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { BooksContext } from "./books-context.ts";
import {
  copySettled,
  isFileStore,
  usage,
  type BooksFiles,
  type SyncResult,
} from "../usage/index.ts";
import { watchReading } from "../days/index.ts";
import { segmentsIn } from "../ledger/index.ts";

/** How many bytes the books have: about what a command reads of them. */
export interface BookSizes {
  /** Of the spend log. */
  readonly spend: number;
  /** Of the usage records of a month, or of all; 0 if they are not in files. */
  usage(month?: string): number;
}

export function bookSizes({ books, config }: BooksContext): BookSizes {
  const dir = join(config.data_dir, "usage");
  const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const segments = existsSync(books.spendDir) ? segmentsIn(books.spendDir) : [];
  return {
    spend: sumOf(segments.map((name) => sizeOf(join(books.spendDir, name)))),
    usage(month = "") {
      if (!isFileStore(usage.of(config).store) || !existsSync(dir)) return 0;
      const isMeant = (name: string) => name.startsWith(month) && name.endsWith(".jsonl");
      return sumOf(
        readdirSync(dir)
          .filter(isMeant)
          .map((name) => sizeOf(join(dir, name))),
      );
    },
  };
}

const sumOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0);

/** Does work that reads about `total` bytes of the books; a terminal shows how far it is. */
export async function withProgress<T>(
  { terminal }: BooksContext,
  label: string,
  total: () => number,
  work: () => Promise<T>,
): Promise<T> {
  if (!terminal.progress) return await work();
  const progress = terminal.progress.begin(label, total());
  return await watchReading(progress.add, work).finally(progress.end);
}

/** Copies what is settled by now, as copySettled; a terminal shows how far it is. */
export async function copyShown(context: BooksContext): Promise<SyncResult> {
  const { books, terminal } = context;
  const pending = terminal.progress ? await pendingBytes(books) : 0;
  return await withProgress(
    context,
    "copying what was settled",
    () => pending,
    () => copySettled(books),
  );
}

/** Bytes of the spend log that are not copied yet; 0 if that cannot be said. */
async function pendingBytes({ spendDir, store }: BooksFiles): Promise<number> {
  try {
    const copied = Object.values(await store.cursor()).map(({ bytes }) => bytes);
    const sizes = segmentsIn(spendDir).map((name) => statSync(join(spendDir, name)).size);
    return Math.max(0, sumOf(sizes) - sumOf(copied));
  } catch {
    return 0; // The copying itself says what is wrong.
  }
}
