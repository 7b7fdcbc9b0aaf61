// What providers can find in their caches: from one turn of a conversation to the next its beginning
// leaves the gateway byte for byte the same, in every dialect and through every client API, although
// clients move their marks for the cache. And where these marks go.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, KEY, startGateway } from "./support/gateway.ts";
import { completion, startProvider, status, type Asked } from "./support/provider.ts";

type Json = Record<string, any>;

const TURNS = 10;
const MARK = { type: "ephemeral" };
const PARAMETERS = { type: "object", properties: { z: { type: "string" }, a: { type: "number" } } };

/** What a provider of each dialect answers: how is all the same here. */
const REPLIES: Readonly<Record<string, object>> = {
  openai: completion({ content: "Fine." }),
  anthropic: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [{ type: "text", text: "Fine." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 7 },
  },
  converse: {
    output: { message: { role: "assistant", content: [{ text: "Fine." }] } },
    stopReason: "end_turn",
    usage: { inputTokens: 20, outputTokens: 7 },
  },
  ollama: { message: { role: "assistant", content: "Fine." }, done: true, done_reason: "stop" },
  gemini: {
    candidates: [{ content: { role: "model", parts: [{ text: "Fine." }] }, finishReason: "STOP" }],
  },
};

/** What the models of a dialect can do here. */
const files = (dialect: string) => ["tools", "images", ...(dialect === "ollama" ? [] : ["files"])];

async function start(t: TestContext, dialect: string, settings: object = {}) {
  const provider = await startProvider(t, status(200, REPLIES[dialect]));
  const config = configFor(provider.url, [], {
    apis: ["messages", "responses"],
    providers: { behind: { dialect, base_url: provider.url, api_key: "k", ...settings } },
    models: {
      m: { provider: "behind", upstream_model: "amazon.m", supports: files(dialect) },
    },
  });
  const { url } = await startGateway(t, config);
  async function ask(path: string, body: object): Promise<Asked> {
    const response = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    assert.equal(response.status, 200, await response.text());
    return provider.asked.at(-1)!;
  }
  return ask;
}

/** The providers that are tried, each with its dialect and its further settings. */
const PROVIDERS: Readonly<Record<string, readonly [dialect: string, settings?: object]>> = {
  openai: ["openai"],
  anthropic: ["anthropic"],
  gemini: ["gemini"],
  bedrock: ["converse", { vendor: "bedrock", dialect: undefined, region: "r" }],
  ollama: ["ollama"],
  openrouter: ["openai", { vendor: "openrouter", dialect: undefined }],
  "a server that takes marks": ["openai", { cache_control: true }],
};

const marked = (isMarked: boolean) => (isMarked ? { cache_control: MARK } : {});
const text = (words: string, isMarked = false) => ({
  type: "text",
  text: words,
  ...marked(isMarked),
});

/** What the user says in a turn of so many. */
type Asks = (turn: number, turns: number) => unknown;
const isOfLastTwo = (turn: number, turns: number): boolean => turn >= turns - 2;

/** Where clients have their marks. */
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
};
/** Claude Code makes a list of a text only while it has a mark. */
const LISTED_IF_MARKED: Asks = (turn, turns) => {
  const words = `Question ${turn}?`;
  return turn === turns - 1 ? [text(words, true)] : words;
};

/** A conversation of so many turns as a client of chat completions has it. */
function chatBody(turns: number, asked: Asks = MARKINGS["the last text"]!): Json {
  const messages: Json[] = [
    { role: "system", content: [{ type: "text", text: "You help.", cache_control: MARK }] },
  ];
  for (let turn = 0; turn < turns; turn += 1) {
    const isLast = turn === turns - 1;
    const id = `call_of_turn_${turn}`;
    messages.push(
      {
        role: "user",
        content: asked(turn, turns),
      },
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [
          { id, type: "function", function: { name: "f", arguments: '{"z":"1","a":2}' } },
        ],
      },
      {
        role: "tool",
        tool_call_id: id,
        content: [{ type: "text", text: `Result ${turn}`, ...marked(isLast) }],
      },
    );
    if (!isLast) messages.push({ role: "assistant", content: `Answer ${turn}` });
  }
  const tools = ["g", "f"].map((name) => ({
    type: "function",
    function: { name, parameters: PARAMETERS },
  }));
  return { model: "m", messages, tools, tool_choice: "auto" };
}

