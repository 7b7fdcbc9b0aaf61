// GET /v1/models for clients of the Messages API, which say so by the header `anthropic-version`.
import type { IncomingHttpHeaders } from "node:http";
import { fail } from "../../../core/schema/checker.ts";
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

/** The most models of a page. */
const MAX_LIMIT = 1_000;

function limitIn(query: URLSearchParams): number {
  const text = query.get("limit");
  const limit = text === null ? MAX_LIMIT : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  return fail("invalid_value", `expected an integer from 1 to ${MAX_LIMIT}`, ["limit"]);
}

/** Whether a client of this API asks, where others could. */
export const isOwnClient = (headers: IncomingHttpHeaders): boolean =>
  headers["anthropic-version"] !== undefined;

export const modelListForm: ModelListForm = {
  appliesTo: (headers, config) => isOwnClient(headers) && apiEnabled(config, "messages"),
  requestIdHeader: REQUEST_ID_HEADER,
  authorization,
  entry,
  list(models, query) {
    const limit = limitIn(query);
    const after = query.get("after_id");
    const before = query.get("before_id");
    const placeOf = (name: string, id: string): number => {
      const place = models.findIndex((model) => model.id === id);
      return place === -1 ? fail("invalid_value", "names no model of this list", [name]) : place;
    };
    const start = after === null ? 0 : placeOf("after_id", after) + 1;
    const end = before === null ? models.length : placeOf("before_id", before);
    const between = models.slice(start, end);
    // Before an id the models next to it are wanted.
    const page = before === null ? between.slice(0, limit) : between.slice(-limit);
    return {
      data: page.map(entry),
      has_more: page.length < between.length,
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
    };
  },
};
