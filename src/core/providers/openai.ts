// The OpenAI-compatible dialect: what most providers and all local servers speak, each a little differently (WIRE.md 6): how is
// data (vendors.json).
import type { ChatRequest, Message } from "../openai/request.ts";
import {
  asArray,
  asCount,
  asObject,
  asString,
  asTokenCount,
  tokenCounter,
} from "../schema/untrusted-json.ts";
import { randomHex } from "../ids.ts";
import { tokenLogprob } from "../openai/logprobs.ts";
import type { Part } from "../openai/parts.ts";
import type { UsageReport } from "../openai/usage.ts";
import {
  finishPart,
  finishReasonOf,
  ProviderError,
  throwErrorIn,
  withUsage,
  type Decoder,
  type Dialect,
  type Target,
} from "./dialect.ts";
import thinkingJson from "./thinking.json" with { type: "json" };
import { effortOf, parametersOf, type Traits } from "./traits.ts";

export const openaiDialect: Dialect = {
  auth: (key) => ({ Authorization: `Bearer ${key}` }),
  request: (chat, target) => ({ path: "/chat/completions", body: requestBody(chat, target) }),
  isReply: (json) => choiceIn(json)["message"] !== undefined || isFiltered(choiceIn(json)),
  decoder: ({ traits }) => createDecoder(traits),
};

/** The first of the choices: there is no other. */
const choiceIn = (json: unknown) => asObject(asArray(asObject(json)["choices"])[0]);

/** A reply of which the provider's filter has left nothing may come without a message (Azure). */
const isFiltered = (choice: Record<string, unknown>): boolean =>
  finishReasonOf(choice["finish_reason"]) === "content_filter";

/** Out: the request. */
function requestBody(chat: ChatRequest, { upstreamModel, reasoning, traits }: Target): object {
  const thinking = chat.wantsThinking && reasoning;
  const thinks = thinking || (reasoning && (!traits.thinking_off || traits.thinking === "always")); // asked or not
  const echo = thinks
    ? (traits.echo ?? (traits.thinking === "thinking" ? "reasoning_content" : "none"))
    : "none";
  const parameters: { [name: string]: unknown } = parametersOf(chat, traits);
  for (const [name, other] of traits.rename)
    [parameters[name], parameters[other]] = [undefined, parameters[name]];
  const body = {
    model: upstreamModel,
    messages: chat.messages.map((message) => wireMessage(message, echo)),
    stream: chat.stream || undefined,
    // Usage is always asked for, whether or not the client wants to see it: the bill needs it.
    stream_options: chat.stream && traits.ask_usage ? { include_usage: true } : undefined,
    response_format: chat.response_format,
  };
  return Object.assign(
    body,
    parameters,
    toolFields(chat, traits),
    reasoning && thinkingFields(thinking, chat.effort, traits),
  );
}

/** The tools, and which of them is to be called, as far as the server has words for it; what it has none for never comes here. */
function toolFields({ tools, tool_choice: choice }: ChatRequest, traits: Traits): object {
  if (!tools || (choice === "none" && traits.tool_choice === "auto"))
    return { parallel_tool_calls: undefined };
  if (traits.tool_choice !== "any" || choice === "none" || choice === "auto")
    return { tools, tool_choice: choice };
  const named =
    typeof choice === "object"
      ? tools.filter((tool) => tool.function.name === choice.function.name)
      : tools;
  return { tools: named, tool_choice: "any" };
}

/** How thinking is switched on and off. Chat templates name it one way or the other; the one that they do not know does nothing. */
const SWITCHES: {
  readonly [name in Traits["thinking"]]?: { readonly on: object; readonly off: object };
} = thinkingJson;
/** Where there is a switch, it is set to off unless the client asked for thinking: many think by default (WIRE D5). */
function thinkingFields(on: boolean, wanted: string | undefined, traits: Traits): object {
  const said = SWITCHES[traits.thinking]?.[on ? "on" : "off"];
  if (!said || (!on && !traits.thinking_off)) return {};
  const effort = on
    ? effortOf(wanted ?? (traits.thinking === "reasoning_effort" ? "medium" : undefined), traits)
    : undefined;
  if (effort === undefined) return said;
  return traits.thinking === "reasoning"
    ? { reasoning: { effort } }
    : { ...said, reasoning_effort: effort };
}

