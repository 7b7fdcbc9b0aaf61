// GET /openapi.json: the contract as an OpenAPI 3.1 document. The schema of a request is taken from
// the check itself.
import type { Extension } from "../../core/extension/extension.ts";
import type { Routes } from "../../core/http/exchange.ts";
import { sendJson } from "../../core/http/responses.ts";
import { chatRequest } from "../../core/openai/request.ts";
import document from "./openapi.json" with { type: "json" };

const schemas = { ChatCompletionRequest: chatRequest.schema, ...document.components.schemas };
/** The document as text: it never changes while the process runs. */
const text = JSON.stringify({
  ...document,
  components: { ...document.components, schemas },
});

export const openapiRoutes: Routes = {
  "/openapi.json": { GET: ({ res }) => sendJson(res, 200, text) },
};

export const extension: Extension = {
  name: "openapi",
  start: () => ({ routes: openapiRoutes }),
};
