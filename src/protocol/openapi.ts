// GET /openapi.json: the contract as an OpenAPI 3.1 document, its schemas taken from the checks themselves.
import { chatRequest } from "./chat-request.ts";
import { chunkShape, completionShape, errorShape, healthShape, modelListShape } from "./shapes.ts";

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: object) => ({ "application/json": { schema } });
const headers = { "X-Request-Id": { description: "The client's own X-Request-Id, or a new one.", schema: { type: "string" } } };
const answer = (description: string, content: object) => ({ description, headers, content });
const error = (description: string) => answer(description, json(ref("Error")));
const noKey = error("No API key, or an unknown one.");
const security = [{ bearer: [] }];
const get = (summary: string, responses: object, detail = {}) => ({ get: { summary, ...detail, responses } });
const requestIdSchema = { type: "string", minLength: 1, maxLength: 512 };
const parameters = [{ name: "X-Request-Id", in: "header", required: false, schema: requestIdSchema }];
const replyContent = { ...json(ref("ChatCompletion")), "text/event-stream": { schema: ref("ChatCompletionChunk") } };

const shapes = {
  ChatCompletionRequest: chatRequest, ChatCompletion: completionShape, ChatCompletionChunk: chunkShape,
  ModelList: modelListShape, Health: healthShape, Error: errorShape,
};
const schemas = Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, shape.schema]));
const description = "A chat-completions gateway: canonical models, routing aliases, streams, request ids.";

const document = {
  openapi: "3.1.0",
  info: { title: "chat-gateway", version: "1", description },
  paths: {
    "/v1/chat/completions": {
      post: {
        summary: "Generate a reply, whole or streamed", security, parameters,
        requestBody: { required: true, content: json(ref("ChatCompletionRequest")) },
        responses: {
          "200": answer("The reply. With stream true: one `data:` event a chunk, then `data: [DONE]`.", replyContent),
          "400": error("The request is not valid; `error.param` says where."),
          "401": noKey, "403": error("The key may not use this model."), "404": error("There is no such model or alias."),
          "413": error("The body is too large."), "415": error("The body is not JSON, or is compressed."),
          "429": error("The requests-per-minute limit is exceeded; Retry-After says for how long."),
          "500": error("A fault of the gateway."),
          "503": error("The model is unavailable, overloaded, too slow, or failed."),
        },
      },
    },
    "/v1/models": get("The models and aliases that the key may use", {
      "200": answer("The list.", json(ref("ModelList"))), "401": noKey,
    }, { security }),
    "/healthz": get("The process is alive", { "200": answer("Alive.", json(ref("Health"))) }),
    "/readyz": get("Some model can serve, and the gateway is not shutting down", {
      "200": answer("Ready.", json(ref("Health"))),
      "503": error("Draining, or no model can serve."),
    }),
    "/openapi.json": get("This document", { "200": answer("The document.", json({ type: "object" })) }),
  },
  components: { schemas, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
};

/** The document as text: it never changes while the process runs. */
export const openapiText = JSON.stringify(document);
