// POST /v1/messages: Anthropic's Messages API for clients, with its counts of tokens, and the list
// of models in its form.
import type { ClientApi } from "../../../core/chat/client-api.ts";
import { apiEnabled, authorization } from "../client-apis/index.ts";
import type { ModelListExtension } from "../model-list/index.ts";
import type { DescribedExtension } from "../openapi/index.ts";
import { createCountHandler } from "./count-tokens.ts";
import { describe } from "./description.ts";
import { withDetails } from "./detailed-errors.ts";
import { errorEvent, REQUEST_ID_HEADER } from "./errors.ts";
import { PING } from "./events.ts";
import { isOwnClient, modelListForm } from "./models.ts";
import { createWriter, eventText } from "./reply.ts";
import { readRequest } from "../messages-input/index.ts";

const messagesApi: ClientApi = {
  path: "/v1/messages",
  owns: (path, headers) => /^\/v1\/models(\/|$)/.test(path) && isOwnClient(headers),
  keepAlive: eventText(PING),
  requestIdHeader: REQUEST_ID_HEADER,
  authorization,
  read: readRequest,
  writer: createWriter,
  errorBody: errorEvent,
  errorEvents: (error, requestId) => eventText(errorEvent(error, requestId)),
};

export const extension: ModelListExtension & DescribedExtension = {
  name: "messages-api",
  describe,
  modelListForm,
  start(context) {
    if (!apiEnabled(context.config, "messages")) return {};
    const { path } = messagesApi;
    const routes = { [`${path}/count_tokens`]: { POST: createCountHandler(messagesApi, context) } };
    return { apis: [messagesApi], routes, around: withDetails };
  },
};
