// GET /openapi.json: the contract as an OpenAPI 3.1 document, its schemas taken from the checks themselves.
import { chatRequest } from "./chat-request.ts";
import document from "./openapi.json" with { type: "json" };
import { chunkShape, completionShape, errorShape, healthShape, modelListShape } from "./shapes.ts";

const schemas = {
  ChatCompletionRequest: chatRequest.schema, ChatCompletion: completionShape.schema, ChatCompletionChunk: chunkShape.schema,
  ModelList: modelListShape.schema, Health: healthShape.schema, Error: errorShape.schema,
};

/** The document as text: it never changes while the process runs. */
export const openapiText = JSON.stringify({ ...document, components: { ...document.components, schemas } });
