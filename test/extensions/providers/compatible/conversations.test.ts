// Random conversations that the gateway accepts, said in each provider's format and held to its
// rules (those of the strict providers in support/), of which nothing may be lost; and random
// replies, streamed in each format and cut anywhere.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import type { Dialect, Target } from "../../../../src/core/providers/dialect.ts";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { VENDORS } from "../../../support/config.ts";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { createEventReader } from "../../../../src/core/http/event-reader.ts";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { gemini } from "../../../support/fake-gemini.ts";
import { PROVIDER_KEY, rule, sign, type Understood } from "../../../support/fake-provider.ts";
import type { Asked } from "../../../support/provider.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";

type Json = Record<string, any>;
type Random = ReturnType<typeof createRandom>;

const SEED = (Date.now() ^ process.pid) | 0;
const [CONVERSATIONS, REPLIES] = LONG ? [500, 300] : [120, 80];

/**
 * Runs for each number; what fails is told with what it takes to see it again: its seed. Sizes
 * grow, so the first is small.
 */
function forAll(count: number, run: (random: Random, size: number) => void): void {
  for (let at = 0; at < count; at += 1) {
    try {
      run(createRandom(SEED + at), 1 + Math.floor((at * 12) / count));
    } catch (error) {
      throw new Error(`seed ${SEED}, number ${at}: ${(error as Error).message}`);
    }
  }
}

/** A tool call of a conversation, and what became of it. */
interface Called {
  readonly id: string;
  readonly name: string;
  readonly word?: string;
  readonly known: boolean;
  result?: string;
}
/** A conversation, and what was said in it: words that occur nowhere else, by who said them. */
interface Told {
  readonly messages: Json[];
  readonly words: Record<"system" | "user" | "assistant", string[]>;
  readonly calls: Called[];
  readonly media: string[];
  /** Turns whose signatures are known: the calls of each. */
  readonly signed: Called[][];
}

const NAMES = ["f", "g", "get_time-2", "old"];
/** From all providers, and from clients that count. */
const IDS = [
  "call_0",
  "call_1",
  "call_1_2",
  "call_0_1",
  "call_0_2",
  "functions.f:0",
  "a b",
  "\u00fc/\u4f60",
  "__proto__",
  "0",
  "x".repeat(90),
];

