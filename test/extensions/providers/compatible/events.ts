// Replies of OpenAI's format in as few fields as can be, and how the dialect reads them.

import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { replyOf, replyTo, targetOf } from "../dialect-bench.ts";

export const choice = (fields: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, ...fields, finish_reason }],
});
export const delta = (fields: unknown, finish?: string) => choice({ delta: fields }, finish);
export const whole = (message: unknown, finish = "stop") => choice({ message }, finish);

/** A call, or a fragment of one. */
export const call = (id: unknown, name: string | undefined, args: unknown = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

/** A model that thinks, with these traits or at this vendor. */
export const modelWith = (traits: object = {}) => {
  const { vendor = "generic", ...own } = traits as { readonly vendor?: string };
  return targetOf({ vendor }, { reasoning: true, ...own });
};
export const decoderWith = (traits?: object) => compatibleDialect.decoder(modelWith(traits));

/** What a stream comes to. */
export const streamed = (events: readonly object[], traits?: object) => {
  const { push } = decoderWith(traits);
  return replyOf(events.flatMap((event) => push(event)));
};
/** What a message comes to, which must be the same streamed in these deltas. */
export const read = (message: unknown, deltas: readonly unknown[] = [message], traits?: object) => {
  const events = [...deltas.map((each) => delta(each)), delta({}, "stop")];
  return replyTo(() => compatibleDialect, whole(message), events, modelWith(traits));
};
