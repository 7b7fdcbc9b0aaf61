// The OpenAI-compatible dialect: what most providers and all local servers speak, each a little differently (WIRE.md 6).
import { createHash, randomBytes } from "node:crypto";
import type { ChatRequest, Message } from "../protocol/chat-request.ts";
import { asArray, asCount, asObject, asString } from "../protocol/foreign.ts";
import { makeUsage, type Part } from "../protocol/reply.ts";
import type { FinishReason, TokenLogprob, Usage } from "../protocol/shapes.ts";
import { ProviderFault, type Decoder, type Dialect, type Target } from "./dialect.ts";
import { faultInside, faultOf, retryAfterMs, type ErrorWords } from "./faults.ts";

/** How a provider's thinking is switched; WIRE.md 6, column "Thinking on / off". */
export const THINKING_SWITCHES = ["thinking", "reasoning_effort", "enable_thinking", "chat_template_kwargs", "always", "none"] as const;
export type ThinkingSwitch = (typeof THINKING_SWITCHES)[number];

export function createOpenaiDialect(options: { readonly thinking: ThinkingSwitch }): Dialect {
  return {
    request: (chat, target) => ({ path: "/chat/completions", headers: {}, body: JSON.stringify(requestBody(chat, target, options.thinking)) }),
    reply(json) {
      const { message, error } = asObject(asArray(asObject(json)["choices"])[0]);
      if (message === undefined && error === undefined) throw errorIn(json) ?? new ProviderFault("upstream_error", "the reply has no message");
      const parts = createDecoder().push(json);
      // Older servers leave finish_reason null in whole replies. The reply is there, so it is finished.
      return parts.some((part) => part.type === "finish") ? parts : [...parts, { type: "finish", reason: "stop" }];
    },
    decoder: createDecoder,
    error: (status, headers, body) => faultOf(status, errorWords(body), retryAfterMs(headers.get("retry-after"), Date.now())),
  };
}

/** Out: the request. */
function requestBody(chat: ChatRequest, target: Target, thinkingSwitch: ThinkingSwitch): object {
  const thinking = chat.thinking && target.reasoning;
  const echoReasoning = thinking && thinkingSwitch === "thinking";
  const { temperature, top_p, frequency_penalty, presence_penalty, stop, tools, response_format, seed } = chat;
  return {
    model: target.upstreamModel,
    messages: chat.messages.map((message) => wireMessage(message, echoReasoning)),
    stream: chat.stream || undefined,
    // Usage is always asked for, whether or not the client wants to see it: the bill needs it.
    stream_options: chat.stream ? { include_usage: true } : undefined,
    temperature, max_tokens: chat.maxTokens, top_p, frequency_penalty, presence_penalty, stop, tools,
    tool_choice: tools && chat.tool_choice,
    parallel_tool_calls: tools && chat.parallel_tool_calls,
    response_format,
    logprobs: chat.logprobs || undefined,
    top_logprobs: chat.logprobs ? chat.top_logprobs : undefined,
    seed,
    // Providers ask for a stable pseudonym of the end user; who it is stays here.
    user: chat.user === undefined ? undefined : createHash("sha256").update(chat.user).digest("hex").slice(0, 32),
    ...(target.reasoning && THINKING_FIELDS[thinkingSwitch](thinking, thinking ? chat.effort : undefined)),
  };
}

/** Where there is a switch, it is set to off unless the client asked for thinking: many think by default (WIRE D5). */
const THINKING_FIELDS: { readonly [name in ThinkingSwitch]: (on: boolean, effort: string | undefined) => object } = {
  thinking: (on, reasoning_effort) => ({ thinking: { type: on ? "enabled" : "disabled" }, reasoning_effort }),
  reasoning_effort: (on, effort = "medium") => ({ reasoning_effort: on ? effort : "none" }),
  enable_thinking: (on, reasoning_effort) => ({ enable_thinking: on, reasoning_effort }),
  // Chat templates name the switch one way or the other; the one that they do not know does nothing.
  chat_template_kwargs: (on, reasoning_effort) => ({ chat_template_kwargs: { enable_thinking: on, thinking: on }, reasoning_effort }),
  always: (_on, reasoning_effort) => ({ reasoning_effort }),
  none: () => ({}),
};

