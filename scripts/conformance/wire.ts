// The replies of the suite's own provider, in the plain OpenAI-compatible format. Everything that a
// client must never see of a provider contains the word "canary".

import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Json } from "./shapes.ts";

/** The text of a good reply, with characters of one to four bytes. */
export const PIECES: readonly string[] = [
  ...["Grüße", ", 世界", "! 🎉", " And so on,", " to", " the end."],
];
export const TEXT = PIECES.join("");
export const THOUGHTS: readonly string[] = ["Let me", " think."];
export const USAGE = {
  prompt_tokens: 7,
  completion_tokens: 5,
  total_tokens: 12,
  completion_tokens_details: { reasoning_tokens: 3 },
};
export const CALLS = [
  { id: "call_a", type: "function", function: { name: "get_time", arguments: '{"city":"Oslo"}' } },
  { id: "call_b", type: "function", function: { name: "send_mail", arguments: '{"to":"ada"}' } },
] as const;
/** The path that a redirect leads to. Requests to it are recorded under this name. */
export const ELSEWHERE = "elsewhere";
/** Text that no client may see. */
export const CANARY = /canary/i;
/** Bytes that endless replies send before they stop. */
export const FLOOD_BYTES = 128 * 1024 * 1024;

/** A request to the provider, with its answer. */
export interface Asked {
  readonly body: Json;
  /** The number of earlier requests for this model, and on this connection. */
  readonly number: number;
  readonly position: number;
  readonly res: ServerResponse;
  /** Resolves with the model's next behaviour, once a check sets it. */
  readonly turned: () => Promise<string>;
}
/** `argument`: the number at the end of the name. */
export type Behaviour = (asked: Asked, argument: number) => unknown;

const HEAD = {
  id: "chatcmpl-canary",
  created: 1,
  model: "canary-model-2026-01-01",
  system_fingerprint: "fp_canary",
};
/** An error of the provider. */
export const WORDS = {
  error: {
    message: "canary: the key sk-canary-of-the-provider is no good at http://canary.internal",
    type: "canary_error",
    code: "canary",
  },
};
export const [SSE, JSON_TYPE] = ["text/event-stream", "application/json"];

/** A chunk of a stream. */
export const chunk = (delta?: object, finish_reason: string | null = null, more: object = {}) => ({
  ...HEAD,
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
/** An error in the middle of a stream, as OpenRouter sends it. */
export const ERROR_WITH_USAGE = chunk({ content: "" }, "error", { ...WORDS, usage: USAGE });
export const ROLE = chunk({ role: "assistant", content: "" });
export const TEXTS = PIECES.map((content) => chunk({ content }));
export const STOP = chunk({}, "stop");
/** A chunk that has only usage figures. */
export const usageChunk = (usage: unknown = USAGE) => ({ ...chunk(), choices: [], usage });
/** The chunks of a good reply without figures. */
export const SAID = [ROLE, ...TEXTS, STOP];
/** All chunks of a good reply. */
export const GOOD = [...SAID, usageChunk()];

/** An event of a stream, as text. */
export const event = (json: unknown) => `data: ${JSON.stringify(json)}\n\n`;
export const DONE = "data: [DONE]\n\n";
/** A whole stream, as text. */
export const stream = (events: readonly unknown[], end = DONE) => events.map(event).join("") + end;
export const GOOD_STREAM = stream(GOOD);

/** A whole reply. `more`: further members of the reply itself. */
export const whole = (message?: object, finish_reason = "stop", more: object = {}) =>
  JSON.stringify({
    ...HEAD,
    object: "chat.completion",
    choices: [{ index: 0, message: message && { role: "assistant", ...message }, finish_reason }],
    usage: USAGE,
    ...more,
  });
export const GOOD_REPLY = whole({ content: TEXT });

/** Writes the response head: of a stream if one was requested. Returns whether it is a stream. */
export function begin({ res, body }: Asked, headers: OutgoingHttpHeaders = {}): boolean {
  const streamed = body["stream"] === true;
  const usual = { "content-type": streamed ? SSE : JSON_TYPE, "x-canary": "canary" };
  res.writeHead(200, { ...usual, ...headers });
  res.flushHeaders();
  return streamed;
}

export type Bytes = string | Buffer;
/** Answers with a stream or with a whole reply, as requested. */
export const answers =
  (streamed: Bytes, json: Bytes = GOOD_REPLY, headers: OutgoingHttpHeaders = {}): Behaviour =>
  (asked) =>
    asked.res.end(begin(asked, headers) ? streamed : json);
/** Answers with a stream of these events, or with a whole reply, as requested. */
export const events = (list: readonly unknown[], json = GOOD_REPLY): Behaviour =>
  answers(stream(list), json);
/** Answers with a good reply that states these usage figures. */
export const withUsage = (usage: unknown) =>
  events([...SAID, usageChunk(usage)], whole({ content: TEXT }, "stop", { usage }));
/** Refuses with a status. `headers` and `body`: those of the response. */
export const refuses =
  (status: number, body: object = WORDS, headers: OutgoingHttpHeaders = {}): Behaviour =>
  ({ res }) =>
    res
      .writeHead(status, { "content-type": JSON_TYPE, "x-canary": "canary", ...headers })
      .end(JSON.stringify(body));

const fragment = (index: number | undefined, of: object) =>
  chunk({ tool_calls: [{ index, ...of }] });
const opening = ({ id, type, function: { name } }: (typeof CALLS)[number]) => ({
  id,
  type,
  function: { name, arguments: "" },
});
const split = (text: string) => [text.slice(0, 5), text.slice(5)];
const halves = ({ function: { arguments: text } }: (typeof CALLS)[number]) =>
  split(text).map((part) => ({ function: { arguments: part } }));
/** Tool calls in pieces: the opening and two halves of each, with indexes from `indexOf`. */
const inPiecesOf = (indexOf: (index: number) => number) =>
  CALLS.flatMap((call, index) =>
    [opening(call), ...halves(call)].map((piece) => fragment(indexOf(index), piece)),
  );
const tools = (fragments: readonly unknown[]) =>
  events(
    [ROLE, ...fragments, chunk({}, "tool_calls"), usageChunk()],
    whole({ content: null, tool_calls: CALLS }, "tool_calls"),
  );

/** Two tool calls in one reply. */
export const TWO_CALLS: Readonly<Record<string, Behaviour>> = {
  tools: tools(inPiecesOf((index) => index)),
  "tools-all-zero": tools(inPiecesOf(() => 0)),
  "tools-no-index": tools(CALLS.map((call) => fragment(undefined, call))),
  "tools-whole": tools([chunk({ tool_calls: CALLS.map((call, index) => ({ index, ...call })) })]),
  "tools-in-turn": tools([
    ...CALLS.map((call, index) => fragment(index, opening(call))),
    ...[0, 1].flatMap((half) => CALLS.map((call, index) => fragment(index, halves(call)[half]!))),
  ]),
  "tools-repeated": tools(
    CALLS.flatMap(({ id, type, function: { name, arguments: text } }, index) =>
      split(text).map((part) => fragment(index, { id, type, function: { name, arguments: part } })),
    ),
  ),
  "tools-far": tools(inPiecesOf((index) => index * 5 + 3)),
};
