// What /openapi.json says of this API. The requests' schemas are those of the checks; of replies it
// says what is always there.
import type { Config } from "../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import { messagesRequest } from "../messages-input/index.ts";
import { describeOperation, type Description } from "../openapi/index.ts";

const object = (properties: Readonly<Record<string, object>>): object => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});
const text = { type: "string" };
const count = { type: "integer", minimum: 0 };

const SCHEMAS = {
  MessagesRequest: messagesRequest.schema,
  Message: object({
    id: text,
    type: { const: "message" },
    role: { const: "assistant" },
    model: text,
    content: { type: "array", items: object({ type: text }) },
    stop_reason: { type: ["string", "null"] },
    stop_sequence: { type: ["string", "null"] },
    usage: object({ input_tokens: count, output_tokens: count }),
  }),
  MessagesEvent: object({ type: text }),
  MessagesError: object({
    type: { const: "error" },
    error: object({ type: text, message: text }),
    request_id: text,
  }),
};

/** The key may stand where this API's clients put it. */
export const withKey = (operation: object): object => ({
  ...operation,
  security: [{ bearer: [] }, { apiKey: [] }],
});

export function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "messages")) return undefined;
  const reply = describeOperation(
    "Generate a reply in the format of Anthropic's Messages API, whole or streamed",
    "The message. With stream true: one event each for what begins, grows and ends in it.",
    {
      request: "MessagesRequest",
      reply: "Message",
      event: "MessagesEvent",
      error: "MessagesError",
    },
  );
  return { paths: { "/v1/messages": { post: withKey(reply) } }, schemas: SCHEMAS };
}
