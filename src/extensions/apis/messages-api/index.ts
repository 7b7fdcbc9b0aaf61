// POST /v1/messages: Anthropic's Messages API for clients, with its counts of tokens, and the list
// of models in its form.
import type { IncomingHttpHeaders } from "node:http";
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import {
  authorization,
  createReasoningSealer,
  eventText,
  type Sealer,
} from "../client-apis/index.ts";
import { countRequest, messagesRequest, readRequest } from "../messages-input/index.ts";
import { descriptions } from "../openapi/index.ts";
import { modelListForms, type ListedModel, type ModelListForm } from "../model-list/index.ts";
import { createCountHandler } from "./count-tokens.ts";
import described from "./description.json" with { type: "json" };
import { errorEvent, REQUEST_ID_HEADER, withDetails } from "./errors.ts";
import { createWriter, PING } from "./reply.ts";

/** Whether a request for a path that several APIs share comes from a client of this one. */
const isMessagesClient = (headers: IncomingHttpHeaders): boolean =>
  headers["anthropic-version"] !== undefined;

const PATH = "/v1/messages";

const createApi = ({ seal, open }: Sealer): ClientApi => ({
  path: PATH,
  owns: (path, headers) => /^\/v1\/models(\/|$)/.test(path) && isMessagesClient(headers),
  keepAlive: eventText(PING),
  requestIdHeader: REQUEST_ID_HEADER,
  authorization,
  read: (parsed, headers) => readRequest(parsed, headers, open),
  writer: (chat, serving) => createWriter(chat, serving, seal),
  errorBody: errorEvent,
  errorEvents: (error, requestId) => eventText(errorEvent(error, requestId)),
});

export function install(gateway: Installer): void {
  const MessagesRequest = messagesRequest.schema;
  const MessagesCountRequest = countRequest.schema;
  gateway.fill(slots.clientApi("messages"), (context) => createApi(createReasoningSealer(context)));
  gateway.on(descriptions, () => ({
    ...described,
    schemas: { ...described.schemas, MessagesRequest, MessagesCountRequest },
  }));
  gateway.on(modelListForms, (headers) => (isMessagesClient(headers) ? modelListForm : undefined));
  gateway.route("POST", `${PATH}/count_tokens`, (context) => {
    const sealer = createReasoningSealer(context);
    return createCountHandler(createApi(sealer), sealer, context);
  });
  // Outside all wrappers that may replace an error: the details go to the one that clients get.
  gateway.around(() => withDetails, {
    outside: ["responses-api", "budgets", "sticky", "recovery"],
  });
}

/** A model in the vendor's form. Null: unknown to the gateway. */
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

/** The list of models, for clients that send the header `anthropic-version`. */
const modelListForm: ModelListForm = {
  requestIdHeader: REQUEST_ID_HEADER,
  authorization,
  entry,
  /** All models are on one page. */
  list: (models) => ({
    data: models.map(entry),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  }),
};
