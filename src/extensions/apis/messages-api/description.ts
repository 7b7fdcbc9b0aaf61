// What /openapi.json says of this API. The requests' schemas are those of the checks; of replies
// description.json says what is always there.
import type { Config } from "../../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import { countRequest, messagesRequest } from "../messages-input/index.ts";
import { describeOperation, type Description } from "../openapi/index.ts";
import described from "./description.json" with { type: "json" };

/** The key may stand where this API's clients put it. */
const KEY = { security: [{ bearer: [] }, { apiKey: [] }] };

export function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "messages")) return undefined;
  const { reply, count, schemas } = described;
  const replies = describeOperation(reply.summary, reply.reply, reply.schemas);
  const counts = describeOperation(count.summary, count.reply, count.schemas);
  return {
    paths: {
      "/v1/messages": { post: { ...replies, ...KEY } },
      "/v1/messages/count_tokens": { post: { ...counts, ...KEY } },
    },
    schemas: {
      ...schemas,
      MessagesRequest: messagesRequest.schema,
      MessagesCountRequest: countRequest.schema,
    },
  };
}
