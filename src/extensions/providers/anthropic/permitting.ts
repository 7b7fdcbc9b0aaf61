// Which candidates may be asked: of those that speak the Messages API, the ones to which all of a
// client's own request may pass.
import { ApiError } from "../../../core/openai/errors.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { refuseUnlisted } from "./passes.ts";

/** Where no candidate is permitted, the refusal of the first one is the answer. */
export const amongPermitted =
  (dialect: string) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { native } = chat;
    if (native?.dialect !== dialect) return complete(chat, candidates, deliver, context);
    const permitted = candidates.filter(
      (model) => model.provider.dialect !== dialect || isPermitted(native, model),
    );
    const remaining = permitted.length > 0 ? permitted : candidates;
    return complete(chat, remaining, deliver, context);
  };

function isPermitted({ body }: NativeRequest, { traits }: Model): boolean {
  try {
    refuseUnlisted(body, traits.passes);
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}
