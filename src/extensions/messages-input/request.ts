// A request of the Messages API as the core's own: translated to chat completions, beside the
// request as the client wrote it, for a provider of the same format.
import type { IncomingHttpHeaders } from "node:http";
import { withCacheMarks } from "../cache-marks/index.ts";
import { readChatRequest } from "../../core/openai/read-request.ts";
import { chatRequest, type ChatRequest } from "../../core/openai/request.ts";
import { jsonObject, ValidationError, type ValidationIssue } from "../../core/schema/checker.ts";
import type { ParsedBody } from "../../core/chat/client-api.ts";
import type { Steps } from "../../core/turns.ts";
import { answering, createClientPath } from "./client-path.ts";
import { chatMessages, systemParts } from "./content.ts";
import { nativeBody } from "./native-body.ts";
import { createNotes, type Notes } from "./notes.ts";
import {
  countRequest,
  messagesRequest,
  readCount,
  readMessages,
  type ClientTool,
  type MessagesRequest,
  type Unknown,
} from "./schema.ts";

type Path = ValidationIssue["path"];
/** The fields that a request for a count has too. */
type Countable = Omit<
  MessagesRequest,
  "max_tokens" | "stream" | "temperature" | "top_p" | "top_k" | "stop_sequences" | "metadata"
>;

/** The dialect of the providers that speak this format. */
const DIALECT = "anthropic";
/** Chat completions takes no more. */
const MAX_STOPS = 4;
const MAX_TOOLS = 128;
const CHAT_TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** The headers that providers of the same format get. */
const PASSED_HEADERS = ["anthropic-version", "anthropic-beta", "anthropic-user-profile-id"];

/** A request in the words of chat completions. */
interface Translation {
  readonly body: Readonly<Record<string, unknown>>;
  /** The place in the client's request of what stands at a place of `body`. */
  readonly clientPath: (path: Path) => (string | number)[];
}

/** A body that passes unread is written again for the provider, so its depth is bounded. */
const anyBody = jsonObject();

/** Throws a ValidationError. */
export function* readRequest(
  { json, large }: ParsedBody,
  headers: IncomingHttpHeaders,
): Steps<ChatRequest> {
  const body = anyBody(json);
  yield;
  const request = large ? yield* readMessages(body) : messagesRequest(body);
  const { temperature, top_p, max_tokens, stream, metadata, stop_sequences } = request;
  const foreign = createNotes(body);
  if (request.top_k !== undefined) foreign.note(["top_k"], "top_k");
  if (stop_sequences.length > MAX_STOPS)
    foreign.note(["stop_sequences"], `more than ${MAX_STOPS} stop sequences`);
  if (max_tokens === 0) foreign.note(["max_tokens"], "a prompt without a reply");
  const { clientPath, body: translated } = yield* translate(request, foreign);
  const translation = {
    clientPath,
    body: {
      ...translated,
      max_tokens: max_tokens || undefined,
      stream,
      temperature,
      top_p,
      stop: stop_sequences.slice(0, MAX_STOPS),
      user: metadata?.user_id,
    },
  };
  const checked = yield* checkTranslated(translation, large);
  const chat = withNative(checked, { body, headers, foreign, translation });
  // The check of chat completions takes no limit of 0.
  return { ...chat, maxTokens: max_tokens };
}

/** A request whose tokens are to be counted. Throws a ValidationError. */
export function* readCountRequest(
  { json, large }: ParsedBody,
  headers: IncomingHttpHeaders,
): Steps<ChatRequest> {
  const body = anyBody(json);
  yield;
  const request = large ? yield* readCount(body) : countRequest(body);
  const foreign = createNotes(body);
  const translation = yield* translate(request, foreign);
  const checked = yield* checkTranslated(translation, large);
  return withNative(checked, { body, headers, foreign, translation });
}

/** A request as the client wrote it, and what became of it. */
interface Written {
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  readonly foreign: Notes;
  readonly translation: Translation;
}

function withNative(
  chat: ChatRequest,
  { body, headers, foreign, translation }: Written,
): ChatRequest {
  const passed = PASSED_HEADERS.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  const native = {
    dialect: DIALECT,
    body: nativeBody(body),
    headers: Object.fromEntries(passed),
    only: foreign.first(),
    untranslatedBytes: foreign.bytes(),
  };
  // A display other than that of the thoughts themselves leaves them out.
  const { display } = (body["thinking"] ?? {}) as { display?: unknown };
  const showThinking = chat.showThinking && display !== "omitted";
  return { ...chat, showThinking, native, clientPath: translation.clientPath };
}

/** Checks the translated body. Issues are told at the client's own fields. */
function* checkTranslated({ body, clientPath }: Translation, large: boolean): Steps<ChatRequest> {
  try {
    const chat = large ? yield* readChatRequest(body, chatRequest) : chatRequest(body);
    yield;
    return withCacheMarks(chat, body);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError(
      error.issues.map((issue) => ({ ...issue, path: clientPath(issue.path) })),
    );
  }
}

