// POST /v1/messages: Anthropic's Messages API for clients, with its counts of tokens, and the list
// of models in its form.
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { authorization, eventText, ifEnabled, serveApi } from "../client-apis/index.ts";
import { countRequest, messagesRequest, readRequest } from "../messages-input/index.ts";
import { modelListForms } from "../model-list/index.ts";
import { createCountHandler } from "./count-tokens.ts";
import described from "./description.json" with { type: "json" };
import { errorEvent, REQUEST_ID_HEADER, withDetails } from "./errors.ts";
import { isOwnClient, modelListForm } from "./models.ts";
import { createWriter, PING } from "./reply.ts";

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

export function install(gateway: Installer): void {
  const { operations, schemas } = described;
  const MessagesRequest = messagesRequest.schema;
  const MessagesCountRequest = countRequest.schema;
  serveApi(gateway, "messages", () => messagesApi, {
    operations,
    schemas: { ...schemas, MessagesRequest, MessagesCountRequest },
  });
  gateway.on(modelListForms, () => modelListForm);
  gateway.route(
    "POST",
    `${messagesApi.path}/count_tokens`,
    ifEnabled("messages", (context) => createCountHandler(messagesApi, context)),
  );
  // The details of an error are those that the client gets: the outermost has the last word.
  gateway.around(() => withDetails, {
    outside: ["responses-api", "budgets", "sticky", "recovery"],
  });
}
