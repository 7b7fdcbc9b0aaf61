// Reads recorded replies of providers as wire.md "Towards providers" describes, without the
// gateway's dialects. The result is the reply that a client must get. The folder of a recording
// names its vendor. Only shapes that occur in the recordings are read: the tests of the dialects
// have other shapes, and test/recordings.test.ts those that are easily misread.

type Json = Record<string, any>;

export interface Call {
  /** Undefined: the provider stated none, and the gateway makes one. */
  readonly id: string | undefined;
  readonly name: string;
  /** A string: exactly these characters. Anything else: JSON with this value. */
  readonly args: unknown;
}

export interface Reply {
  readonly text: string;
  readonly thinking: string;
  readonly refusal: string;
  readonly calls: readonly Call[];
  /** The finish_reason that clients get. Undefined: they get an error. */
  readonly finish: string | undefined;
  /** Undefined: the provider stated no figures. */
  readonly usage: Json | undefined;
}

/** Reads a reply. A whole body counts as one event. */
export function readReply(vendor: string, events: readonly Json[]): Reply {
  let reader = openai;
  if (vendor === "anthropic") reader = anthropic;
  else if (vendor === "gemini") reader = gemini;
  const { reason, ...read } = reader(events, vendor);
  const finish = FINISH[reason];
  return {
    ...read,
    finish: finish === "stop" && read.calls.length > 0 ? "tool_calls" : finish,
  };
}

/** The result of a reader. `reason`: why the reply ended, in the provider's own word. */
type Read = Omit<Reply, "finish"> & { readonly reason: string };

const FINISH: Readonly<Record<string, string>> = {
  ...{ stop: "stop", STOP: "stop", end_turn: "stop", length: "length" },
  ...{ tool_calls: "tool_calls", tool_use: "tool_calls" },
};

const joined = (list: readonly Json[], member: string): string =>
  list.map((each) => each[member] ?? "").join("");
const ofType = (list: readonly Json[], type: string): Json[] =>
  list.filter((each) => each["type"] === type);

function usageOf(prompt: number, cached: number, completion: number, reasoning: number) {
  if (!(prompt >= 0 && completion >= 0 && prompt + completion > 0)) return undefined;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: cached,
    prompt_cache_miss_tokens: prompt - cached,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: Math.min(reasoning, completion) },
  };
}

// ---- OpenAI-compatible: wire.md "OpenAI-compatible providers"

/** The texts of a content: a string, or parts, of which only text and thinking count. */
function texts(content: unknown): { text: string; thinking: string } {
  if (!Array.isArray(content)) return { text: String(content ?? ""), thinking: "" };
  const thoughts = ofType(content, "thinking").flatMap(({ thinking }) => thinking);
  return { text: joined(ofType(content, "text"), "text"), thinking: joined(thoughts, "text") };
}

function openai(events: readonly Json[], vendor: string): Read {
  const choices: Json[] = events.flatMap((event) => event["choices"]?.[0] ?? []);
  const said: Json[] = choices.map(({ delta, message }) => delta ?? message);
  const thoughts = said.map(
    ({ reasoning_content, reasoning, content }) =>
      (reasoning_content ?? reasoning ?? "") + texts(content).thinking,
  );
  // xAI's streams may send a piece of thinking twice.
  const isTwice = (thought: string, at: number) => vendor === "xai" && thought === thoughts[at - 1];
  const calls: { index: unknown; id: string | undefined; name: string; args: string }[] = [];
  for (const { index, id, function: given } of said.flatMap(({ tool_calls }) => tool_calls ?? [])) {
    const begun = calls.find((call) => (id ? call.id === id : call.index === index));
    if (begun) begun.args += given.arguments;
    else calls.push({ index, id, name: given.name, args: given.arguments });
  }
  const usage: Json = events.findLast((event) => event["usage"])?.["usage"] ?? {};
  const { prompt_tokens_details: details, completion_tokens_details } = usage;
  const reasoning = completion_tokens_details?.reasoning_tokens ?? 0;
  return {
    text: said.map(({ content }) => texts(content).text).join(""),
    thinking: thoughts.filter((thought, at) => !isTwice(thought, at)).join(""),
    refusal: joined(said, "refusal"),
    calls: calls.map(({ index: _, ...call }) => call),
    reason: joined(choices, "finish_reason"),
    usage: usageOf(
      usage["prompt_tokens"],
      usage["prompt_cache_hit_tokens"] ?? details?.cached_tokens ?? 0,
      // xAI does not include thinking in the completion tokens.
      usage["completion_tokens"] + (vendor === "xai" ? reasoning : 0),
      reasoning,
    ),
  };
}

// ---- Anthropic: wire.md "Anthropic replies"

/** The members of a whole reply, also from a stream. A later figure replaces an earlier one. */
function anthropicReply(events: readonly Json[]): Json {
  const [first, ...rest] = events;
  if (first!["type"] === "message") return first!;
  const { usage: begun } = first!["message"];
  const { delta, usage } = ofType(rest, "message_delta").at(-1)!;
  const content = ofType(rest, "content_block_start").map(({ index, content_block }) => {
    const deltas = rest.flatMap((event) =>
      event["index"] === index ? (event["delta"] ?? []) : [],
    );
    const json = joined(deltas, "partial_json");
    const text = content_block.text + joined(deltas, "text");
    return { ...content_block, json, text, thinking: joined(deltas, "thinking") };
  });
  return { content, stop_reason: delta.stop_reason, usage: { ...begun, ...usage } };
}

function anthropic(events: readonly Json[]): Read {
  const { content, stop_reason, usage } = anthropicReply(events);
  const cached = usage.cache_read_input_tokens ?? 0;
  return {
    text: joined(ofType(content, "text"), "text"),
    thinking: joined(ofType(content, "thinking"), "thinking"),
    refusal: "",
    calls: ofType(content, "tool_use").map(({ id, name, json, input }) => ({
      id,
      name,
      args: json || input,
    })),
    reason: stop_reason,
    usage: usageOf(
      usage.input_tokens + (usage.cache_creation_input_tokens ?? 0) + cached,
      cached,
      usage.output_tokens,
      usage.output_tokens_details?.thinking_tokens ?? 0,
    ),
  };
}

// ---- Gemini: wire.md "Gemini replies"

function gemini(events: readonly Json[]): Read {
  const candidates: Json[] = events.flatMap((event) => event["candidates"] ?? []);
  const parts: Json[] = candidates.flatMap(({ content }) => content?.parts ?? []);
  const usage: Json = events.findLast((event) => event["usageMetadata"])?.["usageMetadata"] ?? {};
  const thoughts = usage["thoughtsTokenCount"] ?? 0;
  const said = parts.filter((part) => !part["thought"]);
  const thought = parts.filter((part) => part["thought"]);
  return {
    text: joined(said, "text"),
    thinking: joined(thought, "text"),
    refusal: "",
    calls: parts.flatMap(({ functionCall: call }) =>
      call ? [{ id: call.id, name: call.name, args: call.args }] : [],
    ),
    reason: joined(candidates, "finishReason"),
    usage: usageOf(
      usage["promptTokenCount"],
      usage["cachedContentTokenCount"] ?? 0,
      (usage["candidatesTokenCount"] ?? 0) + thoughts,
      thoughts,
    ),
  };
}
