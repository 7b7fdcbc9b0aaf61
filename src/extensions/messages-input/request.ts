// A request of the Messages API as the core's own: translated to chat completions, beside the
// request as the client wrote it, for a provider of the same format.
import type { IncomingHttpHeaders } from "node:http";
import { withCacheMarks } from "../cache-marks/index.ts";
import { chatRequest, type ChatRequest, type NativeRequest } from "../../core/openai/request.ts";
import { jsonObject, ValidationError, type ValidationIssue } from "../../core/schema/checker.ts";
import { chatMessages, systemParts } from "./content.ts";
import { nativeBody } from "./native-body.ts";
import {
  countRequest,
  messagesRequest,
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
const PASSED_HEADERS = ["anthropic-version", "anthropic-beta"];

/** What goes in which order, with the first thing that only a provider of the same format knows. */
interface Translation {
  readonly body: Readonly<Record<string, unknown>>;
  /** The index of the client's message that each of the messages comes from; -1: the system's. */
  readonly origins: readonly number[];
  readonly only: NativeRequest["only"];
}

/** A body that passes unread is written again for the provider, so its depth is bounded. */
const anyBody = jsonObject();

/** Throws a ValidationError. */
export function readRequest(json: unknown, headers: IncomingHttpHeaders): ChatRequest {
  const body = anyBody(json);
  const request = messagesRequest(body);
  const { temperature, top_p, max_tokens, stream, metadata, stop_sequences } = request;
  const foreign = createNotes();
  if (request.top_k !== undefined) foreign.note(["top_k"], "top_k");
  if (stop_sequences.length > MAX_STOPS)
    foreign.note(["stop_sequences"], `more than ${MAX_STOPS} stop sequences`);
  const translated = translate(request, foreign);
  return withNative(body, headers, {
    ...translated,
    body: {
      ...translated.body,
      max_tokens,
      stream,
      temperature,
      top_p,
      stop: stop_sequences.slice(0, MAX_STOPS),
      user: metadata?.user_id,
    },
  });
}

/** A request whose tokens are to be counted. Throws a ValidationError. */
export function readCountRequest(json: unknown, headers: IncomingHttpHeaders): ChatRequest {
  const body = anyBody(json);
  return withNative(body, headers, translate(countRequest(body), createNotes()));
}

function withNative(
  body: Readonly<Record<string, unknown>>,
  headers: IncomingHttpHeaders,
  { body: translated, origins, only }: Translation,
): ChatRequest {
  const chat = checked(translated, origins);
  const passed = PASSED_HEADERS.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  const native = {
    dialect: DIALECT,
    body: nativeBody(body),
    headers: Object.fromEntries(passed),
    only,
  };
  // A display other than that of the thoughts themselves leaves them out.
  const { display } = (body["thinking"] ?? {}) as { display?: unknown };
  const showThinking = chat.showThinking && display !== "omitted";
  return { ...chat, showThinking, native };
}

/** Checks the translated body. Issues are told at the client's own fields. */
function checked(translated: Translation["body"], origins: readonly number[]): ChatRequest {
  try {
    return withCacheMarks(chatRequest(translated), translated);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError(
      error.issues.map((issue) => ({ ...issue, path: clientPath(issue.path, origins) })),
    );
  }
}

function clientPath([field, index, ...rest]: Path, origins: readonly number[]): Path {
  if (field === "stop") return ["stop_sequences"];
  if (field === "messages" && typeof index === "number") {
    const origin = origins[index] ?? index;
    return origin === -1 ? ["system"] : ["messages", origin, "content"];
  }
  if (field !== "tools" || index === undefined) return field === undefined ? [] : [field];
  const [, member] = rest; // tools[0].function.parameters
  return ["tools", index, member === "parameters" ? "input_schema" : (member ?? "name")];
}

interface Notes {
  note(path: Path, what: string): void;
  first(): NativeRequest["only"];
}

function createNotes(): Notes {
  let first: NativeRequest["only"];
  return {
    note(path, what) {
      const message = `${what} needs a model of a provider that speaks the Messages API`;
      first ??= { path: [...path], message };
    },
    first: () => first,
  };
}

function translate(request: Countable, { note, first }: Notes): Translation {
  noteForeignFields(request, note);
  const { messages, origins } = allMessages(request, note);
  const tools = chatTools(request.tools, note);
  const { tool_choice: choice, thinking, output_config: output } = request;
  // Tools that chat completions has no words for are tools too.
  const hasTools = tools.length > 0 || first() !== undefined;
  const oneOnly = choice && choice.type !== "none" && choice.disable_parallel_tool_use;
  const body = {
    model: request.model,
    messages,
    ...(tools.length > 0 && {
      tools,
      // Without a choice the model decides, whatever the default of chat completions is.
      tool_choice: choice ? chatToolChoice(choice, first() !== undefined) : "auto",
      parallel_tool_calls: oneOnly ? false : undefined,
    }),
    // Without any tool, the check of chat completions refuses a choice that demands a call.
    ...(choice && !hasTools && demandsCall(choice) && { tool_choice: "required" }),
    response_format: replyFormat(request, note),
    thinking: { type: thinking?.type ?? "disabled" },
    reasoning_effort: output?.effort ?? effortFor(thinking),
  };
  return { body, origins, only: first() };
}

function noteForeignFields(request: Countable, note: Notes["note"]): void {
  const { container, mcp_servers, context_management } = request;
  if (container !== undefined) note(["container"], "a container");
  if (mcp_servers.length > 0) note(["mcp_servers"], "an MCP server of the provider");
  // What clears old content only spares tokens.
  for (const [index, { type }] of (context_management?.edits ?? []).entries())
    if (!type.startsWith("clear_"))
      note(["context_management", "edits", index], `an edit of the type ${JSON.stringify(type)}`);
}

function allMessages({ system, messages }: Countable, note: Notes["note"]) {
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
  }
  return { messages: translated, origins };
}

/** Those that chat completions knows. */
function chatTools(tools: readonly ClientTool[], note: Notes["note"]): readonly object[] {
  if (tools.length > MAX_TOOLS) note(["tools"], `more than ${MAX_TOOLS} tools`);
  const isUnknown = (tool: ClientTool): tool is Unknown => "type" in tool;
  const known: object[] = [];
  for (const [index, tool] of tools.entries()) {
    if (isUnknown(tool))
      note(["tools", index, "type"], `a tool of the type ${JSON.stringify(tool.name)}`);
    else if (!CHAT_TOOL_NAME.test(tool.name))
      note(["tools", index, "name"], "a name of another form than 1 to 64 of A-Z a-z 0-9 _ -");
    else known.push(chatTool(tool));
  }
  return known.slice(0, MAX_TOOLS);
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
  note(["output_config", "format"], `a format of the type ${JSON.stringify(format.name)}`);
  return undefined;
}

/** How deep a model without a budget is to think, by the budget in tokens. */
function effortFor(thinking: Countable["thinking"]): string | undefined {
  if (thinking?.type !== "enabled") return undefined;
  if (thinking.budget_tokens < 4_096) return "low";
  return thinking.budget_tokens < 16_384 ? "medium" : "high";
}