/** The same as a client of the Messages API has it. */
function messagesBody(turns: number, asked: Asks = MARKINGS["the last text"]!): Json {
  const messages: Json[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const isLast = turn === turns - 1;
    const id = `call_of_turn_${turn}`;
    messages.push(
      {
        role: "user",
        content: asked(turn, turns),
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me see." },
          { type: "tool_use", id, name: "f", input: { z: "1", a: 2 } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: id, content: `Result ${turn}`, ...marked(isLast) },
        ],
      },
    );
    if (!isLast)
      messages.push({ role: "assistant", content: [{ type: "text", text: `Answer ${turn}` }] });
  }
  return {
    model: "m",
    max_tokens: 100,
    system: [{ type: "text", text: "You help.", cache_control: MARK }],
    messages,
    tools: ["g", "f"].map((name) => ({ name, input_schema: PARAMETERS })),
  };
}

/** A conversation of so many turns in which instructions come up. */
const instructed = (turns: number): Json[] =>
  Array.from({ length: turns }, (_, turn) => [
    ...(turn === 0 ? [] : [{ role: "assistant", content: `Answer ${turn - 1}` }]),
    ...(turn % 3 === 2 ? [{ role: "system", content: `Rule ${turn}.` }] : []),
    { role: "user", content: `Question ${turn}?` },
  ]).flat();

const APIS = [
  ["/v1/chat/completions", chatBody],
  ["/v1/messages", messagesBody],
] as const;

/** Marks move: they are no part of what is cached. Those of Amazon are blocks of their own. */
const withoutMarks = (json: unknown): string =>
  JSON.stringify(json, (name, value) => {
    if (name === "cache_control") return undefined;
    return Array.isArray(value) ? value.filter((each) => !each?.cachePoint) : value;
  });

/** The conversation apart, and all else. */
function split(body: Json): { readonly turns: string; readonly rest: string } {
  const { messages, contents, ...rest } = body;
  return { turns: withoutMarks(messages ?? contents), rest: withoutMarks(rest) };
}

/** Fails if a turn does not begin with what was sent in the turn before. */
async function assertSame(
  ask: Awaited<ReturnType<typeof start>>,
  path: string,
  bodyOf: (turns: number) => Json,
): Promise<void> {
  let before: ReturnType<typeof split> | undefined;
  for (let turns = 1; turns <= TURNS; turns += 1) {
    const { body } = await ask(path, bodyOf(turns));
    const now = split(body);
    if (before) {
      assert.equal(now.rest, before.rest);
      const beginning = before.turns.slice(0, -1); // without the end of the list
      assert.equal(now.turns.slice(0, beginning.length), beginning);
    }
    before = now;
  }
}

