// What providers can find in their caches: from one turn of a conversation to the next, the start
// of the provider's request stays byte for byte the same, in every dialect and through every client
// API, although clients move their cache marks. And where these marks end up.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { post } from "./extensions/apis/post.ts";
import { configFor, startGateway } from "./support/gateway.ts";
import { startProvider, status, type Asked, type Provider } from "./support/provider.ts";
import { suiteScope, type Scope } from "./support/scope.ts";

type Json = Record<string, any>;

const TURNS = 6;
const MARK = { type: "ephemeral" };
const PARAMETERS = { type: "object", properties: { z: { type: "string" }, a: { type: "number" } } };
const IMAGE = { type: "image_url", image_url: { url: "data:image/png;base64,QQ==" } };
const PDF = "data:application/pdf;base64,JVBE";

/** The tested providers, each with its dialect and further settings. */
const PROVIDERS: Readonly<Record<string, readonly [dialect: string, settings?: object]>> = {
  openai: ["openai"],
  items: ["responses"],
  anthropic: ["anthropic"],
  gemini: ["gemini"],
  bedrock: ["converse", { vendor: "bedrock", dialect: undefined, region: "r" }],
  ollama: ["ollama"],
  openrouter: ["openai", { vendor: "openrouter", dialect: undefined }],
  marked: ["openai", { cache_control: true }],
};

/**
 * Asks a provider's model through one gateway for all providers. Returns the request that the
 * provider received; the provider rejects it.
 */
let ask: (provider: string, path: string, body: object) => Promise<Asked["body"]>;
async function start(scope: Scope): Promise<void> {
  const behind: Record<string, Provider> = {};
  const [providers, models]: Record<string, object>[] = [{}, {}];
  for (const [name, [dialect, settings]] of Object.entries(PROVIDERS)) {
    behind[name] = await startProvider(scope, status(400));
    providers![name] = { dialect, base_url: behind[name].url, api_key: "k", ...settings };
    const supports = ["tools", "images", ...(dialect === "ollama" ? [] : ["files"])];
    models![name] = { provider: name, upstream_model: "amazon.m", supports };
  }
  const apis = ["messages", "responses"];
  const { url } = await startGateway(
    scope,
    configFor("http://127.0.0.1:1", [], { apis, providers, models }),
  );
  ask = async (provider, path, body) => {
    const { asked } = behind[provider]!;
    const before = asked.length;
    const response = await post(url + path, { model: provider, ...body });
    assert.equal(asked.length, before + 1, await response.text());
    return asked.at(-1)!.body;
  };
}

const marked = (isMarked = true) => (isMarked ? { cache_control: MARK } : {});
const text = (words: string, isMarked = false) => ({
  type: "text",
  text: words,
  ...marked(isMarked),
});

/** The content of the user's message in one turn out of `turns`. */
type Asks = (turn: number, turns: number) => unknown;
const isOfLastTwo = (turn: number, turns: number): boolean => turn >= turns - 2;

const LISTED_IF_MARKED = "texts that are lists while they have marks";
/** The places where clients put their marks. */
const MARKINGS: Readonly<Record<string, Asks>> = {
  "the last text": (turn, turns) => [
    text(`Question ${turn}: `),
    text("what is it?", turn === turns - 1),
  ],
  "the last texts of two messages": (turn, turns) => [
    text(`<task>${turn}</task>`),
    text("<env></env>", isOfLastTwo(turn, turns)),
  ],
  "texts before others": (turn, turns) => [
    text(`Document ${turn}.`, isOfLastTwo(turn, turns)),
    text(" "),
    text("What is it?"),
  ],
  "the first text alone": (turn) => [
    text(`Question ${turn}: `, turn === 0),
    text("what is it?"),
    text("\n"),
  ],
  // As Claude Code sends it.
  [LISTED_IF_MARKED]: (turn, turns) => {
    const words = `Question ${turn}?`;
    return turn === turns - 1 ? [text(words, true)] : words;
  },
};

const callOf = (turn: number) => `call_of_turn_${turn}`;
const NAMES = ["g", "f"];
const toolsOf = (more: object = {}) =>
  NAMES.map((name) => ({ type: "function", function: { name, parameters: PARAMETERS }, ...more }));
/** The same tools in the form of the Messages API. */
const ownTools = (more: object = {}) =>
  NAMES.map((name) => ({ name, input_schema: PARAMETERS, ...more }));
const CALLED = { name: "f", arguments: '{"z":"1","a":2}' };
const SYSTEM = [text("You help.", true)];

