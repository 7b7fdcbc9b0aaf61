// POST /v1/responses: OpenAI's Responses API. A request becomes a chat completion and goes the way
// of all others. What the model says becomes items and events.
import type { ClientApi } from "../../core/chat/client-api.ts";
import type { GatewayContext, GatewayPart } from "../../core/extension/extension.ts";
import type { ReplyWriter } from "../../core/openai/reply.ts";
import type { ChatRequest, NativeRequest } from "../../core/openai/request.ts";
import { CompletionFailed, type RequestProgress } from "../../core/routing/fallback.ts";
import { asObject } from "../../core/schema/untrusted-json.ts";
import { apiEnabled, authorization } from "../client-apis/index.ts";
import { createSeal, fingerprintSecretOf } from "../data-files/index.ts";
import type { DescribedExtension } from "../openapi/index.ts";
import { readRequest, type ReplyFacts } from "../responses-input/index.ts";
import { describe } from "./description.ts";
import { errorBody } from "./errors.ts";
import { createResponseWriter, type ResponseWriter } from "./writer.ts";

export const extension: DescribedExtension = { name: "responses-api", describe, start: startApi };

/** No provider is asked in this format. The request is kept for its reply only. */
const DIALECT = "responses";

/** Of a stream that failed before a model began. */
const NOTHING: ReplyFacts = { tools: new Map(), leftOut: [], seals: false, echo: { tools: [] } };

function startApi({ config, clock, diagnose }: GatewayContext): GatewayPart {
  if (!apiEnabled(config, "responses")) return {};
  const { seal, open } = createSeal({
    purpose: "sealed reasoning",
    readSecret: () => fingerprintSecretOf(config.data_dir),
    failed({ message }) {
      const detail = `sealed reasoning cannot be read after the next start: ${message}`;
      diagnose({ event: "reasoning_key_unavailable", level: "warn", detail });
    },
  });
  const known = new WeakMap<NativeRequest, ReplyFacts>();
  const factsOf = ({ native }: ChatRequest): ReplyFacts => (native && known.get(native)) ?? NOTHING;

  const api: ClientApi = {
    path: "/v1/responses",
    keepAlive: ": keep-alive\n\n",
    authorization,
    read(json) {
      const { chat, facts, contentPath } = readRequest(json, open);
      const native = { dialect: DIALECT, body: asObject(json), headers: {}, contentPath };
      known.set(native, facts);
      return { ...chat, native };
    },
    writer(chat, { model }, now) {
      const facts = factsOf(chat);
      return createResponseWriter({
        ...facts,
        model: model.name,
        now,
        stream: chat.stream,
        showsReasoning: chat.showThinking && model.reasoning,
        showsLogprobs: chat.logprobs,
        seal: facts.seals ? seal : undefined,
      });
    },
    errorBody,
    errorEvents(error, requestId, reply) {
      if (isOwn(reply)) return reply.fail(error, requestId);
      const options = {
        showsReasoning: false,
        showsLogprobs: false,
        seal: undefined,
        stream: true,
      };
      const writer = createResponseWriter({ ...NOTHING, ...options, model: "", now: clock.now() });
      return writer.fail(error, requestId);
    },
  };

  return {
    apis: [api],
    around: (complete) => async (chat, candidates, deliver, context) => {
      const tools = factsOf(chat).leftOut;
      if (tools.length === 0) return complete(chat, candidates, deliver, context);
      context.report("tools_left_out", candidates[0]!, { level: "info", tools });
      const note = `left out: ${tools.join(", ")}`;
      return withNote(note, () => complete(chat, candidates, deliver, context));
    },
  };
}

/** The progress of a request with one more note, also if the request is not completed. */
async function withNote(
  note: string,
  action: () => Promise<RequestProgress>,
): Promise<RequestProgress> {
  const noted = (progress: RequestProgress): RequestProgress => ({
    ...progress,
    notes: [...(progress.notes ?? []), note],
  });
  try {
    return noted(await action());
  } catch (failure) {
    if (!(failure instanceof CompletionFailed)) throw failure;
    throw new CompletionFailed(noted(failure.progress), failure.error);
  }
}

const isOwn = (reply: ReplyWriter | undefined): reply is ResponseWriter =>
  reply !== undefined && "fail" in reply;
