// POST /v1/responses: OpenAI's Responses API. A request is translated, and then handled like all
// others. The reply becomes output items, and events if it is streamed.
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Around, GatewayContext, Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import { pathOf } from "../../../core/http/router.ts";
import { ApiError, errorBody } from "../../../core/openai/errors.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { CompletionError, type RequestProgress } from "../../../core/routing/fallback.ts";
import { authorization, createReasoningSealer } from "../client-apis/index.ts";
import { descriptions } from "../openapi/index.ts";
import { readRequest, responsesRequest, type ReplyFacts } from "../responses-input/index.ts";
import described from "./description.json" with { type: "json" };
import { createResponseWriter, type ResponseWriter } from "./writer.ts";

const PATH = "/v1/responses";

export function install(gateway: Installer): void {
  gateway.fill(slots.clientApi("responses"), createApi);
  gateway.on(descriptions, () => ({
    ...described,
    schemas: { ...described.schemas, ResponsesRequest: responsesRequest.schema },
  }));
  gateway.around(() => withLeftOutNotes, { outside: ["budgets", "sticky", "recovery"] });
  gateway.on(hooks.guards, () => refuseWebSockets);
}

/**
 * No provider speaks this dialect. The native request only serves as a key to the request's facts.
 */
const DIALECT = "responses";

/** What the reply must know about its request. */
interface Facts extends ReplyFacts {
  /** Absent: the reply has not begun. */
  writer?: ResponseWriter;
}

/** Keyed by the request's native form. */
const factsByRequest = new WeakMap<NativeRequest, Facts>();
/** Undefined: the request came in another format. */
const factsOf = ({ native }: ChatRequest) => native && factsByRequest.get(native);

function createApi(context: GatewayContext): ClientApi {
  const { seal, open } = createReasoningSealer(context);

  /** Creates the writer when a reply begins. */
  function begin(chat: ChatRequest, model: string, showsReasoning: boolean): ResponseWriter {
    const facts = factsOf(chat)!;
    facts.writer = createResponseWriter({
      ...facts,
      stream: chat.stream,
      model,
      now: context.clock.now(),
      showsReasoning,
      showsLogprobs: chat.logprobs,
      seal: facts.seals ? seal : undefined,
    });
    return facts.writer;
  }

  return {
    path: PATH,
    keepAlive: ": keep-alive\n\n",
    authorization,
    *read(parsed) {
      const { chat, facts, body } = yield* readRequest(parsed, open);
      const native = { dialect: DIALECT, body, headers: {} };
      factsByRequest.set(native, facts);
      return { ...chat, native };
    },
    writer: (chat, { model }) => begin(chat, model.name, chat.showThinking && model.reasoning),
    errorBody: errorWithInputParam,
    errorEvents(error, requestId, chat) {
      const writer = factsOf(chat)!.writer ?? begin(chat, chat.model, false);
      return writer.fail(errorWithInputParam(error, requestId).error);
    },
  };
}

/** The error of chat completions, except that `param` calls the prompt `input`. */
function errorWithInputParam(error: ApiError, requestId: string): ReturnType<typeof errorBody> {
  const { error: detail } = errorBody(error, requestId);
  return { error: { ...detail, param: detail.param === "messages" ? "input" : detail.param } };
}

/** A 426 must name the protocols that are served (RFC 9110 15.5.22). */
const UPGRADE = { Upgrade: "HTTP/1.1", Connection: "Upgrade" };

/**
 * Throws the 426 for a WebSocket handshake. Clients that try a WebSocket first, such as Codex, then
 * continue over HTTP. The test is not for Upgrade, because nginx and Apache do not pass it on.
 */
function refuseWebSockets({ req: { method, url = "", headers } }: Exchange): void {
  const isHandshake = method === "GET" && headers["sec-websocket-key"] !== undefined;
  if (!isHandshake || pathOf(url) !== PATH) return;
  const message = "WebSockets are not supported; send the request by POST, with stream: true.";
  throw new ApiError("upgrade_required", message, { headers: UPGRADE });
}

/** Notes in a request's progress what was left out. Reports left-out tools to the operator. */
const withLeftOutNotes: Around = (complete) => async (chat, candidates, deliver, context) => {
  const { leftOut: tools = [], unreadReasoning = 0 } = factsOf(chat) ?? {};
  const notes: string[] = [];
  if (tools.length > 0) {
    context.report("tools_left_out", candidates[0]!, { level: "info", tools });
    notes.push(`left out: ${tools.join(", ")}`);
  }
  if (unreadReasoning > 0) notes.push(`left out: reasoning sealed elsewhere (${unreadReasoning})`);
  try {
    return withNotes(await complete(chat, candidates, deliver, context), notes);
  } catch (failure) {
    if (!(failure instanceof CompletionError)) throw failure;
    throw new CompletionError(withNotes(failure.progress, notes), failure.error);
  }
};

const withNotes = (progress: RequestProgress, notes: readonly string[]): RequestProgress =>
  notes.length === 0 ? progress : { ...progress, notes: [...(progress.notes ?? []), ...notes] };
