// Reads recorded traffic of providers as wire.md says under "Towards providers" that it is to be
// read, without the gateway's dialects: what a client must get. It knows which vendor it reads by
// the name of the folder that the recording lies in.

type Json = Record<string, any>;

export interface Call {
  /** Absent: the provider gave none, and the gateway makes one. */
  readonly id: string | undefined;
  readonly name: string;
  /** A string: these very characters. Anything else: JSON that means this. */
  readonly args: unknown;
}

export interface Reply {
  readonly text: string;
  readonly thinking: string;
  readonly refusal: string;
  readonly calls: readonly Call[];
  /** As clients are told it; "failed": it failed at the provider; absent: it has no end. */
  readonly finish: string | undefined;
  /** Absent: no figures were given. */
  readonly usage: Json | undefined;
}

/** A whole body is one event. */
export function readReply(vendor: string, events: readonly Json[]): Reply {
  let reader = openai;
  if (vendor === "anthropic") reader = anthropic;
  else if (vendor === "gemini") reader = gemini;
  const read = reader(events, vendor);
  return {
    ...read,
    finish: read.finish === "stop" && read.calls.length > 0 ? "tool_calls" : read.finish,
  };
}

/**
 * The four that clients know, and a fifth for generations that failed; all others end as "stop"
 * does.
 */
const FINISH: readonly [finish: string, reasons: string][] = [
  ["length", "length max_tokens model_length model_context_window_exceeded MAX_TOKENS"],
  ["tool_calls", "tool_calls function_call tool_use"],
  [
    "content_filter",
    "content_filter sensitive refusal SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR",
  ],
  [
    "failed",
    "insufficient_system_resource network_error abort error function_call_filter MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE MISSING_THOUGHT_SIGNATURE",
  ],
];
/** Of "content_filter: SAFETY" the word before the colon counts. */
const finishOf = (reason: string): string =>
  FINISH.find(([, reasons]) => reasons.split(" ").includes(reason.split(":")[0]!))?.[0] ?? "stop";

/** `written`: of the prompt to the cache. */
function usageOf(
  prompt: number,
  { cached, written = 0 }: { readonly cached: number; readonly written?: number },
  completion: number,
  reasoning: number,
): Json | undefined {
  if (!(prompt >= 0 && completion >= 0 && prompt + completion > 0)) return undefined;
  const hit = Math.min(cached, prompt);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    prompt_tokens_details: {
      cached_tokens: hit,
      ...(written > 0 && { cache_write_tokens: Math.min(written, prompt - hit) }),
    },
    completion_tokens_details: { reasoning_tokens: Math.min(reasoning, completion) },
  };
}

// ---- OpenAI-compatible: wire.md "OpenAI-compatible providers"

/** A string, or parts of several types, of which texts and thinking count. */
function texts(content: unknown): { text: string; thinking: string } {
  if (!Array.isArray(content))
    return { text: typeof content === "string" ? content : "", thinking: "" };
  const textOf = (given: unknown) =>
    Array.isArray(given)
      ? given.map((part: Json) => part["text"] ?? "").join("")
      : String(given ?? "");
  const those = (type: string) =>
    content
      .filter((part: Json) => part["type"] === type)
      .map((part: Json) => textOf(part[type]))
      .join("");
  return { text: those("text"), thinking: those("thinking") };
}

/** A call whose fragments are being put together. */
interface OpenCall {
  readonly index: unknown;
  id: string | undefined;
  name: string;
  args: unknown;
}

/**
 * The call that a fragment belongs to: that with its id, without one that with its index, without
 * either the last one. Undefined: it begins another.
 */
function callOf(calls: readonly OpenCall[], { index, id, function: given = {} }: Json) {
  const latest = calls.findLast((call) => index === undefined || call.index === index);
  if (id)
    return calls.find((call) => call.id === id) ?? (latest?.id === undefined ? latest : undefined);
  return given.name && latest?.name !== "" ? undefined : latest;
}

