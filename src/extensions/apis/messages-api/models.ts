// GET /v1/models for clients of the Messages API, which say so by the header `anthropic-version`.
import type { IncomingHttpHeaders } from "node:http";
import { apiEnabled, authorization } from "../client-apis/index.ts";
import type { ListedModel, ModelListForm } from "../model-list/index.ts";
import { REQUEST_ID_HEADER } from "./errors.ts";

/** A model in the vendor's form. What a gateway does not know of it is null. */
const entry = (model: ListedModel) => ({
  type: "model",
  id: model.id,
  display_name: model.id,
  created_at: new Date(model.created * 1000).toISOString(),
  lifecycle: "active",
  deprecated_at: null,
  retires_at: null,
  line: null,
  max_input_tokens: model.context_length,
  max_tokens: model.max_output_tokens,
  capabilities: null,
});

/** Whether a client of this API asks, where others could. */
export const isOwnClient = (headers: IncomingHttpHeaders): boolean =>
  headers["anthropic-version"] !== undefined;

export const modelListForm: ModelListForm = {
  appliesTo: (headers, config) => isOwnClient(headers) && apiEnabled(config, "messages"),
  requestIdHeader: REQUEST_ID_HEADER,
  authorization,
  entry,
  /** One page has them all. */
  list: (models) => ({
    data: models.map(entry),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  }),
};
