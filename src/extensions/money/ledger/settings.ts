// The section `spend` of gateway.json.
import { integer, section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { withDefault } from "../../../core/schema/checker.ts";

const DEFAULTS: SpendSettings = { keep_days: 400, segment_bytes: 64 * 1024 ** 2 };

export interface SpendSettings {
  /** A segment of the spend log is deleted so many days after all of it was copied and closed. */
  readonly keep_days: number;
  /** A segment of this size, in bytes, is followed by another one. */
  readonly segment_bytes: number;
}

export const spend = defineSetting<SpendSettings>(
  "spend",
  DEFAULTS,
  () =>
    section({
      keep_days: withDefault(integer(1, 36_500), DEFAULTS.keep_days),
      segment_bytes: withDefault(integer(1024, 2 ** 30), DEFAULTS.segment_bytes),
    }),
  { fixed: true },
);
