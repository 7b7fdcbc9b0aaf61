// Where audit and rebuild read the usage records of books.
import type { Config } from "../../../core/config.ts";
import { sourceOfFiles, sourceOfStore, type Findings, type RecordSource } from "../proof/index.ts";
import { hasFileStore, type BooksFiles } from "../usage/index.ts";

/** The records of books, in files or in another store. */
export const sourceOf = async (
  { dataDir, store, days }: BooksFiles,
  config: Config,
  findings: Findings,
): Promise<RecordSource> =>
  hasFileStore(config)
    ? sourceOfFiles(
        dataDir,
        days.all().map(({ closed }) => closed),
        findings,
      )
    : await sourceOfStore(store);
