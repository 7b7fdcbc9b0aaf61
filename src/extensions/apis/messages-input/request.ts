// Translates a request of the Messages API to the core's own, and keeps the client's as the native
// request, for a provider of the same format.
import type { IncomingHttpHeaders } from "node:http";
import type { ParsedBody } from "../../../core/chat/client-api.ts";
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import {
  TOOL_NAME,
  withinBounds,
  type ChatRequest,
  type Tool,
} from "../../../core/openai/request.ts";
import { cut, fail, type Check } from "../../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { Steps } from "../../../core/turns.ts";
import { withParts } from "../../providers/cache-marks/index.ts";
import {
  checkedBody,
  completeSchema,
  createOpener,
  refuseOrphan,
  messageFields,
  type Body,
  type Sealer,
} from "../client-apis/index.ts";
import { conversationOf, type MarkedEntry, type Note } from "./messages.ts";
import { nativeBody } from "./native-body.ts";
import { countRequest, message, messagesRequest, type MessagesRequest } from "./schema.ts";

/** The dialect of the providers of this format. */
export const DIALECT = "anthropic";
const NEEDED = "needs a model of a provider that speaks the Messages API";
/** The bounds of a translated request, which are those of chat completions. */
const MAX_STOPS = 4;
const MAX_TOOLS = 128;
/** The headers that providers of the same format get. */
const PASSED_HEADERS = ["anthropic-version", "anthropic-beta", "anthropic-user-profile-id"];

/** Creates the reader of the requests that `check` accepts. */
const createReader = (check: Check<MessagesRequest>) =>
  function* read(
    parsed: ParsedBody,
    headers: IncomingHttpHeaders,
    open: Sealer["open"],
  ): Steps<ChatRequest> {
    const { request, body } = yield* checkedBody(parsed, check, "messages", message);
    return yield* chatOf(request, body, headers, open);
  };

/** Reads a request for a reply. Throws a ValidationError. */
export const readRequest = createReader(messagesRequest);

/** Reads a request for a count of tokens. Throws a ValidationError. */
export const readCountRequest = createReader(countRequest);

function* chatOf(
  request: MessagesRequest,
  body: Body,
  headers: IncomingHttpHeaders,
  open: Sealer["open"],
): Steps<ChatRequest> {
  let nativeOnly: NativeRequest["nativeOnly"];
  let untranslatedBytes = 0;
  const note: Note = (path, value) => {
    // Claude Code looks for a block type in the message, and then leaves out blocks of this type.
    const type = asString(asObject(value)["type"]);
    const message = type === undefined ? NEEDED : `${JSON.stringify(cut(type))} ${NEEDED}`;
    nativeOnly ??= { path: [...path], message };
    untranslatedBytes += bytesOf(value);
  };
  noteNativeOnlyFields(request, note);
  const { entries, orphan, found } = yield* conversationOf(request, note, createOpener(open));
  const { tools, toolMarks } = toolsOf(request, found, note);
  const { response_format, place } = replyFormat(request, note);
  if (orphan && !nativeOnly) refuseOrphan(orphan);
  yield;
  const { model, stream = false, temperature, top_p, max_tokens, stop_sequences } = request;
  return {
    ...messageFields(markedIn(entries, toolMarks), {
      response_format: place,
      stop: ["stop_sequences"],
    }),
    model,
    stream,
    temperature,
    top_p,
    max_tokens: max_tokens || undefined,
    maxTokens: max_tokens,
    stop: stop_sequences?.length ? stop_sequences.slice(0, MAX_STOPS) : undefined,
    user: request.metadata?.user_id,
    response_format,
    logprobs: false,
    ...toolUse(request, tools, nativeOnly !== undefined),
    toolMarks,
    ...thinkingOf(request),
    native: {
      dialect: DIALECT,
      body: nativeBody(body),
      headers: passedHeaders(headers),
      nativeOnly,
      untranslatedBytes,
    },
  };
}

/** The messages, with all their parts if anything has a mark for the provider's cache. */
function markedIn(entries: readonly MarkedEntry[], toolMarks: ReadonlyMap<string, object>) {
  const hasMark = ({ parts }: MarkedEntry): boolean => parts.some((part) => part.cache_control);
  if (toolMarks.size === 0 && !entries.some(hasMark)) return entries;
  return entries.map(({ message, parts, path }) => ({ message: withParts(message, parts), path }));
}

/** The size of a part as JSON, in bytes, without the data of media. */
function bytesOf(value: unknown): number {
  if (value === undefined) return 0;
  const withoutMedia = (name: string, member: unknown): unknown => (name === "data" ? "" : member);
  return Buffer.byteLength(JSON.stringify(value, withoutMedia));
}