function conversation(
  { random, between, pick }: Random,
  size: number,
  media: readonly string[],
): Told {
  const told: Told = {
    messages: [],
    words: { system: [], user: [], assistant: [] },
    calls: [],
    media: [],
    signed: [],
  };
  const { messages, words, calls } = told;
  let count = 0;
  const word = () => {
    count += 1;
    return `w${count}z`;
  };
  const late: Called[] = [];

  /** A text with a word of its own, if it is not empty; some have blanks around. */
  function text(role: keyof Told["words"]): string {
    if (random() < 0.2) return pick(["", " ", "\n\t"]);
    const own = word();
    words[role].push(own);
    return pick([own, ` ${own}\n`, `Say "${own}" \u{1f600}.\n\n`]);
  }
  const texts = (role: keyof Told["words"]) =>
    random() < 0.3
      ? Array.from({ length: between(0, 3) }, () => ({ type: "text", text: text(role) }))
      : text(role);

  function medium(): object {
    const own = word();
    const data = Buffer.from(own).toString("base64");
    const url = random() < 0.5 ? `data:image/png;base64,${data}` : `https://x.test/${own}.png`;
    const type = pick(media);
    told.media.push(type === "images" && url.startsWith("https") ? own : data);
    if (type === "images") return { type: "image_url", image_url: { url, detail: "low" } };
    return type === "audio"
      ? { type: "input_audio", input_audio: { data, format: "wav" } }
      : {
          type: "file",
          file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` },
        };
  }

  function answer(call: Called): void {
    const own = random() < 0.9 ? word() : undefined;
    if (own) call.result = own;
    const content =
      own === undefined
        ? pick(["", " ", "\n"])
        : pick([
            own,
            `{"a":"${own}"}`,
            `["${own}",1]`,
            `"${own}"`,
            `{"a":`.concat(own),
            ` ${own} `,
          ]);
    messages.push({
      role: "tool",
      tool_call_id: call.id,
      content: random() < 0.2 ? [{ type: "text", text: content }] : content,
    });
  }

  const idsOf = (known: boolean): string[] =>
    known ? [1, 2, 3].map(() => `toolu_${word()}`) : IDS.toSorted(() => random() - 0.5);

  function call(): void {
    const known = random() < 0.4; // by its signature, so it has an id that its provider made
    const made = idsOf(known)
      .slice(0, between(1, 3))
      .map((id): [Called, object] => {
        const own = random() < 0.8 ? word() : undefined;
        const args = pick(own === undefined ? ["", "{}", "null"] : argumentsWith(own));
        const called = { id, name: pick(NAMES), known, ...(own && { word: own }) };
        return [called, { id, type: "function", function: { name: called.name, arguments: args } }];
      });
    // After this they would answer another call.
    const before = late.filter(({ id }) => made.some(([called]) => called.id === id));
    for (const each of before) answer(late.splice(late.indexOf(each), 1)[0]!);
    messages.push({
      role: "assistant",
      content: random() < 0.5 ? null : texts("assistant"),
      tool_calls: made.map(([, each]) => each),
    });
    calls.push(...made.map(([called]) => called));
    if (known) told.signed.push(made.map(([called]) => called));
    for (const [called] of made.toSorted(() => random() - 0.5)) {
      const fate = random();
      if (fate < 0.7) answer(called);
      else if (fate < 0.85) late.push(called);
    }
  }

  for (let left = size; left > 0; left -= 1) {
    const kind = random();
    if (kind < 0.15)
      messages.push({ role: pick(["system", "developer"]), content: texts("system") });
    else if (kind < 0.45)
      messages.push({
        role: "user",
        content:
          media.length > 0 && random() < 0.3
            ? [{ type: "text", text: text("user") }, medium(), { type: "text", text: text("user") }]
            : texts("user"),
      });
    else if (kind < 0.65)
      messages.push({ role: "assistant", content: texts("assistant"), reasoning_content: "Hm." });
    else if (kind < 0.95) call();
    else late.splice(0).forEach(answer);
  }
  if (random() < 0.5) late.splice(0).forEach(answer);
  return told;
}

/** Arguments of a call with this word in them, not all of them JSON. */
const argumentsWith = (word: string): readonly string[] => [
  `{"x":"${word}"}`,
  `["${word}"]`,
  `"${word}"`,
  word,
  `{"x":"${word}`,
  `{"__proto__":{"x":"${word}"}}`,
];

const fn = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
});

/** Everything else that a request may say. */
function settings({ random, pick }: Random): Json {
  const maybe = (fields: Json, chance = 0.3): Json => (random() < chance ? fields : {});
  const tools = random() < 0.6;
  return {
    stream: random() < 0.5,
    ...maybe({ temperature: pick([0, 0.7, 2]) }),
    ...maybe({ top_p: pick([0.5, 1]) }),
    ...maybe({ max_tokens: pick([1, 1024, 1025, 100_000]) }),
    ...maybe({ stop: pick([[], "END", [" ", "\n", "END"]]) }),
    ...maybe({ seed: 7 }),
    ...maybe({ user: "alice" }),
    ...maybe({ thinking: { type: pick(["enabled", "disabled", "adaptive"]) } }, 0.7),
    ...maybe({
      reasoning_effort: pick(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    }),
    ...(tools && {
      tools: NAMES.slice(0, 3).map(fn),
      ...maybe({ tool_choice: pick(["none", "auto", "required", fn("g")]) }, 0.8),
      ...maybe({ parallel_tool_calls: false }),
    }),
    ...(!tools &&
      maybe({
        response_format: pick([
          { type: "json_object" },
          {
            type: "json_schema",
            json_schema: {
              name: "x",
              schema: { type: "object", properties: { n: { type: "integer", minimum: 1 } } },
            },
          },
        ]),
      })),
  };
}

/** What OpenAI asks of a request; one of its vendors may be laxer. */
function openaiRules(body: Json): Understood {
  const roles: Record<string, string[]> = {
    system: ["content"],
    user: ["content"],
    assistant: ["content", "tool_calls", "reasoning_content", "reasoning"],
    tool: ["content", "tool_call_id"],
  };
  const { messages, tools, tool_choice } = body;
  for (const { role, content, ...rest } of messages as Json[]) {
    rule(roles[role], `the role ${role}`);
    for (const field of Object.keys(rest)) rule(roles[role].includes(field), `${role}.${field}`);
    rule(
      typeof content === "string" ||
        (role === "user" && content.length > 0) ||
        (rest["tool_calls"] && content === null),
      `the content of ${role}`,
    );
    rule(
      rest["tool_calls"] === undefined || rest["tool_calls"].length > 0,
      "no tool_calls in a list of them",
    );
  }
  rule(tools === undefined || tools.length > 0, "no tools in a list of them");
  rule(tool_choice === undefined || tools !== undefined, "tool_choice without tools");
  return body as Understood;
}

interface Format {
  readonly name: string;
  readonly native: boolean;
  dialect(): Dialect;
  readonly models: readonly Json[];
  readonly provider: Json;
  understand(asked: Asked): Understood;
}
const openaiVendors = [...VENDORS]
  .filter(([, { dialect }]) => dialect === "openai")
  .map(([vendor]) => vendor);
/**
 * The models of Gemini and Anthropic that think by budget, and those that think otherwise; the
 * latter take no temperature at Anthropic.
 */
const FORMATS: readonly Format[] = [
  {
    name: "anthropic",
    native: true,
    dialect: () => createAnthropicDialect(createSignatureStore()),
    understand: anthropic.understand,
    provider: { dialect: "anthropic" },
    models: [
      { upstream: "claude-4-5-m", thinking: "budget" },
      {
        upstream: "claude-5-m",
        omit: ["temperature", "top_p", "frequency_penalty", "presence_penalty", "seed"],
      },
    ],
  },
  {
    name: "gemini",
    native: true,
    dialect: () => createGeminiDialect(createSignatureStore()),
    understand: gemini.understand,
    provider: { dialect: "gemini" },
    models: [{ upstream: "gemini-2.5-m", thinking: "budget" }, { upstream: "gemini-3-m" }],
  },
  ...openaiVendors.map((vendor) => ({
    name: vendor,
    native: false,
    dialect: () => compatibleDialect,
    understand: ({ body }: Asked) => openaiRules(body),
    provider: { vendor },
    models: [{ upstream: "m" }],
  })),
];

/** The words in a text, in their order. */
const wordsIn = (value: unknown): string[] => JSON.stringify(value ?? "").match(/w\d+z/g) ?? [];
const said = (messages: readonly Json[], role: string) =>
  messages.filter((message) => message["role"] === role).flatMap(({ content }) => wordsIn(content));

/**
 * Thoughts that came with these calls, as the provider tells of them, so that their signature is
 * known.
 */
function tell(dialect: Dialect, name: string, calls: readonly Called[], target: Target): void {
  const third = target.upstreamModel.startsWith("gemini-3");
  const ids = calls.map(({ id }) => id);
  const uses = calls.map(({ id, name }) => ({ type: "tool_use", id, name, input: {} }));
  const parts = calls.map(({ id, name }, at) => ({
    functionCall: { id, name },
    ...(at === 0 && { thoughtSignature: sign([name, third ? id : undefined]) }),
  }));
  const thought = { type: "thinking", thinking: "Hm.", signature: sign(["Hm.", ids]) };
  if (name === "anthropic")
    wholeReply(dialect, { type: "message", content: [thought, ...uses], usage: {} }, target);
  if (name === "gemini")
    wholeReply(dialect, { candidates: [{ content: { parts }, finishReason: "STOP" }] }, target);
}

/** A conversation in a format: what was told, what was asked for it, and what went out. */
interface Exchange {
  readonly format: (typeof FORMATS)[number];
  readonly told: ReturnType<typeof conversation>;
  readonly request: Json;
  readonly traits: Target["traits"];
  readonly reasoning: boolean;
}

/** Whether thinking was asked for, and whether it was declined. */
function thinkingAsked({ thinking, reasoning_effort }: Json): { on: boolean; off: boolean } {
  const isOn = ["enabled", "adaptive"].includes(thinking?.type);
  return {
    on: isOn && reasoning_effort !== "minimal", // which may be none
    off: thinking ? thinking.type === "disabled" : (reasoning_effort ?? "none") === "none",
  };
}

function assertThinking({ format, told, request, traits, reasoning }: Exchange, thinking: any) {
  if (!format.native || !reasoning) return;
  const { on, off } = thinkingAsked(request);
  if (on && told.calls.every(({ known }) => known)) assert.equal(thinking.type, "enabled");
  if (off && traits.thinking_off) assert.equal(thinking.type, "disabled");
}

/** The format's own rules are kept, and what was told arrives. */
function assertFaithful(exchange: Exchange, asked: Asked): void {
  const { format, told, request, traits } = exchange;
  const { messages, stream = false, tools, thinking } = format.understand(asked);
  assert.equal(stream, request["stream"]);
  for (const role of ["system", "user", "assistant"] as const)
    assert.deepEqual(said(messages, role), told.words[role], role);
  for (const each of told.media)
    assert.ok(JSON.stringify(asked.body).includes(each), `the medium ${each}`);
  assertThinking(exchange, thinking);
  if (request["tools"]) assert.ok(tools || traits.tool_choice === "auto");
  assert.deepEqual(
    callsIn(messages),
    told.calls.map(({ name, word, result }) => ({ name, word, result })),
  );
}

function converse(format: (typeof FORMATS)[number], random: Random, size: number): void {
  const { upstream, ...own } = random.pick(format.models);
  const reasoning = random.random() < 0.8;
  const traits = traitsOf(VENDORS, format.provider, {
    reasoning,
    ...own,
    ...(random.random() < 0.2 && { thinking_off: false }),
  });
  const dialect = format.dialect();
  const target = { upstreamModel: upstream, reasoning, traits };
  const media = traits.supports.filter((each) => ["images", "audio", "files"].includes(each));
  const told = conversation(random, size, media);
  if (told.messages.length === 0) told.messages.push({ role: "user", content: "" });
  const request: Json = { model: "m", messages: told.messages, ...settings(random) };
  for (const calls of told.signed) tell(dialect, format.name, calls, target);
  const { path, headers, body } = dialect.request(chatRequest(request), target);
  const lower = Object.entries({ ...headers, ...dialect.auth(PROVIDER_KEY) }).map(
    ([name, value]) => [name.toLowerCase(), value],
  );
  const sent = JSON.parse(JSON.stringify(body));
  const asked = { path, headers: Object.fromEntries(lower), body: sent } as Asked;
  try {
    assertFaithful({ format, told, request, traits, reasoning }, asked);
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`${message}\n${JSON.stringify(request)}\n${JSON.stringify(body)}`);
  }
}

describe(`conversations in every format (seed ${SEED})`, () => {
  for (const format of FORMATS)
    it(`${format.name}: no rule is broken, nothing is lost`, () =>
      forAll(format.native ? CONVERSATIONS : CONVERSATIONS / 10, (random, size) =>
        converse(format, random, size),
      ));
});

/** The calls that were made, each with the answer that it got. */
function callsIn(messages: readonly Json[]): object[] {
  const made: { id: string; name: string; word: string | undefined; result: string | undefined }[] =
    [];
  for (const { tool_calls = [], role, tool_call_id, content } of messages) {
    for (const {
      id,
      function: { name, arguments: args },
    } of tool_calls)
      made.push({ id, name, word: wordsIn(args)[0], result: undefined });
    const asked = role === "tool" ? made.findLast(({ id }) => id === tool_call_id) : undefined;
    if (asked) asked.result = wordsIn(content)[0];
  }
  return made.map(({ name, word, result }) => ({ name, word, result }));
}

/** What a provider says in one reply, and what it counts. */
interface Reply {
  readonly items: readonly Piece[];
  readonly finish: "stop" | "length" | "content_filter";
  readonly prompt: number;
  readonly completion: number;
  readonly hit: number;
  /** What was written to the cache, of the rest of the prompt. */
  readonly written: number;
  readonly reasoning: number;
}
type Piece =
  | { readonly type: "text" | "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly args: string };

/** Texts that hold what streams and tags are made of. */
const SIGNS = [
  "a",
  " ",
  "\u00e9",
  "\u{1f600}",
  "\u2028",
  "\n",
  "\r\n",
  "\r",
  '"',
  "\\",
  "data: ",
  ":",
  "<",
  "</",
  "think",
  "[DONE]",
  "\ufeff",
  "\0",
];
const scribble = ({ between, pick }: Random, most = 12): string =>
  Array.from({ length: between(1, most) }, () => pick(SIGNS)).join("");

function randomReply(random: Random): Reply {
  const { between, pick } = random;
  const thoughts = Array.from(
    { length: between(0, 2) },
    (): Piece => ({ type: "reasoning", text: scribble(random) }),
  );
  const texts = Array.from(
    { length: between(0, 2) },
    (): Piece => ({ type: "text", text: scribble(random) }),
  );
  const calls = Array.from(
    { length: between(0, 3) },
    (_, at): Piece => ({
      type: "call",
      id: `id_${at}`,
      name: pick(NAMES),
      args: pick([
        "{}",
        JSON.stringify({ [scribble(random)]: [scribble(random), 1.5, null, { a: true }] }),
      ]),
    }),
  );
  const [prompt, completion] = [between(1, 99), between(0, 99)];
  const hit = between(0, prompt);
  return {
    items: [...thoughts, ...texts, ...calls],
    finish: pick(["stop", "length", "content_filter"]),
    prompt,
    completion,
    hit,
    written: between(0, prompt - hit),
    reasoning: between(0, completion),
  };
}

/** A text in pieces, cut anywhere, characters of two units and empty pieces among them. */
function cut(text: string, { random, between }: Random): string[] {
  const pieces: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = at + between(random() < 0.1 ? 0 : 1, 6);
    pieces.push(text.slice(at, end));
  }
  return pieces;
}

/** The same reply, whole and as the data of events. */
type Encoder = (
  reply: Reply,
  random: Random,
) => { readonly whole: object; readonly events: readonly Json[] };
const of = <T extends Piece["type"]>(items: readonly Piece[], type: T) =>
  items.filter((item): item is Extract<Piece, { type: T }> => item.type === type);
const joined = (items: readonly Piece[], type: "text" | "reasoning"): string =>
  of(items, type as "text")
    .map(({ text }) => text)
    .join("");

const openaiReply =
  (tags: boolean): Encoder =>
  ({ items, finish, prompt, completion, hit, written, reasoning }, random) => {
    const [thought, text] = [joined(items, "reasoning"), joined(items, "text")];
    const calls = of(items, "call");
    const content = tags && thought !== "" ? `<think>${thought}</think>${text}` : text;
    const finish_reason =
      finish === "stop" && calls.length > 0 ? random.pick(["stop", "tool_calls"]) : finish;
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: hit, cache_write_tokens: written },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    const delta = (given: object, finish_reason: string | null = null) => ({
      choices: [{ index: 0, delta: given, finish_reason }],
    });
    const named = calls.map(({ id, name, args }, index) => ({
      index,
      id,
      type: "function",
      function: { name, arguments: args },
    }));
    // The first piece of each call in their order, the others in turns.
    const fragments = calls.map(({ args }, index) =>
      cut(args, random).map((piece) => ({ index, function: { arguments: piece } })),
    );
    const turns = Array.from(
      { length: Math.max(0, ...fragments.map(({ length }) => length)) },
      (_, at) => fragments.flatMap((each) => each.slice(at, at + 1)),
    ).flat();
    return {
      whole: {
        choices: [
          {
            index: 0,
            message: { content, ...(!tags && { reasoning_content: thought }), tool_calls: named },
            finish_reason,
          },
        ],
        usage,
      },
      events: [
        ...(tags
          ? []
          : cut(thought, random).map((reasoning_content) => delta({ reasoning_content }))),
        ...cut(content, random).map((content) => delta({ content })),
        ...named.map((call) =>
          delta({ tool_calls: [{ ...call, function: { ...call.function, arguments: "" } }] }),
        ),
        ...turns.map((fragment) => delta({ tool_calls: [fragment] })),
        delta({}, finish_reason),
        { choices: [], usage },
      ],
    };
  };

const geminiReply: Encoder = ({ items, finish, prompt, completion, hit, reasoning }, random) => {
  const finishReason = { stop: "STOP", length: "MAX_TOKENS", content_filter: "SAFETY" }[finish];
  const usageMetadata = {
    promptTokenCount: prompt,
    cachedContentTokenCount: hit,
    candidatesTokenCount: completion - reasoning,
    thoughtsTokenCount: reasoning,
  };
  const parts = (cutter: (text: string) => string[]) =>
    items.flatMap((item): object[] =>
      item.type === "call"
        ? [{ functionCall: { id: item.id, name: item.name, args: JSON.parse(item.args) } }]
        : cutter(item.text).map((text) => ({
            text,
            ...(item.type === "reasoning" && { thought: true }),
          })),
    );
  const candidate = (parts: readonly object[], more: object = {}) => ({
    candidates: [{ content: { role: "model", parts }, ...more }],
  });
  const pieces = parts((text) => cut(text, random));
  const events: object[] = [];
  for (let size = 0; pieces.length > 0; pieces.splice(0, size)) {
    size = random.between(1, 3);
    events.push({
      ...candidate(pieces.slice(0, size)),
      usageMetadata: { promptTokenCount: prompt },
    });
  }
  return {
    whole: {
      ...candidate(
        parts((text) => [text]),
        { finishReason },
      ),
      usageMetadata,
    },
    events: [...events, { ...candidate([], { finishReason }), usageMetadata }],
  };
};

const anthropicReply: Encoder = (
  { items, finish, prompt, completion, hit, written, reasoning },
  random,
) => {
  const calls = of(items, "call").length > 0;
  const delta = {
    stop_reason: {
      stop: calls ? "tool_use" : "end_turn",
      length: "max_tokens",
      content_filter: "refusal",
    }[finish],
  };
  const input = {
    input_tokens: prompt - hit - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: hit,
  };
  const output = {
    output_tokens: completion,
    output_tokens_details: { thinking_tokens: reasoning },
  };
  const blocks = items.map((item) => {
    if (item.type === "call")
      return {
        whole: { type: "tool_use", id: item.id, name: item.name, input: JSON.parse(item.args) },
        empty: { type: "tool_use", id: item.id, name: item.name, input: {} },
        deltas:
          item.args === "{}"
            ? []
            : cut(item.args, random).map((partial_json) => ({
                type: "input_json_delta",
                partial_json,
              })),
      };
    if (item.type === "text")
      return {
        whole: item,
        empty: { type: "text", text: "" },
        deltas: cut(item.text, random).map((text) => ({ type: "text_delta", text })),
      };
    return {
      whole: { type: "thinking", thinking: item.text, signature: "s" },
      empty: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...cut(item.text, random).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature: "s" },
      ],
    };
  });
  return {
    whole: {
      type: "message",
      content: blocks.map(({ whole }) => whole),
      ...delta,
      usage: { ...input, ...output },
    },
    events: [
      {
        type: "message_start",
        message: {
          type: "message",
          content: [],
          stop_reason: null,
          usage: { ...input, output_tokens: 1 },
        },
      },
      { type: "ping" },
      ...blocks.flatMap(({ empty, deltas }, index) => [
        { type: "content_block_start", index, content_block: empty },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index },
      ]),
      { type: "message_delta", delta, usage: { input_tokens: null, ...output } },
      { type: "message_stop" },
    ],
  };
};