function addFragment(calls: OpenCall[], fragment: Json): void {
  const { index, id, function: given = {} } = fragment;
  let call = callOf(calls, fragment);
  if (!call) {
    call = { index, id: undefined, name: "", args: "" };
    calls.push(call);
  }
  call.id ??= id || undefined;
  call.name ||= given.name ?? "";
  if (typeof given.arguments === "string") call.args = `${call.args}${given.arguments}`;
  else if (given.arguments) call.args = given.arguments;
}

/** The finish that an event tells of. */
function finishIn(choice: Json | undefined): string | undefined {
  if (choice?.["finish_reason"]) return finishOf(choice["finish_reason"]);
  // A whole message is an end in itself. What a filter has emptied may lack it, and has a reason.
  return choice?.["message"] ? "stop" : undefined;
}

const thoughtIn = (said: Json): string => said["reasoning_content"] ?? said["reasoning"] ?? "";

const choiceOf = (event: Json): Json | undefined =>
  event["choices"]?.find((each: Json) => (each["index"] ?? 0) === 0);

const usageIn = (event: Json): Json | undefined =>
  event["usage"] ?? choiceOf(event)?.["usage"] ?? event["x_groq"]?.usage;

/** What is read of the prompt from a cache, wherever a vendor says so. */
function cachedIn(usage: Json | undefined): number {
  const details = usage?.["prompt_tokens_details"] ?? usage?.["prompt_token_details"];
  const counts = [
    usage?.["prompt_cache_hit_tokens"],
    usage?.["num_cached_tokens"],
    details?.cached_tokens,
    usage?.["cached_tokens"],
  ];
  return counts.find((count) => count !== undefined && count !== null) ?? 0;
}

function openaiUsage(usage: Json | undefined, vendor: string): Reply["usage"] {
  const reasoning = usage?.["completion_tokens_details"]?.reasoning_tokens ?? 0;
  // xAI counts what was thought beside the completion, not in it.
  const completion = usage?.["completion_tokens"] + (vendor === "xai" ? reasoning : 0);
  const details = usage?.["prompt_tokens_details"];
  const written = details?.cache_write_tokens ?? details?.cache_creation_input_tokens ?? 0;
  return usageOf(
    usage?.["prompt_tokens"],
    { cached: cachedIn(usage), written },
    completion,
    reasoning,
  );
}

function openai(events: readonly Json[], vendor: string): Reply {
  let text = "";
  let thinking = "";
  let refusal = "";
  let finish: string | undefined;
  let usage: Json | undefined;
  let lastThought = "";
  const calls: OpenCall[] = [];

  /** xAI's streams may say a piece of thinking twice. */
  const think = (thought: string) => {
    if (thought === "") return;
    if (vendor !== "xai" || thought !== lastThought) thinking += thought;
    lastThought = thought;
  };

  for (const event of events) {
    const choice = choiceOf(event);
    usage = usageIn(event) ?? usage;
    if (event["error"] || choice?.["error"]) finish = "failed";
    const said: Json = choice?.["delta"] ?? choice?.["message"] ?? {};
    const parts = texts(said["content"]);
    think(thoughtIn(said) + parts.thinking);
    text += parts.text;
    refusal += said["refusal"] ?? "";
    for (const fragment of said["tool_calls"] ?? []) addFragment(calls, fragment);
    if (finish === "failed") continue;
    finish = choice?.["finish_reason"] ? finishIn(choice) : (finish ?? finishIn(choice));
  }

  return {
    text,
    thinking,
    refusal,
    calls: calls.map(({ id, name, args }) => ({ id, name, args: args || "{}" })),
    finish,
    usage: openaiUsage(usage, vendor),
  };
}

// ---- Anthropic: wire.md "Anthropic replies"

function addDelta(block: Json, delta: Json): void {
  if (delta["type"] === "text_delta") block["text"] += delta["text"];
  if (delta["type"] === "thinking_delta") block["thinking"] += delta["thinking"];
  if (delta["type"] === "input_json_delta") block["json"] += delta["partial_json"];
}

