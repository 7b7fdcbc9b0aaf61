// POST /v1/responses: OpenAI's Responses API. A request becomes the core's own and goes the way of
// all others. What the model says becomes items and events.
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Around, Extension, GatewayContext } from "../../../core/extension/installer.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { CompletionFailed, type RequestProgress } from "../../../core/routing/fallback.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { apiEnabled, authorization } from "../client-apis/index.ts";
import { createSeal, fingerprintSecretOf } from "../../scale/data-files/index.ts";
import { descriptions } from "../openapi/index.ts";
import { readRequest, type ReplyFacts } from "../responses-input/index.ts";
import { describe } from "./description.ts";
import { errorBody } from "./errors.ts";
import { refuseWebSockets } from "./upgrade.ts";
import { createResponseWriter, type ResponseWriter } from "./writer.ts";

const PATH = "/v1/responses";

export const extension: Extension = {
  name: "responses-api",
  install(gateway) {
    gateway.on(descriptions, describe);
    gateway.fill(slots.clientApi("responses"), createApi);
    gateway.around(() => withNotesOfReading);
    gateway.on(moments.guards, (config) =>
      apiEnabled(config, "responses") ? refuseWebSockets(PATH) : undefined,
    );
  },
};

/** No provider is asked in this format. The request is kept for its reply only. */
const DIALECT = "responses";

/** What the reply to a request needs. */
interface Asked {
  readonly facts: ReplyFacts;
  readonly writer: ResponseWriter;
}

/** By the request as it came. */
const known = new WeakMap<NativeRequest, Asked>();
/** Undefined: the request came in another format. */
const askedIn = ({ native }: ChatRequest): Asked | undefined => native && known.get(native);

function createApi({ config, clock, diagnose }: GatewayContext): ClientApi | undefined {
  if (!apiEnabled(config, "responses")) return undefined;
  const { seal, open } = createSeal({
    purpose: "sealed reasoning",
    readSecret: () => fingerprintSecretOf(config.data_dir),
    failed({ message }) {
      const detail = `sealed reasoning cannot be read after the next start: ${message}`;
      diagnose({ event: "reasoning_key_unavailable", level: "warn", detail });
    },
  });

  return {
    path: PATH,
    keepAlive: ": keep-alive\n\n",
    authorization,
    *read(body) {
      const { chat, facts } = yield* readRequest(body, open);
      const native = { dialect: DIALECT, body: asObject(body.json), headers: {} };
      const writer = createResponseWriter({
        ...facts,
        stream: chat.stream,
        model: chat.model,
        now: clock.now(),
        showsLogprobs: chat.logprobs,
        seal: facts.seals ? seal : undefined,
      });
      known.set(native, { facts, writer });
      return { ...chat, native };
    },
    writer(chat, { model }) {
      const { writer } = askedIn(chat)!;
      writer.serve(model.name, chat.showThinking && model.reasoning);
      return writer;
    },
    errorBody,
    errorEvents: (error, requestId, chat) => askedIn(chat)!.writer.fail(error, requestId),
  };
}

/** Notes in the progress, and for the operator, what of a request could not be used. */
const withNotesOfReading: Around = (complete) => async (chat, candidates, deliver, context) => {
  const { leftOut: tools = [], unreadReasoning = 0 } = askedIn(chat)?.facts ?? {};
  const notes: string[] = [];
  if (tools.length > 0) {
    context.report("tools_left_out", candidates[0]!, { level: "info", tools });
    notes.push(`left out: ${tools.join(", ")}`);
  }
  if (unreadReasoning > 0) notes.push(`left out: reasoning sealed elsewhere (${unreadReasoning})`);
  try {
    return noted(await complete(chat, candidates, deliver, context), notes);
  } catch (failure) {
    if (!(failure instanceof CompletionFailed)) throw failure;
    throw new CompletionFailed(noted(failure.progress, notes), failure.error);
  }
};

/** The progress of a request with these notes too. */
const noted = (progress: RequestProgress, notes: readonly string[]): RequestProgress =>
  notes.length === 0 ? progress : { ...progress, notes: [...(progress.notes ?? []), ...notes] };