/** Events as bytes, with everything that a stream may have beside its data. */
function bytesOf(events: readonly Json[], done: boolean, { random, pick }: Random): Buffer {
  const end = pick(["\n", "\r\n", "\r"]);
  const noise = () => pick(["", "", `: keep-alive${end}${end}`, end, `id: 7${end}`, `retry${end}`]);
  const lines = [...events.map((event) => JSON.stringify(event)), ...(done ? ["[DONE]"] : [])].map(
    (data) => `${noise()}event: x${end}data:${pick(["", " "])}${data}${end}`,
  );
  return Buffer.from(`${pick(["", "\ufeff"])}${lines.join(end)}${random() < 0.5 ? end : ""}`);
}

/** What the parts of a reply come to. */
function summary(parts: readonly Part[]): object {
  const calls: { id: string; name: string; args: string }[] = [];
  const all: Json = { text: "", reasoning: "", calls, finish: undefined, usage: undefined };
  for (const part of parts) {
    if (part.type === "tool_call") calls[part.call] = { id: part.id, name: part.name, args: "" };
    else if (part.type === "tool_arguments") calls[part.call]!.args += part.text;
    else if (part.type === "finish")
      all["finish"] = part.reason === "tool_calls" ? "stop" : part.reason;
    else if (part.type === "usage") {
      const { prompt = 0, completion = 0, ...shares } = part.usage;
      all["usage"] = makeUsage({ prompt, completion, ...shares });
    } else if (part.type !== "native") all[part.type] += part.text;
  }
  for (const call of calls) call.args ||= "{}";
  return all;
}