function* translate(request: Countable, notes: Notes): Steps<Translation> {
  const { note } = notes;
  noteForeignFields(request, note);
  const { messages, origins } = yield* allMessages(request, note);
  const { tools, places } = chatTools(request.tools, note);
  const { tool_choice: choice, thinking, output_config: output } = request;
  const oneOnly = choice && "disable_parallel_tool_use" in choice;
  const format = replyFormat(request, note);
  const isNative = notes.first() !== undefined;
  // Tools that chat completions has no words for are tools too.
  const hasTools = tools.length > 0 || isNative;
  const body = {
    model: request.model,
    messages: answering(messages, request.messages, isNative),
    ...(tools.length > 0 && {
      tools,
      // Without a choice the model decides, whatever the default of chat completions is.
      tool_choice: choice ? chatToolChoice(choice, isNative) : "auto",
      parallel_tool_calls: oneOnly && choice.disable_parallel_tool_use ? false : undefined,
    }),
    // Without any tool, the check of chat completions refuses a choice that demands a call.
    ...(choice && !hasTools && demandsCall(choice) && { tool_choice: "required" }),
    response_format: format,
    thinking: { type: thinking?.type === "unknown" ? "adaptive" : (thinking?.type ?? "disabled") },
    reasoning_effort: output?.effort ?? effortFor(thinking),
  };
  const formatField = output?.format ? ["output_config", "format"] : ["output_format"];
  return { body, clientPath: createClientPath({ origins, tools: places, formatField }) };
}

function noteForeignFields(request: Countable, note: Notes["note"]): void {
  const { container, mcp_servers, context_management, thinking, tool_choice, messages } = request;
  if (container !== undefined) note(["container"], "a container");
  if (mcp_servers.length > 0) note(["mcp_servers"], "an MCP server of the provider");
  if (request.thread !== undefined) note(["thread"], "a thread, which the provider keeps,");
  if (request.compaction !== undefined) note(["compaction"], "a compaction");
  if (thinking?.type === "unknown")
    note(["thinking", "type"], `thinking of the type ${JSON.stringify(thinking.name)}`);
  if (tool_choice?.type === "unknown")
    note(["tool_choice", "type"], `a choice of the type ${JSON.stringify(tool_choice.name)}`);
  // What clears old content only spares tokens.
  for (const [index, { type }] of (context_management?.edits ?? []).entries())
    if (!type.startsWith("clear_"))
      note(["context_management", "edits", index], `an edit of the type ${JSON.stringify(type)}`);
  for (const [index, message] of messages.entries())
    if (message.role === "system" && (message.clear_at ?? "never") !== "never")
      note(["messages", index, "clear_at"], "an instruction that is cleared");
}

function* allMessages({ system, messages }: Countable, note: Notes["note"]) {
  const translated: object[] = [];
  const origins: number[] = [];
  const blocks = typeof system === "string" ? [{ type: "text" as const, text: system }] : system;
  const parts = systemParts(
    (blocks ?? []).map((block) => ({ cache_control: undefined, ...block })),
    ([, index = 0], what) => note(["system", index], what),
  );
  if (parts.length > 0) {
    translated.push({ role: "system", content: parts });
    origins.push(-1);
  }
  for (const [index, message] of messages.entries()) {
    const own = chatMessages(message, (path, what) => note(["messages", index, ...path], what));
    for (const each of own) {
      translated.push(each);
      origins.push(index);
    }
    yield;
  }
  return { messages: translated, origins };
}

/** Those that chat completions knows, and the place of each among the client's. */
function chatTools(tools: readonly ClientTool[], note: Notes["note"]) {
  if (tools.length > MAX_TOOLS) note(["tools"], `more than ${MAX_TOOLS} tools`);
  const isUnknown = (tool: ClientTool): tool is Unknown => "type" in tool;
  const known: object[] = [];
  const places: number[] = [];
  for (const [index, tool] of tools.entries()) {
    if (isUnknown(tool))
      note(["tools", index, "type"], `a tool of the type ${JSON.stringify(tool.name)}`);
    else if (!CHAT_TOOL_NAME.test(tool.name))
      note(["tools", index, "name"], "a name of another form than 1 to 64 of A-Z a-z 0-9 _ -");
    else {
      known.push(chatTool(tool));
      places.push(index);
    }
  }
  return { tools: known.slice(0, MAX_TOOLS), places };
}

function chatTool(tool: Exclude<ClientTool, Unknown>): object {
  const { name, description, input_schema: parameters, strict, cache_control } = tool;
  const declared = { name, description, parameters, strict };
  return { type: "function", function: declared, ...(cache_control && { cache_control }) };
}

const demandsCall = ({ type }: NonNullable<Countable["tool_choice"]>): boolean =>
  type === "any" || type === "tool";

/** `isForeign`: the tool that is named may be one that chat completions does not know. */
function chatToolChoice(
  choice: NonNullable<Countable["tool_choice"]>,
  isForeign: boolean,
): unknown {
  if (choice.type === "any") return "required";
  if (choice.type === "unknown") return "auto";
  if (choice.type !== "tool") return choice.type;
  return isForeign ? "required" : { type: "function", function: { name: choice.name } };
}

function replyFormat({ output_config, output_format }: Countable, note: Notes["note"]) {
  const format = output_config?.format ?? output_format;
  if (!format) return undefined;
  if (format.type === "json_schema")
    return {
      type: "json_schema",
      json_schema: { name: "reply", schema: format.schema, strict: true },
    };
  const path = output_config?.format ? ["output_config", "format"] : ["output_format"];
  note(path, `a format of the type ${JSON.stringify(format.name)}`);
  return undefined;
}

/** How deep a model without a budget is to think, by the budget in tokens. */
function effortFor(thinking: Countable["thinking"]): string | undefined {
  if (thinking?.type !== "enabled") return undefined;
  if (thinking.budget_tokens < 4_096) return "low";
  return thinking.budget_tokens < 16_384 ? "medium" : "high";
}
