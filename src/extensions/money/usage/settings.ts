// The sections of gateway.json about the spend log and the usage records.
import type { Config } from "../../../core/config.ts";
import { integer, ms, section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { withDefault } from "../../../core/schema/checker.ts";

interface SpendSettings {
  /** A segment of the spend log is deleted so many days after all of it was copied and closed. */
  readonly keep_days: number;
  /** A segment of this size, in bytes, is followed by another one. */
  readonly segment_bytes: number;
}

interface UsageSettings {
  /** "file", or the address of a database, which may hold a password. */
  readonly store: string;
  /** How often the sync runs, in milliseconds. */
  readonly sync_ms: number;
}

const SPEND: SpendSettings = { keep_days: 400, segment_bytes: 64 * 1024 ** 2 };

export const spend = defineSetting<SpendSettings>(
  "spend",
  SPEND,
  () =>
    section({
      keep_days: withDefault(integer(1, 36_500), SPEND.keep_days),
      segment_bytes: withDefault(integer(1024, 2 ** 30), SPEND.segment_bytes),
    }),
  { fixed: true },
);

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

/** Whether a configuration wants the usage records in files of data_dir. */
export const hasFileStore = (config: Config): boolean => usage.of(config).store === "file";