/** The known fields of a message. `echoReasoning`: tool-call turns must carry their reasoning, if only as "". */
function wireMessage(message: Message, echoReasoning: boolean): object {
  if (message.role !== "assistant") return message;
  const { role, content, tool_calls, reasoning_content } = message;
  if (tool_calls.length === 0) return { role, content };
  return { role, content, ...(echoReasoning && { reasoning_content: reasoning_content ?? "" }), tool_calls };
}

/** Finish reasons as providers spell them; `failed` ones mean that the generation broke off (WIRE.md 2). */
const FINISH_REASONS: { readonly [reason: string]: FinishReason | "failed" } = {
  length: "length", max_tokens: "length", model_length: "length", model_context_window_exceeded: "length",
  tool_calls: "tool_calls", function_call: "tool_calls", tool_use: "tool_calls",
  content_filter: "content_filter", sensitive: "content_filter", refusal: "content_filter",
  insufficient_system_resource: "failed", network_error: "failed", abort: "failed", error: "failed",
};

/** One tool call on its way in. A provider's index is its own affair; `call` is ours. */
interface OpenCall {
  call: number; // -1 until its name has come
  id: string; name: string;
  early: string; // arguments that came before the name
}

function createDecoder(): Decoder {
  const open = new Map<string | number, OpenCall>();
  let last: OpenCall | undefined;
  let count = 0;

  function toolParts(fragment: Record<string, unknown>, parts: Part[]): void {
    const fn = asObject(fragment["function"]);
    const id = asString(fragment["id"]) || undefined;
    const name = asString(fn["name"]) || undefined;
    const slot = asCount(fragment["index"]) ?? id;
    let current = slot === undefined ? (name === undefined ? last : undefined) : open.get(slot);
    // Some providers give every parallel call the index 0: another name, or a name with another id, is another call.
    const another = current && current.call !== -1 && name !== undefined && (name !== current.name || (id !== undefined && id !== current.id));
    if (!current || another) {
      current = { call: -1, id: id ?? `call_${randomBytes(12).toString("hex")}`, name: "", early: "" };
      open.set(slot ?? current.id, current);
    }
    last = current;
    const given = fn["arguments"];
    const text = current.early + (asString(given) ?? (given === undefined || given === null ? "" : JSON.stringify(given)));
    if (current.call === -1) {
      if (name === undefined) {
        current.early = text;
        return;
      }
      current.call = count++;
      current.name = name;
      parts.push({ type: "tool_call", call: current.call, id: current.id, name });
    }
    if (text !== "") parts.push({ type: "tool_arguments", call: current.call, text });
    current.early = "";
  }

  return {
    push(json) {
      const event = asObject(json);
      const choice = asObject(asArray(event["choices"])[0]);
      const error = errorIn(event) ?? errorIn(choice);
      if (error) throw error;
      const parts: Part[] = [];
      const message = asObject(choice["delta"] ?? choice["message"]);
      const logprobs = asObject(choice["logprobs"]);
      const [text, thought] = splitContent(message["content"]);
      const reasoning = thought + (asString(message["reasoning_content"]) || asString(message["reasoning"]) || "");
      pushText(parts, "reasoning", reasoning, logprobs["reasoning_content"]);
      pushText(parts, "text", text, logprobs["content"]);
      pushText(parts, "refusal", asString(message["refusal"]) ?? "", logprobs["refusal"]);
      for (const fragment of asArray(message["tool_calls"])) toolParts(asObject(fragment), parts);
      const finish = asString(choice["finish_reason"]);
      if (finish) {
        const reason = FINISH_REASONS[finish] ?? "stop";
        if ([...open.values()].some(({ call }) => call === -1)) throw new ProviderFault("upstream_error", "a tool call without a name");
        if (reason === "failed") throw new ProviderFault("upstream_error", `the provider gave up: finish_reason ${finish}`);
        parts.push({ type: "finish", reason });
      }
      const usage = readUsage(event["usage"]) ?? readUsage(choice["usage"]) ?? readUsage(asObject(event["x_groq"])["usage"]);
      if (usage) parts.push({ type: "usage", usage });
      return parts;
    },
  };
}

