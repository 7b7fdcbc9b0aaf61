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
import { createResponseWriter, type ResponseOptions, type ResponseWriter } from "./writer.ts";

const PATH = "/v1/responses";

export const extension: Extension = {
  name: "responses-api",
  install(gateway) {
    gateway.on(descriptions, describe);
    gateway.fill(slots.clientApi("responses"), createApi);
    gateway.around(() => withNotesOfReading, { outside: ["budgets", "sticky", "recovery"] });
    gateway.on(moments.guards, (config) =>
      apiEnabled(config, "responses") ? refuseWebSockets(PATH) : undefined,
    );
  },
};

/** No provider is asked in this format. The request is kept for its reply only. */
const DIALECT = "responses";

/** What a response says of the model that serves. */
type Served = Pick<ResponseOptions, "model" | "showsReasoning" | "now">;

/** What the replies to one request need. */
interface Asked {
  readonly facts: ReplyFacts;
  /** Undefined: no model has begun. */
  writer: ResponseWriter | undefined;
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

  function writerFor(chat: ChatRequest, served: Served): ResponseWriter {
    const facts = askedIn(chat)!.facts;
    return createResponseWriter({
      ...facts,
      ...served,
      stream: chat.stream,
      showsLogprobs: chat.logprobs,
      seal: facts.seals ? seal : undefined,
    });
  }

  return {
    path: PATH,
    keepAlive: ": keep-alive\n\n",
    authorization,
    *read(body) {
      const { chat, facts } = yield* readRequest(body, open);
      const native = { dialect: DIALECT, body: asObject(body.json), headers: {} };
      known.set(native, { facts, writer: undefined });
      return { ...chat, native };
    },
    writer(chat, { model }, now) {
      const showsReasoning = chat.showThinking && model.reasoning;
      const writer = writerFor(chat, { model: model.name, showsReasoning, now });
      askedIn(chat)!.writer = writer;
      return writer;
    },
    errorBody,
    errorEvents(error, requestId, chat) {
      // Before a model began there is only the name that the client asked for.
      const nobody = { model: chat.model, showsReasoning: false, now: clock.now() };
      const writer = askedIn(chat)!.writer ?? writerFor(chat, nobody);
      return writer.fail(error, requestId);
    },
  };
}

/** Notes in the progress, and for the operator, what of a request could not be used. */
const withNotesOfReading: Around = (complete) => async (chat, candidates, deliver, context) => {
  const { leftOut: tools = [], unreadReasoning = 0 } = askedIn(chat)?.facts ?? {};
  if (tools.length > 0) context.report("tools_left_out", candidates[0]!, { level: "info", tools });
  const notes = [
    ...(tools.length > 0 ? [`left out: ${tools.join(", ")}`] : []),
    ...(unreadReasoning > 0 ? [`left out: reasoning sealed elsewhere (${unreadReasoning})`] : []),
  ];
  return withNotes(notes, () => complete(chat, candidates, deliver, context));
};

/** The progress of a request with these notes too, also if the request is not completed. */
async function withNotes(
  notes: readonly string[],
  action: () => Promise<RequestProgress>,
): Promise<RequestProgress> {
  if (notes.length === 0) return action();
  const noted = (progress: RequestProgress): RequestProgress => ({
    ...progress,
    notes: [...(progress.notes ?? []), ...notes],
  });
  try {
    return noted(await action());
  } catch (failure) {
    if (!(failure instanceof CompletionFailed)) throw failure;
    throw new CompletionFailed(noted(failure.progress), failure.error);
  }
}