describe(`replies in every format, cut anywhere (seed ${SEED})`, () => {
  const target = (provider: Json, own: object = {}) => ({
    upstreamModel: "m",
    reasoning: true,
    traits: traitsOf(VENDORS, provider, { reasoning: true, ...own }),
  });
  const ENCODERS: [
    name: string,
    dialect: Dialect,
    encode: Encoder,
    target: ReturnType<typeof target>,
  ][] = [
    ["openai", compatibleDialect, openaiReply(false), target({ vendor: "generic" })],
    [
      "openai, with thinking between tags",
      compatibleDialect,
      openaiReply(true),
      target({ vendor: "generic" }, { think_tags: true }),
    ],
    [
      "anthropic",
      createAnthropicDialect(createSignatureStore()),
      anthropicReply,
      target({ dialect: "anthropic" }),
    ],
    [
      "gemini",
      createGeminiDialect(createSignatureStore()),
      geminiReply,
      target({ dialect: "gemini" }),
    ],
  ];
  for (const [name, dialect, encode, model] of ENCODERS) {
    it(`${name}: streamed it says what it says whole`, () =>
      forAll(REPLIES, (random) => {
        const reply = randomReply(random);
        const { items, finish, prompt, completion, hit, reasoning } = reply;
        // Gemini does not state what it writes.
        const written = name === "gemini" ? 0 : reply.written;
        const { whole, events } = encode(reply, random);
        const expected = {
          text: joined(items, "text"),
          reasoning: joined(items, "reasoning"),
          calls: of(items, "call").map(({ id, name, args }) => ({ id, name, args })),
          finish,
          usage: {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: prompt + completion,
            prompt_cache_hit_tokens: hit,
            prompt_cache_miss_tokens: prompt - hit,
            prompt_tokens_details: {
              cached_tokens: hit,
              ...(written > 0 && { cache_write_tokens: written }),
            },
            completion_tokens_details: { reasoning_tokens: reasoning },
          },
        };
        assert.deepEqual(summary(wholeReply(dialect, whole, model)), expected);
        const bytes = bytesOf(events, name.startsWith("openai"), random);
        const reader = createEventReader();
        const data: string[] = [];
        const most = random.pick([1, 3, 20, 500]);
        for (let at = 0, size = 0; at < bytes.length; at += size) {
          size = random.between(1, most);
          data.push(...reader.push(bytes.subarray(at, at + size)));
        }
        data.push(...reader.end());
        const decoder = dialect.decoder(model);
        assert.deepEqual(
          summary(
            data
              .filter((each) => each !== "[DONE]")
              .flatMap((each) => decoder.push(JSON.parse(each))),
          ),
          expected,
        );
      }));
  }
});
