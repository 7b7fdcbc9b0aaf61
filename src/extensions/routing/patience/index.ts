// Deadlines of one alias or model: a large local model needs longer ones than a fast hosted one.
// The alias's deadline takes precedence over the model's, and the model's over the provider's.
import type { Installer } from "../../../core/extension/installer.ts";
import { DAY_MS, integer, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { optional, type Infer } from "../../../core/schema/checker.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import { withOverrides, type Model } from "../../../core/routing/model.ts";

const ms = optional(integer(1, DAY_MS));
/** Deadlines in milliseconds. Absent: those of the more general section apply. */
const check = () => optional(strict({ first_token_ms: ms, idle_ms: ms }));
type Patience = Infer<ReturnType<typeof check>>;

const ofAliases = defineSetting("aliases.*.timeouts", undefined, check);
const ofModels = defineSetting("models.*.timeouts", undefined, check);

export const settings = [ofAliases, ofModels];

export function install(gateway: Installer): void {
  gateway.around(() => aroundSilence);
}

/** Completes requests with the deadlines of their alias and of each attempt's model. */
export const aroundSilence =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { attempt, config } = context;
    const { models, aliases } = config;
    const ofAlias = ofAliases.of(aliases.get(chat.model));
    return complete(chat, candidates, deliver, {
      ...context,
      attempt(attemptChat, serving, take, options) {
        const ofModel = ofModels.of(models.get(serving.model.name));
        const model = withPatience(withPatience(serving.model, ofModel), ofAlias);
        return attempt(attemptChat, { ...serving, model }, take, options);
      },
    });
  };

function withPatience(model: Model, own: Patience): Model {
  if (!own) return model;
  const timeouts = withOverrides(model.provider.timeouts, own);
  return { ...model, provider: { ...model.provider, timeouts } };
}