describe("the beginning of a conversation", () => {
  for (const [path, bodyOf] of APIS)
    for (const [provider, [dialect, settings]] of Object.entries(PROVIDERS)) {
      for (const [place, asked] of Object.entries(MARKINGS))
        it(`is the same over ten turns: ${path} to ${provider}, marks at ${place}`, async (t) => {
          await assertSame(await start(t, dialect, settings), path, (turns) =>
            bodyOf(turns, asked),
          );
        });
      // A request in the provider's own format goes as its client wrote it.
      if (path === "/v1/messages" && provider === "anthropic") continue;
      it(`is the same where texts are lists while marked: ${path} to ${provider}`, async (t) => {
        await assertSame(await start(t, dialect, settings), path, (turns) =>
          bodyOf(turns, LISTED_IF_MARKED),
        );
      });
    }

  for (const [provider, [dialect, settings]] of Object.entries(PROVIDERS)) {
    it(`is the same where instructions come up: /v1/messages to ${provider}`, async (t) => {
      await assertSame(await start(t, dialect, settings), "/v1/messages", (turns) => ({
        model: "m",
        max_tokens: 100,
        system: "You help.",
        messages: instructed(turns),
      }));
    });
    it(`is the same where instructions come up: /v1/responses to ${provider}`, async (t) => {
      await assertSame(await start(t, dialect, settings), "/v1/responses", (turns) => ({
        model: "m",
        store: false,
        instructions: "You help.",
        input: instructed(turns),
      }));
    });
  }

  it("has no texts of blanks alone, and their marks at the part before", async (t) => {
    const content = [
      text("", true),
      text("b"),
      text("\n", true),
      { type: "image_url", image_url: { url: "data:image/png;base64,QQ==" } },
      text(" ", true),
      text("c", true),
      text(""),
    ];
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,QQ==" } };
    const ask = await start(t, ...PROVIDERS["openrouter"]!);
    const messages = [
      { role: "system", content: "" },
      { role: "user", content },
    ];
    const { body } = await ask("/v1/chat/completions", { model: "m", messages });
    assert.deepEqual(body["messages"], [
      { role: "system", content: "" },
      {
        role: "user",
        content: [text("b\n", true), { ...image, ...marked(true) }, text("c", true)],
      },
    ]);
  });

  it("has marks for the cache only where the provider takes them", async (t) => {
    for (const [path, bodyOf] of APIS) {
      const marksAt = async (dialect: string, settings: object = {}) => {
        const ask = await start(t, dialect, settings);
        const { body } = await ask(path, bodyOf(2));
        return (
          JSON.stringify(body).split(JSON.stringify({ cache_control: MARK }).slice(1, -1)).length -
          1
        );
      };
      assert.equal(await marksAt("openai"), 0);
      assert.equal(await marksAt("gemini"), 0);
      assert.equal(await marksAt("openai", { cache_control: true }), 3);
      assert.equal(await marksAt("openai", { vendor: "openrouter", dialect: undefined }), 3);
      assert.equal(await marksAt("anthropic"), 3);
    }
  });

  it("has them at tools, media and texts in results of tools", async (t) => {
    const image = { type: "base64", media_type: "image/png", data: "QQ==" };
    const pdf = { type: "base64", media_type: "application/pdf", data: "JVBE" };
    const request = {
      model: "m",
      max_tokens: 100,
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: image, cache_control: MARK },
            { type: "document", source: pdf, title: "a.pdf", context: "A.", cache_control: MARK },
            text("See."),
          ],
        },
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "f", input: {} }] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_1", content: [text("a", true), text("b")] },
          ],
        },
      ],
      tools: [
        { name: "g", input_schema: PARAMETERS },
        { name: "f", input_schema: PARAMETERS, cache_control: MARK },
      ],
    };
    const plain = await (await start(t, "openai"))("/v1/messages", request);
    assert.ok(!JSON.stringify(plain.body).includes("cache_control"));
    const { body } = await (await start(t, ...PROVIDERS["openrouter"]!))("/v1/messages", request);
    const [g, f] = ["g", "f"].map((name) => ({
      type: "function",
      function: { name, parameters: PARAMETERS },
    }));
    assert.deepEqual(body["tools"], [g, { ...f, ...marked(true) }]);
    const { messages } = body;
    assert.deepEqual(messages[0].content, [
      { type: "image_url", image_url: { url: "data:image/png;base64,QQ==" }, cache_control: MARK },
      text("A."),
      {
        type: "file",
        file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" },
        cache_control: MARK,
      },
      text("See."),
    ]);
    assert.deepEqual(messages[2].content, [text("a\nb", true)]);
  });

  it("has them at tools of chat completions, and keeps parts for a mark there too", async (t) => {
    const tools = chatBody(1)["tools"].map((tool: Json) => ({ ...tool, cache_control: MARK }));
    const messages = [{ role: "user", content: [text("a"), text("b")] }];
    const asked = async (provider: string) => {
      const ask = await start(t, ...PROVIDERS[provider]!);
      return (await ask("/v1/chat/completions", { model: "m", messages, tools })).body;
    };
    const openrouter = await asked("openrouter");
    assert.deepEqual(openrouter["tools"], tools);
    assert.deepEqual(openrouter["messages"], messages);
    const anthropic = await asked("anthropic");
    assert.deepEqual(
      anthropic["tools"],
      ["g", "f"].map((name) => ({ name, input_schema: PARAMETERS, cache_control: MARK })),
    );
    assert.deepEqual(anthropic["messages"], messages);
    for (const provider of ["openai", "gemini"])
      assert.ok(!JSON.stringify(await asked(provider)).includes("cache_control"));
  });

  it("has them at the parts that the client marked", async (t) => {
    const ask = await start(t, "anthropic");
    const { body } = await ask("/v1/chat/completions", {
      ...chatBody(1),
      messages: [
        { role: "system", content: "First." },
        { role: "system", content: [{ type: "text", text: "Second.", cache_control: MARK }] },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b", cache_control: MARK },
            {
              type: "image_url",
              image_url: { url: "data:image/png;base64,QQ==" },
              cache_control: MARK,
            },
            {
              type: "file",
              file: { file_data: "data:application/pdf;base64,JVBE" },
              cache_control: MARK,
            },
            { type: "text", text: "c" },
            { type: "text", text: "d", cache_control: "wrong" },
          ],
        },
      ],
    });
    assert.deepEqual(body["system"], [text("First."), text("\n\nSecond.", true)]);
    assert.deepEqual(body["messages"][0].content, [
      text("a"),
      text("b", true),
      {
        type: "image",
        source: { type: "base64", media_type: "image/png", data: "QQ==" },
        cache_control: MARK,
      },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
        cache_control: MARK,
      },
      text("c"),
      text("d"),
    ]);
  });
});

describe("the body of the Messages API", () => {
  it("begins with what stays the same in a conversation", async (t) => {
    const ask = await start(t, "anthropic");
    const { body } = await ask("/v1/chat/completions", chatBody(2));
    assert.deepEqual(Object.keys(body).slice(0, 4), ["model", "tools", "system", "messages"]);
  });
});
