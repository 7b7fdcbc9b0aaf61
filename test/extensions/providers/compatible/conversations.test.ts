// Random conversations that the gateway accepts, said in each native format and held to its rules
// (those of the strict providers in support/), of which nothing may be lost. What goes out in
// OpenAI's format is in vendors.test.ts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import type { Dialect } from "../../../../src/core/providers/dialect.ts";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { gemini } from "../../../support/fake-gemini.ts";
import type { Understood } from "../../../support/fake-provider.ts";
import type { Asked } from "../../../support/provider.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";
import { askedBy } from "../dialect-bench.ts";

type Json = Record<string, any>;
type Random = ReturnType<typeof createRandom>;

const SEED = (Date.now() ^ process.pid) | 0;
const CONVERSATIONS = LONG ? 500 : 120;

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
  result?: string;
}
/** A conversation, and what was said in it: words that occur nowhere else, by who said them. */
interface Told {
  readonly messages: Json[];
  readonly words: Record<"system" | "user" | "assistant", string[]>;
  readonly calls: Called[];
}

const NAMES = ["f", "g", "get_time-2", "old"];
/** From all providers, and from clients that count. */
const IDS = [
  ...["call_0", "call_1", "call_1_2", "call_0_1", "call_0_2", "functions.f:0", "0"],
  ...["a b", "\u00fc/\u4f60", "__proto__", "x".repeat(90)],
];

function conversation({ random, between, pick }: Random, size: number): Told {
  const words: Told["words"] = { system: [], user: [], assistant: [] };
  const told: Told = { messages: [], words, calls: [] };
  const { messages, calls } = told;
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
  const asPart = (part: string | object) =>
    typeof part === "string" ? { type: "text", text: part } : part;
  const texts = (role: keyof Told["words"]) =>
    random() < 0.3 ? Array.from({ length: between(0, 3) }, () => asPart(text(role))) : text(role);

  function answer(call: Called): void {
    const own = random() < 0.9 ? word() : undefined;
    if (own) call.result = own;
    const words = [own, `{"a":"${own}"}`, `["${own}",1]`, `"${own}"`, `{"a":${own}`, ` ${own} `];
    const content = pick(own === undefined ? ["", " ", "\n"] : words) ?? "";
    messages.push({
      role: "tool",
      tool_call_id: call.id,
      content: random() < 0.2 ? [{ type: "text", text: content }] : content,
    });
  }

  function call(): void {
    const made = IDS.toSorted(() => random() - 0.5)
      .slice(0, between(1, 3))
      .map((id): [Called, object] => {
        const own = random() < 0.8 ? word() : undefined;
        const args = pick(own === undefined ? ["", "{}", "null"] : argumentsWith(own));
        const called = { id, name: pick(NAMES), ...(own && { word: own }) };
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
    else if (kind < 0.45) messages.push({ role: "user", content: texts("user") });
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

/** What a request may say that changes how a conversation is told. Its other fields: request.test.ts. */
function settings({ random, pick }: Random): Json {
  return {
    stream: random() < 0.5,
    ...(random() < 0.7 && { thinking: { type: pick(["enabled", "disabled", "adaptive"]) } }),
    ...(random() < 0.6 && {
      tools: NAMES.slice(0, 3).map(fn),
      tool_choice: pick(["none", "auto", "required", fn("g")]),
    }),
  };
}

interface Format {
  readonly name: string;
  dialect(): Dialect;
  readonly models: readonly Json[];
  readonly provider: Json;
  understand(asked: Asked): Understood;
}
/**
 * The models of Gemini and Anthropic that think by budget, and those that think otherwise; the
 * latter take no temperature at Anthropic.
 */
const FORMATS: readonly Format[] = [
  {
    name: "anthropic",
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
    dialect: () => createGeminiDialect(createSignatureStore()),
    understand: gemini.understand,
    provider: { dialect: "gemini" },
    models: [{ upstream: "gemini-2.5-m", thinking: "budget" }, { upstream: "gemini-3-m" }],
  },
];

/** The words in a text, in their order. */
const wordsIn = (value: unknown): string[] => JSON.stringify(value ?? "").match(/w\d+z/g) ?? [];
const said = (messages: readonly Json[], role: string) =>
  messages.filter((message) => message["role"] === role).flatMap(({ content }) => wordsIn(content));

/** A conversation in a format: what was told, and what was asked for it. */
interface Exchange {
  readonly format: Format;
  readonly told: Told;
  readonly request: Json;
}

/** The format's own rules are kept, and what was told arrives. */
function assertFaithful({ format, told, request }: Exchange, asked: Asked): void {
  const { messages, stream = false, tools } = format.understand(asked);
  assert.equal(stream, request["stream"]);
  for (const role of ["system", "user", "assistant"] as const)
    assert.deepEqual(said(messages, role), told.words[role], role);
  if (request["tools"]) assert.ok(tools);
  assert.deepEqual(
    callsIn(messages),
    told.calls.map(({ name, word, result }) => ({ name, word, result })),
  );
}

function converse(format: Format, random: Random, size: number): void {
  const { upstream, ...own } = random.pick(format.models);
  const reasoning = random.random() < 0.8;
  const traits = traitsOf(format.provider, {
    reasoning,
    ...own,
    ...(random.random() < 0.2 && { thinking_off: false }),
  });
  const target = { upstreamModel: upstream, reasoning, traits };
  const told = conversation(random, size);
  if (told.messages.length === 0) told.messages.push({ role: "user", content: "" });
  const request: Json = { model: "m", messages: told.messages, ...settings(random) };
  const asked = askedBy(format.dialect(), request, target);
  try {
    assertFaithful({ format, told, request }, asked);
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`${message}\n${JSON.stringify(request)}\n${JSON.stringify(asked.body)}`);
  }
}

describe(`conversations in every format (seed ${SEED})`, () => {
  for (const format of FORMATS)
    it(`${format.name}: no rule is broken, nothing is lost`, () =>
      forAll(CONVERSATIONS, (random, size) => converse(format, random, size)));
});

/** The calls that were made, each with the answer that it got. */
function callsIn(messages: readonly Json[]): object[] {
  const made: { id: string; name: string; word?: string; result?: string }[] = [];
  for (const { tool_calls = [], role, tool_call_id, content } of messages) {
    for (const { id, function: called } of tool_calls)
      made.push({ id, name: called.name, word: wordsIn(called.arguments)[0]! });
    const answered = role === "tool" ? made.findLast(({ id }) => id === tool_call_id) : undefined;
    if (answered) answered.result = wordsIn(content)[0]!;
  }
  return made.map(({ name, word, result }) => ({ name, word, result }));
}