const passedHeaders = (headers: IncomingHttpHeaders): Readonly<Record<string, string>> =>
  Object.fromEntries(
    PASSED_HEADERS.flatMap((name) => {
      const value = headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );

/** Fields that no other format has. */
const NATIVE_ONLY = [
  "top_k",
  "container",
  "mcp_servers",
  "thread",
  "compaction",
  "inference_geo",
] as const;

function noteNativeOnlyFields(request: MessagesRequest, note: Note): void {
  const { thinking, tool_choice, context_management, stop_sequences = [] } = request;
  for (const name of NATIVE_ONLY) if (request[name] !== undefined) note([name]);
  if (stop_sequences.length > MAX_STOPS) note(["stop_sequences"]);
  if (request.max_tokens === 0) note(["max_tokens"]);
  if (thinking?.type === "unknown") note(["thinking", "type"]);
  if (tool_choice?.type === "unknown") note(["tool_choice", "type"]);
  // Without an edit that clears old content, a request only uses more tokens.
  for (const [index, { type }] of (context_management?.edits ?? []).entries())
    if (!type.startsWith("clear_")) note(["context_management", "edits", index]);
}

/**
 * The client's own tools, and their marks for the provider's cache by name. `found`: the names of
 * tools that the model gets in spite of `defer_loading`.
 */
function toolsOf(request: MessagesRequest, found: ReadonlySet<string>, note: Note) {
  const tools: Tool[] = [];
  const places: number[] = [];
  const toolMarks = new Map<string, object>();
  for (const [index, tool] of request.tools.entries()) {
    if ("type" in tool) note(["tools", index, "type"], tool.value);
    else if (tool.defer_loading && !found.has(tool.name)) continue;
    else if (!TOOL_NAME.pattern.test(tool.name)) note(["tools", index, "name"], tool);
    else {
      tools.push(functionFor(tool));
      places.push(index);
      if (tool.cache_control) toolMarks.set(tool.name, tool.cache_control);
    }
  }
  if (tools.length > MAX_TOOLS) note(["tools"]);
  const kept = tools.slice(0, MAX_TOOLS);
  withinBounds(kept, (index) => ["tools", places[index]!, "input_schema"]);
  return { tools: kept, toolMarks };
}

type OwnTool = Exclude<MessagesRequest["tools"][number], { readonly type: string }>;

function functionFor({ name, description, input_schema, strict: isStrict }: OwnTool): Tool {
  const parameters = completeSchema(input_schema);
  const strict = isStrict && requiresAll(parameters) ? true : undefined;
  return { type: "function", function: { name, description, parameters, strict } };
}

/**
 * `isNativeOnly`: only a provider of this format can serve, and `tool_choice` may name its own
 * tools.
 */
function toolUse({ tool_choice: choice }: MessagesRequest, tools: Tool[], isNativeOnly: boolean) {
  const isDemanded = choice?.type === "any" || choice?.type === "tool";
  if (tools.length === 0) {
    if (isDemanded && !isNativeOnly)
      fail("invalid_parameter_combination", WITHOUT_TOOLS, ["tool_choice"]);
    return {};
  }
  const oneOnly =
    choice && "disable_parallel_tool_use" in choice && choice.disable_parallel_tool_use;
  const parallel_tool_calls = oneOnly ? false : undefined;
  // Without a choice the model decides, whatever the default of chat completions is.
  const decides = choice?.type === "none" ? ("none" as const) : ("auto" as const);
  const tool_choice = isDemanded ? ("required" as const) : decides;
  if (choice?.type !== "tool" || isNativeOnly) return { tools, tool_choice, parallel_tool_calls };
  const { name } = choice;
  if (!tools.some((tool) => tool.function.name === name))
    fail("invalid_value", "names a function that is not among the tools", ["tool_choice"]);
  const named = { type: "function" as const, function: { name } };
  return { tools, tool_choice: named, parallel_tool_calls };
}

const WITHOUT_TOOLS = 'may only be set, other than to "none", together with tools';

/** The format of the reply, and its path in the client's request. */
function replyFormat({ output_config, output_format }: MessagesRequest, note: Note) {
  const format = output_config?.format ?? output_format;
  const place = output_config?.format ? ["output_config", "format"] : ["output_format"];
  if (format?.type === "unknown") note(place);
  if (format?.type !== "json_schema") return { response_format: undefined, place };
  const { type, schema } = format;
  const strict = requiresAll(schema) ? true : undefined;
  const json_schema = { name: "reply", description: undefined, schema, strict };
  return { response_format: { type, json_schema }, place };
}

/**
 * Whether a schema requires all properties. OpenAI refuses other schemas as `strict`, while
 * Anthropic's strict schemas may have optional properties.
 */
function requiresAll(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  const { properties, required } = asObject(schema);
  const demanded = new Set(asArray(required));
  const isOptional = (name: string): boolean => !demanded.has(name);
  // A property may itself be named `properties`, as in GeoJSON.
  const parts = Object.entries(schema).flatMap(([name, part]) =>
    name === "properties" ? Object.values(asObject(part)) : [part],
  );
  return !Object.keys(asObject(properties)).some(isOptional) && parts.every(requiresAll);
}

function thinkingOf({ thinking, output_config }: MessagesRequest) {
  const wantsThinking = thinking?.type === "enabled" || thinking?.type === "adaptive";
  const isOmitted = thinking && "display" in thinking && thinking.display === "omitted";
  const effort = output_config?.effort ?? effortFor(thinking);
  return { wantsThinking, showThinking: wantsThinking && !isOmitted, effort };
}

/** Derives the effort from the budget in tokens, for models that take no budget. */
function effortFor(thinking: MessagesRequest["thinking"]) {
  if (thinking?.type !== "enabled") return undefined;
  if (thinking.budget_tokens < 4_096) return "low";
  return thinking.budget_tokens < 16_384 ? "medium" : "high";
}
