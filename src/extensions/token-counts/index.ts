// POST /v1/messages/count_tokens: the count of tokens for clients of the Messages API.
import type { GatewayContext, GatewayPart } from "../../core/extension/extension.ts";
import type { Config } from "../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import { messagesApi, withKey } from "../messages-api/index.ts";
import { countRequest } from "../messages-input/index.ts";
import { describeOperation, type DescribedExtension, type Description } from "../openapi/index.ts";
import { createCountHandler } from "./count-tokens.ts";

const PATH = "/v1/messages/count_tokens";

export const extension: DescribedExtension = { name: "token-counts", describe, start };

function start(context: GatewayContext): GatewayPart {
  if (!apiEnabled(context.config, "messages")) return {};
  return { routes: { [PATH]: { POST: createCountHandler(messagesApi, context) } } };
}

/** What /openapi.json says of it. The schema of errors is that of the Messages API. */
function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "messages")) return undefined;
  const counted = describeOperation(
    "Count the tokens of a prompt",
    "The number of tokens. `estimated: true` says that no provider counted them.",
    { request: "MessagesCountRequest", reply: "MessagesCount", error: "MessagesError" },
  );
  const count = {
    type: "object",
    properties: { input_tokens: { type: "integer", minimum: 0 } },
    required: ["input_tokens"],
  };
  return {
    paths: { [PATH]: { post: withKey(counted) } },
    schemas: { MessagesCountRequest: countRequest.schema, MessagesCount: count },
  };
}
