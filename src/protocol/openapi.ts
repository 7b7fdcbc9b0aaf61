// GET /openapi.json: the contract as an OpenAPI 3.1 document; the schemas of requests and replies are taken from the checks themselves.
import { chatRequest } from "./chat-request.ts";
import document from "./openapi.json" with { type: "json" };
import { chunkShape, completionShape } from "./shapes.ts";

const taken = { ChatCompletionRequest: chatRequest.schema, ChatCompletion: completionShape.schema, ChatCompletionChunk: chunkShape.schema };
const schemas = { ...taken, ...document.components.schemas };
/** The document as text: it never changes while the process runs. */
export const openapiText = JSON.stringify({ ...document, components: { ...document.components, schemas } });
