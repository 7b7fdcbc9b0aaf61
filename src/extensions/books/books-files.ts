// The books of one data_dir, as the gateway and the commands work on them.
import { resolve } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { Config } from "../../core/config.ts";
import type { Extension } from "../../core/extension/extension.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import { opensUsageStore, type UsageStore } from "../usage-records/index.ts";
import { gatewayInstanceId, placeOf } from "./data-dir-ids.ts";
import { createFileStore } from "./file-store/file-store.ts";
import { opensSealing, type Sealing } from "./sealing.ts";
import { isFileStore, spend, usage } from "./settings.ts";
import { createRetention, type Retention } from "./usage/retention.ts";
import { createSegmentReader, type SegmentReader } from "./usage/segment-progress.ts";

/** The books of a data_dir. */
export interface BooksFiles {
  /** The folder of the spend log's segments. Its path is absolute. */
  readonly spendDir: string;
  /** Keeps the usage records, in files or in a database. */
  readonly store: UsageStore;
  /** The currency of bills, three capital letters. */
  readonly currency: string;
  /** Segments older than so many days are deleted. */
  readonly keepDays: number;
  /** Says which segments may be deleted. */
  readonly retention: Retention;
  /** Remembers what it saw of segments from one sync to the next. */
  readonly reader: SegmentReader;
  /** Seals the lines of the spend log. Undefined: they are not sealed. */
  readonly sealing: Sealing | undefined;
  /** Times settle lines that are written later, deletions, and waits for locks. */
  readonly clock: Clock;
  /** Tells the operator what was recovered, and what is wrong with the books. */
  readonly diagnose: Diagnose;
}

/** What the books need besides the configuration. */
export interface BooksOptions {
  /** As BooksFiles.clock. */
  readonly clock: Clock;
  /** As BooksFiles.diagnose. */
  readonly diagnose: Diagnose;
  /** One of these may bring the usage store. */
  readonly extensions: readonly Extension[];
}

/**
 * Opens the books that a configuration names, and changes nothing on the disk. Throws a
 * ValidationError if the package that the store needs is not installed.
 */
export function openBooks(
  config: Config,
  { clock, diagnose, extensions }: BooksOptions,
): BooksFiles {
  // Absolute paths: of a relative path whose beginning was deleted, Node 20 tries to make the
  // folders for ever.
  const dataDir = resolve(config.data_dir);
  const { keep_days } = spend.of(config);
  const retention = createRetention(dataDir, keep_days, clock);
  const { isClockSteady } = retention;
  const sealing = extensions
    .find(opensSealing)
    ?.openSealing({ config, dataDir, clock, diagnose, isClockSteady });
  return {
    spendDir: resolve(dataDir, "spend"),
    store: openStore(config, extensions),
    currency: config.currency,
    keepDays: keep_days,
    retention,
    reader: createSegmentReader(),
    sealing,
    clock,
    diagnose,
  };
}

function openStore(config: Config, extensions: readonly Extension[]): UsageStore {
  const { data_dir } = config;
  const { store: address } = usage.of(config);
  if (isFileStore(address)) return createFileStore(resolve(data_dir, "usage"));
  const opener = extensions
    .filter(opensUsageStore)
    .find(({ store }) => store?.scheme.test(address));
  if (!opener) throw new TypeError("no extension opens usage.store");
  return opener.openUsageStore({
    address,
    dataDir: data_dir,
    gatewayInstanceId: () => gatewayInstanceId(data_dir),
    place: () => placeOf(data_dir),
  });
}