/** The known fields of a message. `echo`: where tool-call turns must carry their reasoning, if only as "". */
function wireMessage(message: Message, echo: NonNullable<Traits["echo"]>): object {
  if (message.role !== "assistant") return message;
  const { role, content, tool_calls, reasoning_content = "" } = message;
  if (tool_calls.length === 0) return { role, content };
  return { role, content, ...(echo !== "none" && { [echo]: reasoning_content }), tool_calls };
}

/** Calls whose name is to come, and the arguments of one that are held until then: bounds for streams without end. */
const MAX_NAMELESS = 1_000;
const MAX_HELD_CHARS = 1024 * 1024;

/** One tool call on its way in. `call` is our own index, absent until its name has come; till then its arguments are `held`. */
interface OpenCall {
  readonly id: string;
  call?: number;
  name?: string;
  held: string;
}

function createDecoder({
  think_tags,
  repeats_reasoning,
  hidden_thinking_in_total,
}: Traits): Decoder {
  const split = think_tags ? createThinkSplitter() : undefined;
  let lastReasoning = "";
  const open = new Map<unknown, OpenCall>(); // by index, else by id
  let nameless = 0; // calls whose name has not come
  let last: unknown; // where the last fragment belonged; one that says nothing of it belongs there too
  let count = 0;

  function toolParts(fragment: Record<string, unknown>, parts: Part[]): void {
    const { name: called, arguments: given } = asObject(fragment["function"]);
    const [id, name] = [asString(fragment["id"]) || undefined, asString(called) || undefined];
    last = asCount(fragment["index"]) ?? id ?? (name === undefined ? last : Symbol());
    let current = open.get(last);
    // Some providers give every parallel call the index 0: another name, or a name with another id, is another call.
    const another =
      current?.name !== undefined &&
      name !== undefined &&
      (name !== current.name || (id !== undefined && id !== current.id));
    if (!current || another) {
      current = { id: id ?? `call_${randomHex(12)}`, held: "" };
      open.set(last, current);
      nameless += 1;
      if (nameless > MAX_NAMELESS)
        throw new ProviderError("upstream_error", `more than ${MAX_NAMELESS} calls without a name`);
    }
    current.held +=
      asString(given) ?? (given === undefined || given === null ? "" : JSON.stringify(given));
    if (name !== undefined && current.call === undefined) {
      current.name = name;
      current.call = count++;
      nameless -= 1;
      parts.push({ type: "tool_call", call: current.call, id: current.id, name });
    }
    if (current.call === undefined && current.held.length > MAX_HELD_CHARS)
      throw new ProviderError("upstream_error", "arguments without end before a call's name");
    if (current.call === undefined || current.held === "") return;
    parts.push({ type: "tool_arguments", call: current.call, text: current.held });
    current.held = "";
  }

  return withUsage((event) => usageIn(event, hidden_thinking_in_total), {
    push(json) {
      const event = asObject(json);
      const choice = choiceIn(event);
      throwErrorIn(event);
      throwErrorIn(choice);
      const parts: Part[] = [];
      const message = asObject(choice["delta"] ?? choice["message"]);
      const logprobs = asObject(choice["logprobs"]);
      const finish = asString(choice["finish_reason"]);
      const over = Boolean(finish) || choice["message"] !== undefined; // older servers leave the reason null in whole replies
      const [text, tagged] = split
        ? split(textIn(message["content"]), over)
        : [textIn(message["content"]), ""];
      const given = asString(message["reasoning_content"]) || asString(message["reasoning"]) || "";
      const reasoning =
        tagged +
        thoughtsIn(message["content"]) +
        (repeats_reasoning && given === lastReasoning ? "" : given);
      lastReasoning = given;
      const probs = splitLogprobs(logprobs, reasoning, text);
      pushText(parts, "reasoning", reasoning, probs.reasoning);
      pushText(parts, "text", text, probs.text);
      pushText(parts, "refusal", asString(message["refusal"]) ?? "", logprobs["refusal"]);
      for (const fragment of asArray(message["tool_calls"])) toolParts(asObject(fragment), parts);
      if (over && nameless > 0)
        throw new ProviderError("upstream_error", "a tool call without a name", {
          fromContent: true,
        });
      parts.push(...finishPart(finish));
      return parts;
    },
  });
}

function pushText(
  parts: Part[],
  type: "text" | "reasoning" | "refusal",
  text: string,
  given: unknown,
): void {
  const logprobs = Array.isArray(given) && given.length > 0 ? given.map(tokenLogprob) : undefined;
  if (text !== "" || logprobs) parts.push({ type, text, logprobs });
}

