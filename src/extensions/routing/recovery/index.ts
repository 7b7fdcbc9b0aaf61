// Recovers streams that break in the middle of a reply: either holds the reply back until it is
// finished, or continues it with another attempt. contract.md "Commit point".
import type { Installer } from "../../../core/extension/installer.ts";
import { integer } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { RoutingSettings } from "../../../core/routing/model.ts";
import { literal, withDefault } from "../../../core/schema/checker.ts";
import { bufferAttempt } from "./buffered.ts";
import { withRecovery } from "./recover.ts";

const checkMode = withDefault(literal("none", "hold", "continue"), "none");
/** How to recover streams of requests that name the alias. */
const aliasRecovery = defineSetting("aliases.*.recovery", "none", () => checkMode);
/** How to recover streams of requests that name the model. */
const modelRecovery = defineSetting("models.*.recovery", "none", () => checkMode);
/** How many further attempts may continue one reply. */
const maxRecoveries = defineSetting("retry.max_recoveries", 2, () => integer(0, 10));

export const settings = [aliasRecovery, modelRecovery, maxRecoveries];

export function install(gateway: Installer): void {
  // Each continuation passes through these again: they choose candidates and limit attempts.
  const outside = ["patience", "context-room", "left-streams", "capacity", "provider-limits"];
  gateway.around(() => aroundBreaks, { outside });
}

/** The setting `recovery` of the model or alias that a request names. */
function modeOf({ models, aliases }: RoutingSettings, name: string): string {
  const model = models.get(name);
  return model ? modelRecovery.of(model) : aliasRecovery.of(aliases.get(name));
}

/** Completes requests, and recovers streams as the configuration says. */
export const aroundBreaks =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { config } = context;
    const mode = chat.stream ? modeOf(config, chat.model) : "none";
    if (mode === "none") return complete(chat, candidates, deliver, context);
    if (mode === "continue")
      return withRecovery(complete, maxRecoveries.of(config))(chat, candidates, deliver, context);
    const attempt = bufferAttempt(context.attempt);
    return complete(chat, candidates, deliver, { ...context, attempt });
  };
