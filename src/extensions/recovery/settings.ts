// The settings of recovery.
import { integer } from "../../config/fields.ts";
import { defineSetting } from "../../config/setting.ts";
import { literal, withDefault } from "../../core/schema/checker.ts";

/** What happens to a stream that breaks. */
export type RecoveryMode = "none" | "hold" | "continue";

const mode = withDefault(literal("none", "hold", "continue"), "none");

/** Of requests that name the alias. */
export const aliasRecovery = defineSetting<RecoveryMode>("aliases.*.recovery", "none", () => mode);

/** Of requests that name the model. */
export const modelRecovery = defineSetting<RecoveryMode>("models.*.recovery", "none", () => mode);

/** How many times another attempt may go on with one reply. */
export const maxRecoveries = defineSetting("retry.max_recoveries", 2, () =>
  withDefault(integer(0, 10), 2),
);
