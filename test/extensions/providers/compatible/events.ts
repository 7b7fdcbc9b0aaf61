// Replies in OpenAI's format with as few fields as possible, and how the dialect reads them.

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

/** A reasoning model, with these traits or at this vendor. */
export const modelWith = (traits: object = {}) => {
  const { vendor = "generic", ...own } = traits as { readonly vendor?: string };
  return targetOf({ vendor }, { reasoning: true, ...own });
};
export const decoderWith = (traits?: object) => compatibleDialect.decoder(modelWith(traits));

/** The result of a stream. */
export const streamed = (events: readonly object[], traits?: object) => {
  const { push } = decoderWith(traits);
  return replyOf(events.flatMap((event) => push(event)));
};
/** The result of a message, which must be the same streamed in these deltas. */
export const read = (message: unknown, deltas: readonly unknown[] = [message], traits?: object) => {
  const events = [...deltas.map((each) => delta(each)), delta({}, "stop")];
  return replyTo(() => compatibleDialect, whole(message), events, modelWith(traits));
};