function pushText(parts: Part[], type: "text" | "reasoning" | "refusal", text: string, given: unknown): void {
  const logprobs = Array.isArray(given) && given.length > 0 ? given.map(tokenLogprob) : undefined;
  if (text !== "" || logprobs) parts.push({ type, text, logprobs });
}

/** Text and thinking of a content that is a string, or a list of typed parts (Mistral). */
function splitContent(content: unknown): [text: string, thinking: string] {
  if (!Array.isArray(content)) return [asString(content) ?? "", ""];
  let text = "";
  let thinking = "";
  for (const part of content.map(asObject)) {
    if (part["type"] === "thinking") thinking += splitContent(part["thinking"])[0];
    else text += asString(part["text"]) ?? "";
  }
  return [text, thinking];
}

/** WIRE.md 2: `bytes` is never missing, `top_logprobs` always a list. */
function tokenLogprob(given: unknown): TokenLogprob {
  return { ...tokenFields(given), top_logprobs: asArray(asObject(given)["top_logprobs"]).map(tokenFields) };
}

function tokenFields(given: unknown): Omit<TokenLogprob, "top_logprobs"> {
  const { token, logprob, bytes } = asObject(given);
  return {
    token: asString(token) ?? "",
    logprob: typeof logprob === "number" && Number.isFinite(logprob) ? logprob : -9999,
    bytes: Array.isArray(bytes) ? bytes.map((byte) => asCount(byte) ?? 0) : null,
  };
}

/** Usage wherever a vendor puts its cached and reasoning counts; undefined where there is none worth the name. */
function readUsage(given: unknown): Usage | undefined {
  const usage = asObject(given);
  const prompt = asCount(usage["prompt_tokens"]);
  const completion = asCount(usage["completion_tokens"]);
  if (prompt === undefined || completion === undefined || prompt + completion === 0) return undefined;
  const details = asObject(usage["prompt_tokens_details"] ?? usage["prompt_token_details"]);
  const cached = [usage["prompt_cache_hit_tokens"], usage["num_cached_tokens"], details["cached_tokens"], usage["cached_tokens"]].map(asCount);
  const reasoning = asCount(asObject(usage["completion_tokens_details"])["reasoning_tokens"]) ?? 0;
  // xAI counts reasoning beside completion_tokens, everybody else inside; its own total gives it away.
  const beside = reasoning > 0 && usage["total_tokens"] === prompt + completion + reasoning;
  const cacheHit = cached.find((count) => count !== undefined) ?? 0;
  return makeUsage({ prompt, completion: completion + (beside ? reasoning : 0), cacheHit, reasoning });
}

/** An error that stands inside a 200, whole or as an event. */
function errorIn(json: unknown): ProviderFault | undefined {
  const body = asObject(json);
  const error = body["error"] ?? (body["object"] === "error" ? body : undefined);
  if (error === undefined || error === null) return undefined;
  return faultInside(errorWords(error), asObject(error)["code"] ?? asObject(error)["status"]);
}

/** `{message, type, code}`, or the flat and bare forms that some providers use. */
function errorWords(body: unknown): ErrorWords {
  const outer = Array.isArray(body) ? body[0] : body; // Gemini's compatible endpoint wraps it in a list
  const error = asObject(outer)["error"] ?? outer;
  const { message, detail, type, code } = asObject(error);
  const text = asString(error) ?? asString(message) ?? (detail === undefined ? "" : JSON.stringify(detail));
  return { message: text, code: asString(code) ?? "", type: asString(type) ?? "" };
}