/** A later figure replaces an earlier one; null replaces nothing. */
const merged = (usage: Json, later: Json = {}): Json => ({
  ...usage,
  ...Object.fromEntries(Object.entries(later).filter(([, value]) => value !== null)),
});

function anthropic(events: readonly Json[]): Reply {
  /** All blocks in the order in which they began; those of a stream are filled by its deltas. */
  const blocks: Json[] = [];
  const open = new Map<number, Json>();
  let usage: Json = {};
  let reason: string | undefined;
  let ended = false;
  let failed = false;
  for (const event of events) {
    const delta: Json = event["delta"] ?? {};
    const block = open.get(event["index"]) ?? {};
    switch (event["type"]) {
      case "message":
        blocks.push(...event["content"]);
        [usage, reason, ended] = [event["usage"] ?? {}, event["stop_reason"], true];
        break;
      case "message_start":
        blocks.push(...(event["message"].content ?? []));
        usage = { ...event["message"].usage };
        break;
      case "content_block_start":
        open.set(event["index"], { ...event["content_block"], json: "" });
        blocks.push(open.get(event["index"])!);
        break;
      case "content_block_delta":
        addDelta(block, delta);
        break;
      case "message_delta":
        reason = delta["stop_reason"] ?? reason;
        usage = merged(usage, event["usage"]);
        break;
      case "message_stop":
        ended = true;
        break;
      case "error":
        failed = true;
    }
  }
  const those = (type: string) => blocks.filter((block) => block["type"] === type);
  const prompt =
    usage["input_tokens"] +
    (usage["cache_creation_input_tokens"] ?? 0) +
    (usage["cache_read_input_tokens"] ?? 0);
  const finish = () => {
    if (failed) return "failed";
    return ended || reason ? finishOf(reason ?? "") : undefined;
  };
  return {
    text: those("text")
      .map(({ text }) => text)
      .join(""),
    thinking: those("thinking")
      .map(({ thinking }) => thinking)
      .join(""),
    refusal: "",
    calls: those("tool_use").map(({ id, name, json, input }) => ({
      id,
      name,
      args: json || (input ?? {}),
    })),
    finish: finish(),
    usage: usageOf(
      prompt,
      {
        cached: usage["cache_read_input_tokens"] ?? 0,
        written: usage["cache_creation_input_tokens"] ?? 0,
      },
      usage["output_tokens"],
      usage["output_tokens_details"]?.thinking_tokens ?? 0,
    ),
  };
}

// ---- Gemini: wire.md "Gemini replies"

function gemini(events: readonly Json[]): Reply {
  let finish: string | undefined;
  let usage: Json | undefined;
  const parts: Json[] = [];
  for (const event of events) {
    const [candidate] = event["candidates"] ?? [];
    parts.push(...(candidate?.content?.parts ?? []));
    usage = event["usageMetadata"] ?? usage;
    if (candidate?.finishReason) finish = finishOf(candidate.finishReason);
    if (candidate === undefined && event["promptFeedback"]?.blockReason) finish = "content_filter";
    if (event["error"]) finish = "failed";
  }
  const said = (thought: boolean) =>
    parts
      .filter((part) => (part["thought"] === true) === thought)
      .map((part) => part["text"] ?? "")
      .join("");
  const thoughts = usage?.["thoughtsTokenCount"] ?? 0;
  const completion = (usage?.["candidatesTokenCount"] ?? 0) + thoughts;
  return {
    text: said(false),
    thinking: said(true),
    refusal: "",
    calls: parts
      .filter((part) => part["functionCall"])
      .map(({ functionCall: { id, name, args } }) => ({ id, name, args: args ?? {} })),
    finish,
    usage: usageOf(
      usage?.["promptTokenCount"] + (usage?.["toolUsePromptTokenCount"] ?? 0),
      { cached: usage?.["cachedContentTokenCount"] ?? 0 },
      completion,
      thoughts,
    ),
  };
}
