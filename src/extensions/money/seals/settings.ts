// The section of gateway.json about seals.
import { section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { boolean, withDefault } from "../../../core/schema/checker.ts";

export interface SealSettings {
  /** Whether the lines of closed days are signed. */
  readonly enabled: boolean;
}

export const seals = defineSetting<SealSettings>(
  "seals",
  { enabled: false },
  () => section({ enabled: withDefault(boolean(), false) }),
  { fixed: true },
);
