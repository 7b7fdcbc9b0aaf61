// The section of gateway.json about usage records.
import type { Config } from "../../../core/config.ts";
import { ms, section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { withDefault } from "../../../core/schema/checker.ts";

interface UsageSettings {
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

/** Whether a configuration wants the usage records in files of data_dir. */
export const hasFileStore = (config: Config): boolean => usage.of(config).store === "file";