/** A conversation of `turns` turns. `turn` returns the messages of one of them. */
const conversation = (turns: number, turn: (at: number, isLast: boolean) => Json[]): Json[] =>
  Array.from({ length: turns }, (_, at) => turn(at, at === turns - 1)).flat();

/** The body of a chat completions client. */
const chatBody = (turns: number, asked = MARKINGS["the last text"]!): Json => ({
  messages: [
    { role: "system", content: SYSTEM },
    ...conversation(turns, (at, isLast) => [
      { role: "user", content: asked(at, turns) },
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [{ id: callOf(at), type: "function", function: CALLED }],
      },
      { role: "tool", tool_call_id: callOf(at), content: [text(`Result ${at}`, isLast)] },
      ...(isLast ? [] : [{ role: "assistant", content: `Answer ${at}` }]),
    ]),
  ],
  tools: toolsOf(),
  tool_choice: "auto",
});

const resultOf = (tool_use_id: string, content: unknown) => ({
  type: "tool_result",
  tool_use_id,
  content,
});
/** The body of a Messages API client. */
const messagesBody = (turns: number, asked = MARKINGS["the last text"]!): Json => ({
  max_tokens: 100,
  system: SYSTEM,
  messages: conversation(turns, (at, isLast) => [
    { role: "user", content: asked(at, turns) },
    {
      role: "assistant",
      content: [
        text("Let me see."),
        { type: "tool_use", id: callOf(at), name: "f", input: { z: "1", a: 2 } },
      ],
    },
    {
      role: "user",
      content: [{ ...resultOf(callOf(at), `Result ${at}`), ...marked(isLast) }],
    },
    ...(isLast ? [] : [{ role: "assistant", content: [text(`Answer ${at}`)] }]),
  ]),
  tools: ownTools(),
});

/** A conversation with instructions in later turns. */
const instructed = (turns: number): Json[] =>
  conversation(turns, (turn) => [
    ...(turn === 0 ? [] : [{ role: "assistant", content: `Answer ${turn - 1}` }]),
    ...(turn % 3 === 2 ? [{ role: "system", content: `Rule ${turn}.` }] : []),
    { role: "user", content: `Question ${turn}?` },
  ]);

const CHAT = "/v1/chat/completions";
const MESSAGES = "/v1/messages";

/**
 * Removes the marks: they move, and are not part of the cached content. Amazon's are separate
 * blocks.
 */
const withoutMarks = (json: unknown): string =>
  JSON.stringify(json, (name, value) => {
    if (name === "cache_control") return undefined;
    return Array.isArray(value) ? value.filter((each) => !each?.cachePoint) : value;
  });

/** Fails unless each turn begins with the content of the turn before. */
async function assertSame(provider: string, path: string, bodyOf: (turns: number) => Json) {
  let before: { readonly beginning: string; readonly rest: string } | undefined;
  for (let turns = 1; turns <= TURNS; turns += 1) {
    const { messages, contents, input, ...others } = await ask(provider, path, bodyOf(turns));
    const rest = withoutMarks(others);
    const beginning = withoutMarks(messages ?? contents ?? input).slice(0, -1); // without the final bracket
    if (before) {
      assert.equal(rest, before.rest);
      assert.equal(beginning.slice(0, before.beginning.length), before.beginning);
    }
    before = { beginning, rest };
  }
}

