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
  gemini: {
    candidates: [{ content: { role: "model", parts: [{ text: "Fine." }] }, finishReason: "STOP" }],
  },
};

async function start(t: TestContext, dialect: string, settings: object = {}) {
  const provider = await startProvider(t, status(200, REPLIES[dialect]));
  const config = configFor(provider.url, [], {
    apis: ["messages"],
    providers: { behind: { dialect, base_url: provider.url, api_key: "k", ...settings } },
    models: { m: { provider: "behind", supports: ["tools", "images"] } },
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

/** The mark is at the last of the user's texts only, as Claude Code has it. */
const marked = (isLast: boolean) => (isLast ? { cache_control: MARK } : {});

/** A conversation of so many turns as a client of chat completions has it. */
function chatBody(turns: number): Json {
  const messages: Json[] = [
    { role: "system", content: [{ type: "text", text: "You help.", cache_control: MARK }] },
  ];
  for (let turn = 0; turn < turns; turn += 1) {
    const isLast = turn === turns - 1;
    const id = `call_of_turn_${turn}`;
    messages.push(
      {
        role: "user",
        content: [
          { type: "text", text: `Question ${turn}: ` },
          { type: "text", text: "what is it?", ...marked(isLast) },
        ],
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
function messagesBody(turns: number): Json {
  const messages: Json[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const isLast = turn === turns - 1;
    const id = `call_of_turn_${turn}`;
    messages.push(
      {
        role: "user",
        content: [
          { type: "text", text: `Question ${turn}: ` },
          { type: "text", text: "what is it?", ...marked(isLast) },
        ],
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

const APIS = [
  ["/v1/chat/completions", chatBody],
  ["/v1/messages", messagesBody],
] as const;

/** Marks move: they are no part of what is cached. */
const withoutMarks = (json: unknown): string =>
  JSON.stringify(json, (name, value) => (name === "cache_control" ? undefined : value));

/** The conversation apart, and all else. */
function split(body: Json): { readonly turns: string; readonly rest: string } {
  const { messages, contents, ...rest } = body;
  return { turns: withoutMarks(messages ?? contents), rest: withoutMarks(rest) };
}

describe("the beginning of a conversation", () => {
  for (const [path, bodyOf] of APIS)
    for (const dialect of Object.keys(REPLIES))
      it(`is the same over ten turns: ${path} to ${dialect}`, async (t) => {
        const ask = await start(t, dialect);
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

  it("has them at the texts that the client marked", async (t) => {
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
            { type: "image_url", image_url: { url: "data:image/png;base64,QQ==" } },
            { type: "text", text: "c" },
            { type: "text", text: "d", cache_control: "wrong" },
          ],
        },
      ],
    });
    assert.deepEqual(body["system"], [
      { type: "text", text: "First.\n\nSecond.", cache_control: MARK },
    ]);
    assert.deepEqual(body["messages"][0].content, [
      { type: "text", text: "ab", cache_control: MARK },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "QQ==" } },
      { type: "text", text: "cd" },
    ]);
  });
});
