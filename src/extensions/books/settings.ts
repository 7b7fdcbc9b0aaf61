// The sections of gateway.json about the books.
import type { Config } from "../../core/config.ts";
import { integer, ms, section } from "../../config/fields.ts";
import { defineSetting } from "../../config/setting.ts";
import { withDefault } from "../../core/schema/checker.ts";

const DAY_COUNT = withDefault(integer(1, 36_500), 400);
const SEGMENT_BYTES = withDefault(integer(1024, 2 ** 30), 64 * 1024 ** 2);

export interface SpendSettings {
  /**
   * Segments of the spend log that have been copied into the usage records are deleted after so
   * many days.
   */
  readonly keep_days: number;
  /** A segment of this size is followed by another one. */
  readonly segment_bytes: number;
}

export const spend = defineSetting<SpendSettings>(
  "spend",
  { keep_days: 400, segment_bytes: 64 * 1024 ** 2 },
  () => section({ keep_days: DAY_COUNT, segment_bytes: SEGMENT_BYTES }),
  { fixed: true },
);

export interface UsageSettings {
  /** "file", or the address of a database, which may hold a password. */
  readonly store: string;
  /** How often the sync runs, in milliseconds. */
  readonly sync_ms: number;
}

export const usage = defineSetting<UsageSettings>(
  "usage",
  { store: "file", sync_ms: 5_000 },
  ({ storeAddress }) =>
    section({
      store: withDefault(storeAddress("usage.store", "file"), "file"),
      sync_ms: ms(5_000),
    }),
  { fixed: true },
);

/** Whether the usage records are in files of data_dir. */
export const isFileStore = (address: string): boolean => address === "file";

/** Whether a configuration wants the usage records in files of data_dir. */
export const hasFileStore = (config: Config): boolean => isFileStore(usage.of(config).store);
