// GET /openapi.json: the contract as an OpenAPI 3.1 document; the schema of a request is taken from
// the check itself.
import { chatRequest } from "./request.ts";
import document from "./openapi.json" with { type: "json" };

const schemas = { ChatCompletionRequest: chatRequest.schema, ...document.components.schemas };
/** The document as text: it never changes while the process runs. */
export const openapiText = JSON.stringify({
  ...document,
  components: { ...document.components, schemas },
});
