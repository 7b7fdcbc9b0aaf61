// POST /v1/messages: Anthropic's Messages API for clients, with its counts of tokens, and the list
// of models in its form.
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Create, Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { apiEnabled, authorization } from "../client-apis/index.ts";
import { modelListForms } from "../model-list/index.ts";
import { descriptions } from "../openapi/index.ts";
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

/** Makes this only if the configuration wants the API. */
const ifEnabled =
  <T>(create: Create<T>): Create<T> =>
  (context) =>
    apiEnabled(context.config, "messages") ? create(context) : undefined;

export const extension: Extension = {
  name: "messages-api",
  install(gateway) {
    gateway.on(descriptions, describe);
    gateway.on(modelListForms, () => modelListForm);
    gateway.fill(
      slots.clientApi("messages"),
      ifEnabled(() => messagesApi),
    );
    gateway.route(
      "POST",
      `${messagesApi.path}/count_tokens`,
      ifEnabled((context) => createCountHandler(messagesApi, context)),
    );
    // The details of an error are those that the client gets: the outermost has the last word.
    gateway.around(() => withDetails);
  },
};