/** The log probabilities of the thinking and of the text. Some servers list the tokens of both under `content`, the thinking first: those
 * that the text, counted from its end in bytes, does not need are the thinking's, and stay hidden where the thinking does. */
function splitLogprobs(
  { content, reasoning_content }: Record<string, unknown>,
  reasoning: string,
  text: string,
): { readonly reasoning: unknown; readonly text: unknown } {
  if (reasoning === "" || !Array.isArray(content) || Array.isArray(reasoning_content))
    return { reasoning: reasoning_content, text: content };
  let first = content.length;
  let missing = Buffer.byteLength(text);
  while (first > 0 && missing > 0) {
    first -= 1;
    const { token, bytes } = tokenLogprob(content[first]);
    missing -= bytes?.length ?? Buffer.byteLength(token);
  }
  return { reasoning: content.slice(0, first), text: content.slice(first) };
}

/** Text and thinking of a content that is a string, or a list of parts, in which thinking is a list of its own (Mistral). */
const textIn = (content: unknown): string =>
  asString(content) ??
  asArray(content)
    .map((part) => asString(asObject(part)["text"]) ?? "")
    .join("");
const thoughtsIn = (content: unknown): string =>
  asArray(content)
    .map((part) => textIn(asObject(part)["thinking"]))
    .join("");

/** The usage of an event, in any of the three places where vendors put it. */
function usageIn(json: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const event = asObject(json);
  return (
    readUsage(event["usage"], hiddenThinkingInTotal) ??
    readUsage(choiceIn(event)["usage"], hiddenThinkingInTotal) ??
    readUsage(asObject(event["x_groq"])["usage"], hiddenThinkingInTotal)
  );
}

/** Usage wherever a vendor puts its cached and reasoning counts; undefined where there is none worth the name. */
function readUsage(given: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const usage = asObject(given);
  const count = tokenCounter(usage);
  const prompt = count("prompt_tokens");
  const completion = count("completion_tokens");
  if ((prompt ?? 0) + (completion ?? 0) === 0) return undefined;
  const details = asObject(usage["prompt_tokens_details"] ?? usage["prompt_token_details"]);
  const cached = [
    usage["prompt_cache_hit_tokens"],
    usage["num_cached_tokens"],
    details["cached_tokens"],
    usage["cached_tokens"],
  ].map(asTokenCount);
  const reasoning = tokenCounter(usage["completion_tokens_details"])("reasoning_tokens") ?? 0;
  const cacheHit = cached.find((count) => count !== undefined) ?? 0;
  if (prompt === undefined || completion === undefined)
    return { prompt, completion, cacheHit, reasoning };
  const total = count("total_tokens") ?? 0;
  // xAI counts reasoning beside completion_tokens, everybody else inside; its own total gives it away.
  const beside = reasoning > 0 && total === prompt + completion + reasoning;
  const stated = completion + (beside ? reasoning : 0);
  // What the total has beyond the two counts are thoughts that are counted nowhere else.
  const hidden = hiddenThinkingInTotal ? Math.max(0, total - prompt - stated) : 0;
  return { prompt, completion: stated + hidden, cacheHit, reasoning: reasoning + hidden };
}

const [OPEN, CLOSE] = ["<think>", "</think>"];
/** What begins with so many blanks has no thinking before it. */
const MAX_BLANKS = 10_000;

/** Text in any pieces to what of it is the answer and what is reasoning between tags at its beginning, for models that are flagged
 * so; all that is held back comes with the `last` piece. */
function createThinkSplitter() {
  let held = "";
  let [begun, inside] = [false, false];
  return (piece: string, last: boolean): [text: string, reasoning: string] => {
    held += piece;
    if (!begun) {
      const start = held.trimStart();
      if (OPEN.startsWith(start) && held.length < MAX_BLANKS && !last) return ["", ""]; // it may still become the tag
      [begun, inside] = [true, start.startsWith(OPEN)];
      if (inside) held = start.slice(OPEN.length);
    }
    const end = inside ? held.indexOf(CLOSE) : 0;
    const open = held.lastIndexOf("<"); // what the pieces so far end with may be the beginning of the tag
    let sure: number;
    if (end !== -1) sure = end;
    else if (!last && open !== -1 && CLOSE.startsWith(held.slice(open))) sure = open;
    else sure = held.length;
    const reasoning = held.slice(0, sure);
    held = held.slice(sure);
    if (end === -1) return ["", reasoning];
    const text = inside ? held.slice(CLOSE.length) : held;
    [held, inside] = ["", false];
    return [text, reasoning];
  };
}
