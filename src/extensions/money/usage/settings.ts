// The sections of gateway.json about the spend log and the usage records.
import type { Config } from "../../../core/config.ts";
import { integer, ms, section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { withDefault } from "../../../core/schema/checker.ts";

const SPEND = { keep_days: 400, segment_bytes: 64 * 1024 ** 2 };

export const spend = defineSetting(
  "spend",
  SPEND,
  () =>
    section({
      // Days after which a segment of the spend log is deleted, once closed days cover all of it.
      keep_days: withDefault(integer(1, 36_500), SPEND.keep_days),
      // Once a segment has this size, in bytes, the next one begins.
      segment_bytes: withDefault(integer(1024, 2 ** 30), SPEND.segment_bytes),
    }),
  { fixed: true },
);

export const usage = defineSetting(
  "usage",
  { store: "file", sync_ms: 5_000 },
  ({ storeAddress }) =>
    section({
      // "file", or the address of a database, which may contain a password.
      store: withDefault(storeAddress("usage.store", "file"), "file"),
      // How often the sync runs, in milliseconds.
      sync_ms: ms(5_000),
    }),
  { fixed: true },
);

/** Whether a configuration wants the usage records in files of data_dir. */
export const hasFileStore = (config: Config): boolean => usage.of(config).store === "file";
