// What /openapi.json says of this API. The request's schema is that of the check; of replies it
// says what is always there. Errors are those of chat completions.
import type { Config } from "../../core/config.ts";
import { apiEnabled } from "../client-apis/index.ts";
import { describeOperation, type Description } from "../openapi/index.ts";
import { responsesRequest } from "../responses-input/index.ts";

const SCHEMAS = {
  ResponsesRequest: responsesRequest.schema,
  Response: {
    type: "object",
    properties: {
      id: { type: "string" },
      object: { const: "response" },
      created_at: { type: "integer" },
      status: { enum: ["completed", "incomplete", "failed", "in_progress"] },
      model: { type: "string" },
      output: {
        type: "array",
        items: { type: "object", properties: { type: { type: "string" } }, required: ["type"] },
      },
      usage: { type: ["object", "null"] },
    },
    required: ["id", "object", "created_at", "status", "model", "output", "usage"],
  },
  ResponseEvent: {
    type: "object",
    properties: { type: { type: "string" }, sequence_number: { type: "integer", minimum: 0 } },
    required: ["type", "sequence_number"],
  },
};

export function describe(config: Config): Description | undefined {
  if (!apiEnabled(config, "responses")) return undefined;
  const post = describeOperation(
    "Generate a reply in the format of OpenAI's Responses API, whole or streamed",
    "The response. With stream true: a numbered event for all that begins, grows and ends in it.",
    { request: "ResponsesRequest", reply: "Response", event: "ResponseEvent", error: "Error" },
  );
  return { paths: { "/v1/responses": { post } }, schemas: SCHEMAS };
}