describe("the beginning of a conversation", () => {
  const scope = suiteScope();
  before(() => start(scope));

  for (const provider of Object.keys(PROVIDERS)) {
    for (const [place, asked] of Object.entries(MARKINGS)) {
      it(`is the same over six turns: chat completions to ${provider}, marks at ${place}`, () =>
        assertSame(provider, CHAT, (turns) => chatBody(turns, asked)));
      // A request in the provider's own format is sent as its client wrote it.
      if (place === LISTED_IF_MARKED && provider === "anthropic") continue;
      it(`is the same over six turns: the Messages API to ${provider}, marks at ${place}`, () =>
        assertSame(provider, MESSAGES, (turns) => messagesBody(turns, asked)));
    }

    it(`is the same where instructions come up: the Messages API to ${provider}`, () =>
      assertSame(provider, MESSAGES, (turns) => ({
        max_tokens: 100,
        system: "You help.",
        messages: instructed(turns),
      })));
    it(`is the same where instructions come up: the Responses API to ${provider}`, () =>
      assertSame(provider, "/v1/responses", (turns) => ({
        store: false,
        instructions: "You help.",
        input: instructed(turns),
      })));
  }

  it("has no texts of blanks alone, and their marks at the part before", async () => {
    const content = [
      text("", true),
      text("b"),
      text("\n", true),
      IMAGE,
      text(" ", true),
      text("c", true),
      text(""),
    ];
    const system = { role: "system", content: "" };
    const messages = [system, { role: "user", content }];
    const body = await ask("openrouter", CHAT, { messages });
    assert.deepEqual(body["messages"], [
      system,
      { role: "user", content: [text("b\n", true), { ...IMAGE, ...marked() }, text("c", true)] },
    ]);
  });

  it("has marks for the cache only where the provider takes them", async () => {
    for (const [path, body] of [
      [CHAT, chatBody(2)],
      [MESSAGES, messagesBody(2)],
    ] as const)
      for (const [provider, marks] of [
        ["openai", 0],
        ["gemini", 0],
        ["marked", 3],
        ["openrouter", 3],
        ["anthropic", 3],
      ] as const) {
        const sent = JSON.stringify(await ask(provider, path, body));
        assert.equal(sent.split('"cache_control":{"type":"ephemeral"}').length - 1, marks);
      }
  });

  it("has them at tools, media and texts in results of tools", async () => {
    const image = { type: "base64", media_type: "image/png", data: "QQ==" };
    const pdf = { type: "base64", media_type: "application/pdf", data: "JVBE" };
    const use = { type: "tool_use", id: "call_1", name: "f", input: {} };
    const media = [
      { type: "image", source: image, ...marked() },
      { type: "document", source: pdf, title: "a.pdf", context: "A.", ...marked() },
      text("See."),
    ];
    const request = {
      max_tokens: 100,
      messages: [
        { role: "user", content: media },
        { role: "assistant", content: [use] },
        { role: "user", content: [resultOf("call_1", [text("a", true), text("b")])] },
      ],
      tools: [ownTools()[0], ownTools(marked())[1]],
    };
    const plain = await ask("openai", MESSAGES, request);
    assert.ok(!JSON.stringify(plain).includes("cache_control"));
    const { tools, messages } = await ask("openrouter", MESSAGES, request);
    const [g, f] = toolsOf();
    assert.deepEqual(tools, [g, { ...f, ...marked() }]);
    assert.deepEqual(messages[0].content, [
      { ...IMAGE, ...marked() },
      text("A."),
      { type: "file", file: { filename: "a.pdf", file_data: PDF }, ...marked() },
      text("See."),
    ]);
    assert.deepEqual(messages[2].content, [text("a\nb", true)]);
  });

  it("has them at tools of chat completions, and keeps parts for a mark there too", async () => {
    const tools = toolsOf(marked());
    const messages = [{ role: "user", content: [text("a"), text("b")] }];
    const asked = (provider: string) => ask(provider, CHAT, { messages, tools });
    const openrouter = await asked("openrouter");
    assert.deepEqual([openrouter["tools"], openrouter["messages"]], [tools, messages]);
    const anthropic = await asked("anthropic");
    const own = ownTools(marked());
    assert.deepEqual([anthropic["tools"], anthropic["messages"]], [own, messages]);
    for (const provider of ["openai", "gemini"])
      assert.ok(!JSON.stringify(await asked(provider)).includes("cache_control"));
  });

  it("has them at the parts that the client marked", async () => {
    const content = [
      text("a"),
      text("b", true),
      { ...IMAGE, ...marked() },
      { type: "file", file: { file_data: PDF }, ...marked() },
      text("c"),
      { ...text("d"), cache_control: "wrong" },
    ];
    const body = await ask("anthropic", CHAT, {
      ...chatBody(1),
      messages: [
        { role: "system", content: "First." },
        { role: "system", content: [text("Second.", true)] },
        { role: "user", content },
      ],
    });
    const source = (media_type: string, data: string) => ({ type: "base64", media_type, data });
    assert.deepEqual(body["system"], [text("First."), text("\n\nSecond.", true)]);
    assert.deepEqual(body["messages"][0].content, [
      text("a"),
      text("b", true),
      { type: "image", source: source("image/png", "QQ=="), ...marked() },
      { type: "document", source: source("application/pdf", "JVBE"), ...marked() },
      text("c"),
      text("d"),
    ]);
    // Fields that stay the same in a conversation come first.
    assert.deepEqual(Object.keys(body).slice(0, 4), ["model", "tools", "system", "messages"]);
  });
});
