// Which candidates may be asked: of those that speak the Messages API, the ones to which all of a
// client's own request may pass.
import type { Complete } from "../../../core/routing/fallback.ts";
import { firstUnlisted } from "./passes.ts";

/** Where no candidate is permitted, the refusal of the first one is the answer. */
export const amongPermitted =
  (dialect: string) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { native } = chat;
    if (native?.dialect !== dialect) return complete(chat, candidates, deliver, context);
    const permitted = candidates.filter(
      ({ provider, traits }) =>
        provider.dialect !== dialect || !firstUnlisted(native.body, traits.passes),
    );
    const remaining = permitted.length > 0 ? permitted : candidates;
    return complete(chat, remaining, deliver, context);
  };
