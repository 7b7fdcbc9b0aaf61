// Chat completions as a client API: POST /v1/chat/completions. SPEC.md "Endpoints", WIRE.md 1 to 4.
import type { ClientApi } from "./client-api.ts";
import { errorBody } from "../openai/errors.ts";
import { createChunkWriter, createWholeWriter, replyHead } from "../openai/reply.ts";
import { chatRequest, type ChatRequest } from "../openai/request.ts";

/** Adds to a checked request. */
export type Annotate = (chat: ChatRequest, json: unknown) => ChatRequest;

/** `annotate`: as Extension.annotate. */
export const createChatCompletions = (annotate: Annotate = (chat) => chat): ClientApi => ({
  path: "/v1/chat/completions",
  keepAlive: ": keep-alive\n\n",
  authorization: (headers) => headers.authorization,
  read: (json) => annotate(chatRequest(json), json),
  writer(chat, { model: { name, fingerprint, reasoning } }, now) {
    const head = replyHead(name, fingerprint(), now);
    const options = {
      showReasoning: chat.showThinking && reasoning,
      showLogprobs: chat.logprobs,
      includeUsage: chat.includeUsage,
    };
    return chat.stream ? createChunkWriter(head, options) : createWholeWriter(head, options);
  },
  errorBody,
  errorEvents: (error, requestId) => `data: ${JSON.stringify(errorBody(error, requestId))}\n\n`,
});
