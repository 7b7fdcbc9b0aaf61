// Random conversations that the gateway accepts, translated to each native format and checked
// against its rules (by the strict providers in support/). Nothing may be lost. vendors.test.ts
// covers OpenAI's format.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { gemini } from "../../../support/fake-gemini.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";
import { askedBy, callOf, resultOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;
type Random = ReturnType<typeof createRandom>;

const SEED = (Date.now() ^ process.pid) | 0;
const CONVERSATIONS = LONG ? 500 : 120;

/** A tool call of a conversation, and its result. */
interface Called {
  readonly id: string;
  readonly name: string;
  readonly word?: string;
  result?: string;
}

const NAMES = ["f", "g", "get_time-2", "old"];
/** Ids from all providers, and from clients that number their calls. */
const IDS = [
  ...["call_0", "call_1", "call_1_2", "call_0_1", "call_0_2", "functions.f:0", "0"],
  ...["a b", "\u00fc/\u4f60", "__proto__", "x".repeat(90)],
];

/** A conversation and its unique words, by who said them. */
function conversation({ random, between, pick }: Random, size: number) {
  const words = { system: [] as string[], user: [] as string[], assistant: [] as string[] };
  const messages: Json[] = [];
  const calls: Called[] = [];
  const late: Called[] = [];
  let count = 0;
  const word = () => {
    count += 1;
    return `w${count}z`;
  };

  /** A text with a unique word, if it is not empty. Some have blanks around it. */
  function text(role: keyof typeof words): string {
    if (random() < 0.2) return pick(["", " ", "\n\t"]);
    const own = word();
    words[role].push(own);
    return pick([own, ` ${own}\n`, `Say "${own}" \u{1f600}.\n\n`]);
  }
  const part = (text: string) => ({ type: "text", text });
  const texts = (role: keyof typeof words) =>
    random() < 0.3 ? Array.from({ length: between(0, 3) }, () => part(text(role))) : text(role);

  function answer(call: Called): void {
    const own = random() < 0.9 ? word() : undefined;
    if (own) call.result = own;
    const forms = [own, `{"a":"${own}"}`, `["${own}",1]`, `"${own}"`, `{"a":${own}`, ` ${own} `];
    const content = pick(own === undefined ? ["", " ", "\n"] : forms)!;
    messages.push(resultOf(call.id, random() < 0.2 ? [part(content)] : content));
  }

  function call(): void {
    const made = IDS.toSorted(() => random() - 0.5)
      .slice(0, between(1, 3))
      .map((id): Called => ({ id, name: pick(NAMES), ...(random() < 0.8 && { word: word() }) }));
    // Later these results would belong to another call.
    const before = late.filter(({ id }) => made.some((called) => called.id === id));
    for (const each of before) answer(late.splice(late.indexOf(each), 1)[0]!);
    messages.push({
      role: "assistant",
      content: random() < 0.5 ? null : texts("assistant"),
      tool_calls: made.map(({ id, name, word }) => callOf(id, name, pick(argumentsWith(word)))),
    });
    calls.push(...made);
    for (const called of made.toSorted(() => random() - 0.5)) {
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
  if (messages.length === 0) messages.push({ role: "user", content: "" });
  return { messages, words, calls };
}

/** Arguments of a call that contain this word, not all of them JSON. */
const argumentsWith = (word: string | undefined): readonly string[] =>
  word === undefined
    ? ["", "{}", "null"]
    : [
        ...[`{"x":"${word}"}`, `["${word}"]`, `"${word}"`, word],
        ...[`{"x":"${word}`, `{"__proto__":{"x":"${word}"}}`],
      ];

const fn = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
});

/** Request fields that change how a conversation is sent. request.test.ts covers the others. */
const settings = ({ random, pick }: Random): Json => ({
  stream: random() < 0.5,
  ...(random() < 0.7 && { thinking: { type: pick(["enabled", "disabled", "adaptive"]) } }),
  ...(random() < 0.6 && {
    tools: NAMES.slice(0, 3).map(fn),
    tool_choice: pick(["none", "auto", "required", fn("g")]),
  }),
});

/**
 * The models of Gemini and Anthropic with a thinking budget, and those without. Of the latter,
 * Anthropic's take no temperature.
 */
const FORMATS = [
  {
    name: "anthropic",
    create: createAnthropicDialect,
    understand: anthropic.understand,
    models: [
      { upstream_model: "claude-4-5-m", thinking: "budget" },
      { upstream_model: "claude-5-m", omit: ["temperature", "top_p"] },
    ],
  },
  {
    name: "gemini",
    create: createGeminiDialect,
    understand: gemini.understand,
    models: [
      { upstream_model: "gemini-2.5-m", thinking: "budget" },
      { upstream_model: "gemini-3-m" },
    ],
  },
];

/** The words in a text, in order. */
const wordsIn = (value: unknown): string[] => JSON.stringify(value ?? "").match(/w\d+z/g) ?? [];

/** Asserts that the format's rules are kept and nothing is lost. */
function assertFaithful(format: (typeof FORMATS)[number], random: Random, size: number): void {
  const isStubborn = random.random() < 0.2;
  const target = targetOf(
    { dialect: format.name },
    {
      reasoning: random.random() < 0.8,
      ...random.pick(format.models),
      ...(isStubborn && { thinking_off: false }),
    },
  );
  const { messages, words, calls } = conversation(random, size);
  const request: Json = { messages, ...settings(random) };
  const asked = askedBy(format.create(createSignatureStore()), request, target);
  try {
    const { messages: heard, stream = false, tools } = format.understand(asked);
    assert.equal(stream, request["stream"]);
    for (const role of ["system", "user", "assistant"] as const) {
      const said = heard.filter((message) => message.role === role);
      assert.deepEqual(
        said.flatMap(({ content }) => wordsIn(content)),
        words[role],
        role,
      );
    }
    if (request["tools"]) assert.ok(tools);
    assert.deepEqual(
      callsIn(heard),
      calls.map(({ name, word, result }) => ({ name, word, result })),
    );
  } catch (error) {
    const { message } = error as Error;
    throw new Error(`${message}\n${JSON.stringify(request)}\n${JSON.stringify(asked.body)}`);
  }
}

/** The calls, each with its result. */
function callsIn(messages: readonly Json[]): object[] {
  const made: Called[] = [];
  for (const { tool_calls = [], role, tool_call_id, content } of messages) {
    for (const { id, function: called } of tool_calls)
      made.push({ id, name: called.name, word: wordsIn(called.arguments)[0]! });
    const answered = role === "tool" ? made.findLast(({ id }) => id === tool_call_id) : undefined;
    if (answered) answered.result = wordsIn(content)[0]!;
  }
  return made.map(({ name, word, result }) => ({ name, word, result }));
}

// A failure reports its seed, with which it can be repeated. Sizes grow.
for (const format of FORMATS)
  it(`conversations in the format ${format.name} break no rule and lose nothing`, () => {
    for (let at = 0; at < CONVERSATIONS; at += 1)
      try {
        assertFaithful(format, createRandom(SEED + at), 1 + Math.floor((at * 12) / CONVERSATIONS));
      } catch (error) {
        throw new Error(`seed ${SEED}, number ${at}: ${(error as Error).message}`);
      }
  });
