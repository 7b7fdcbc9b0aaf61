// Chat completions as a client API: POST /v1/chat/completions. contract.md "Endpoints", wire.md
// "From the client", "To the client".
import type { ClientApi } from "./client-api.ts";
import { errorBody } from "../openai/errors.ts";
import { createChunkWriter, createWholeWriter, replyHead } from "../openai/reply.ts";
import { message, type ChatRequest } from "../openai/request.ts";
import { checkInSteps, type Check } from "../schema/checker.ts";
import { asObject } from "../schema/untrusted-json.ts";

/** `check`: that of a request, with what extensions add to it. */
export const createChatCompletions = (check: Check<ChatRequest>): ClientApi => ({
  path: "/v1/chat/completions",
  keepAlive: ": keep-alive\n\n",
  authorization: (headers) => headers.authorization,
  *read({ json, large }) {
    if (!large) return check(json);
    return yield* checkInSteps(check, json, asObject(json)["messages"], message);
  },
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
