// A request of the Messages API as the core's own: what is translated to what, what only a provider
// of the same format can serve, what is refused and where, and what such a provider gets.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pathText, ValidationError } from "../../../../src/core/schema/checker.ts";
import { OWN_SIGNATURE } from "../../../../src/extensions/apis/messages-input/index.ts";
import { mediaTokens } from "../../../../src/extensions/providers/media-tokens/media-tokens.ts";
import { atOnce } from "../../../../src/core/turns.ts";
import {
  readCountRequest,
  readRequest,
} from "../../../../src/extensions/apis/messages-input/index.ts";

type Json = Record<string, unknown>;

const HI = [{ role: "user", content: "Hi" }];
const BASE = { model: "m", max_tokens: 100, messages: HI };
const read = (over: Json = {}, headers: Record<string, string> = {}) =>
  atOnce(readRequest({ json: { ...BASE, ...over }, large: false }, headers));
const messagesOf = (over: Json) => read(over).messages;
const userBlocks = (...content: Json[]) => messagesOf({ messages: [{ role: "user", content }] });

/** Where a request is refused, and how. */
function issueOf(over: Json): string {
  try {
    read(over);
  } catch (error) {
    assert.ok(error instanceof ValidationError, String(error));
    const { path, message } = error.issues[0]!;
    return `${pathText(path)}: ${message}`;
  }
  return assert.fail("accepted");
}

/** What only a provider of the same format can serve. */
function onlyOf(over: Json): string {
  const { only } = read(over).native!;
  return only ? `${pathText(only.path)}: ${only.message}` : "nothing";
}

const SUFFIX = "needs a model of a provider that speaks the Messages API";
const tool = (name: string) => ({ name, input_schema: { type: "object" } });

describe("the parameters of a request", () => {
  it("are those of chat completions under the vendor's names", () => {
    const chat = read({
      stream: true,
      temperature: 0.5,
      top_p: 0.9,
      stop_sequences: ["END"],
      metadata: { user_id: "u1" },
    });
    assert.equal(chat.model, "m");
    assert.equal(chat.stream, true);
    assert.equal(chat.maxTokens, 100);
    assert.equal(chat.temperature, 0.5);
    assert.equal(chat.top_p, 0.9);
    assert.deepEqual(chat.stop, ["END"]);
    assert.equal(chat.user, "u1");
    assert.equal(chat.wantsThinking, false);
    assert.equal(chat.native!.only, undefined);
  });

  it("say whether the model thinks, how deep, and whether the client sees it", () => {
    const ways: [Json, [boolean, boolean, string | undefined]][] = [
      [{}, [false, false, undefined]],
      [{ thinking: { type: "disabled" } }, [false, false, undefined]],
      [{ thinking: { type: "adaptive" } }, [true, true, undefined]],
      [{ thinking: { type: "adaptive", display: "omitted" } }, [true, false, undefined]],
      [{ thinking: { type: "adaptive" }, output_config: { effort: "max" } }, [true, true, "max"]],
      [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, [true, true, "low"]],
      [{ thinking: { type: "enabled", budget_tokens: 4_096 } }, [true, true, "medium"]],
      [{ thinking: { type: "enabled", budget_tokens: 16_384 } }, [true, true, "high"]],
    ];
    for (const [over, expected] of ways) {
      const { wantsThinking, showThinking, effort } = read(over);
      assert.deepEqual([wantsThinking, showThinking, effort], expected, JSON.stringify(over));
    }
  });

  it("have the client's tools, which the model may call unless the client says otherwise", () => {
    const tools = [
      { type: "custom", name: "f", description: "d", input_schema: { type: "object" } },
    ];
    const choices: [Json, unknown, boolean | undefined][] = [
      [{}, "auto", undefined],
      [{ tool_choice: { type: "any" } }, "required", undefined],
      [{ tool_choice: { type: "none" } }, "none", undefined],
      [
        { tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true } },
        { type: "function", function: { name: "f" } },
        false,
      ],
    ];
    for (const [over, choice, parallel] of choices) {
      const chat = read({ tools, ...over });
      assert.deepEqual(chat.tool_choice, choice);
      assert.equal(chat.parallel_tool_calls, parallel);
      const [first] = chat.tools!;
      assert.equal(first!.function.description, "d");
      assert.deepEqual(first!.function.parameters, { type: "object" });
    }
  });

  it("have the schema of the reply under either name", () => {
    const format = { type: "json_schema", schema: { type: "object" } };
    for (const over of [{ output_config: { format } }, { output_format: format }])
      assert.deepEqual(read(over).response_format, {
        type: "json_schema",
        json_schema: {
          name: "reply",
          description: undefined,
          schema: { type: "object" },
          strict: true,
        },
      });
  });
});

describe("messages", () => {
  it("begin with the system's text, its blocks as paragraphs", () => {
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
      { type: "text", text: "You help." },
      { type: "text", text: "You are brief." },
    ];
    assert.deepEqual(messagesOf({ system }), [
      { role: "system", content: "You help.\n\nYou are brief." },
      { role: "user", content: "Hi" },
    ]);
    assert.equal(messagesOf({ system: "One." })[0]!.content, "One.");
  });

  it("leave out only the line that Claude Code writes of itself", () => {
    const line = "x-anthropic-billing-header: cc_version=2;";
    const system = (text: unknown) => messagesOf({ system: text })[0];
    assert.deepEqual(system(`${line}\n\nYou help.`), { role: "system", content: "You help." });
    assert.deepEqual(system(line), { role: "user", content: "Hi" });
    const blocks = [{ type: "text", text: `${line}\nYou help.` }];
    assert.deepEqual(system(blocks), { role: "system", content: "You help." });
  });

  it("have texts and documents as paragraphs", () => {
    const document = (data: string) => ({ type: "document", source: { type: "text", data } });
    const said = (text: string) => ({ type: "text", text });
    const contents: [Json[], string][] = [
      [[said("one"), said("two")], "one\n\ntwo"],
      [[document("The end."), said("What does it say?")], "The end.\n\nWhat does it say?"],
      [
        [
          {
            type: "document",
            title: "Notes",
            source: { type: "content", content: [said("a"), said("b")] },
          },
          said("Well?"),
        ],
        "Notes\n\na\n\nb\n\nWell?",
      ],
    ];
    for (const [blocks, expected] of contents)
      assert.equal(userBlocks(...blocks)[0]!.content, expected);
    // An assistant's texts are the pieces of one.
    const answer = { role: "assistant", content: [said("one"), said(" and two")] };
    assert.equal(messagesOf({ messages: [...HI, answer] })[1]!.content, "one and two");
  });

  it("keep instructions at their place", () => {
    const messages = [...HI, { role: "system", content: "Hurry." }];
    assert.deepEqual(messagesOf({ messages }), [
      { role: "user", content: "Hi" },
      { role: "system", content: "Hurry." },
    ]);
  });

  it("have images and documents as parts", () => {
    const base64 = { type: "base64", media_type: "image/png", data: "QQ==" };
    const pdf = { type: "base64", media_type: "application/pdf", data: "Qg==" };
    const [{ content } = { content: "" }] = userBlocks(
      { type: "text", text: "See:" },
      { type: "image", source: base64 },
      { type: "image", source: { type: "url", url: "https://x.example/i.png" } },
      { type: "document", source: pdf, title: "r.pdf", context: "A report." },
      { type: "document", source: { type: "text", data: "Plain." }, title: "Notes" },
      { type: "document", source: { type: "content", content: "In one." } },
    );
    assert.deepEqual(content, [
      { type: "text", text: "See:" },
      { type: "image_url", image_url: { url: "data:image/png;base64,QQ==", detail: undefined } },
      { type: "image_url", image_url: { url: "https://x.example/i.png", detail: undefined } },
      { type: "text", text: "A report." },
      {
        type: "file",
        file: { filename: "r.pdf", file_data: "data:application/pdf;base64,Qg==" },
      },
      { type: "text", text: "Notes\n\nPlain." },
      { type: "text", text: "\n\nIn one." },
    ]);
  });

  it("have calls, thoughts and results as chat completions has them", () => {
    const messages = [
      ...HI,
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "s" },
          { type: "redacted_thinking", data: "x" },
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
          { type: "tool_use", id: "b", name: "f", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "one" },
          {
            type: "tool_result",
            tool_use_id: "b",
            is_error: true,
            content: [
              { type: "text", text: "two" },
              { type: "text", text: "three" },
              { type: "image", source: { type: "url", url: "https://x.example/" } },
            ],
          },
          { type: "text", text: "Go on." },
        ],
      },
    ];
    const [, assistant, ...rest] = messagesOf({ messages });
    assert.deepEqual(assistant, {
      role: "assistant",
      content: "Let me see.",
      reasoning_content: "Hm.",
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
        { id: "b", type: "function", function: { name: "f", arguments: "{}" } },
      ],
    });
    assert.deepEqual(rest, [
      { role: "tool", tool_call_id: "a", content: "one" },
      {
        role: "tool",
        tool_call_id: "b",
        content: "Error: two\nthree\n(What the tool shows follows in the next message.)",
      },
      {
        role: "user",
        content: [
          { type: "text", text: "What the tool call b shows:" },
          { type: "image_url", image_url: { url: "https://x.example/", detail: undefined } },
          { type: "text", text: "Go on." },
        ],
      },
    ]);
  });

  it("counts the tools before it looks at one of them", () => {
    const untouched = new Proxy({}, { get: () => assert.fail("a tool was read") });
    const tools = Array.from({ length: 10_001 }, () => untouched);
    const counted = "tools: expected at most 10000 elements, got 10001";
    assert.equal(issueOf({ tools }), counted);
  });

  it("may be empty where the vendor lets them", () => {
    const messages = [{ role: "assistant", content: [{ type: "redacted_thinking", data: "x" }] }];
    assert.equal(messagesOf({ messages })[0]!.content, "");
  });
});

describe("a parameter of -1", () => {
  const { top_p, native } = read({ top_p: -1, top_k: -1 });

  it("is one that is not set", () => {
    assert.equal(top_p, undefined);
    assert.equal(native?.only, undefined);
  });

  it("goes as it came to a provider of the same format", () => {
    assert.deepEqual([native?.body["top_p"], native?.body["top_k"]], [-1, -1]);
  });

  it("is refused where the vendor has no such value, and so are others below 0", () => {
    for (const over of [{ temperature: -1 }, { top_p: -0.5 }, { top_k: -2 }, { top_k: -1.5 }])
      assert.throws(() => read(over), /expected/);
  });
});

describe("what only a provider of the same format can serve", () => {
  const cases: [string, Json][] = [
    ["top_k: top_k", { top_k: 5 }],
    ["max_tokens: a prompt without a reply", { max_tokens: 0 }],
    [
      'thinking.type: thinking of the type "between_tools"',
      { thinking: { type: "between_tools" } },
    ],
    [
      'tool_choice.type: a choice of the type "several"',
      { tools: [tool("f")], tool_choice: { type: "several" } },
    ],
    ["compaction: a compaction", { compaction: { type: "summarize" } }],
    ["thread: a thread, which the provider keeps,", { thread: { type: "create" } }],
    [
      "messages[1].clear_at: an instruction that is cleared",
      {
        messages: [...HI, { role: "system", content: "Hurry.", clear_at: "next_user_message" }],
      },
    ],
    ['output_format: a format of the type "grammar"', { output_format: { type: "grammar" } }],
    ["container: a container", { container: "c" }],
    ["mcp_servers: an MCP server of the provider", { mcp_servers: [{ type: "url" }] }],
    ["stop_sequences: more than 4 stop sequences", { stop_sequences: ["a", "b", "c", "d", "e"] }],
    [
      'context_management.edits[0]: an edit of the type "compact_20260112"',
      { context_management: { edits: [{ type: "compact_20260112" }] } },
    ],
    [
      'tools[1].type: a tool of the type "web_search_20250305"',
      { tools: [tool("f"), { type: "web_search_20250305", name: "web_search" }] },
    ],
    [
      'tools[0].type: a tool of the type "bash_20250124"',
      {
        tools: [{ type: "bash_20250124", name: "bash" }],
        tool_choice: { type: "tool", name: "bash" },
      },
    ],
    [
      "tools[0].name: a name of another form than 1 to 64 of A-Z a-z 0-9 _ -",
      { tools: [tool("x".repeat(65))] },
    ],
    ["tools: more than 128 tools", { tools: Array.from({ length: 129 }, (_, n) => tool(`f${n}`)) }],
    [
      'output_config.format: a format of the type "grammar"',
      { output_config: { format: { type: "grammar" } } },
    ],
    [
      'messages[0].content[1]: a block of the type "search_result"',
      {
        messages: [
          { role: "user", content: [{ type: "text", text: "x" }, { type: "search_result" }] },
        ],
      },
    ],
    [
      'messages[0].content[0].source: an image of the source "file"',
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "file" } }] }] },
    ],
    [
      'messages[0].content[0].source: a document of the source "url"',
      {
        messages: [
          {
            role: "user",
            content: [{ type: "document", source: { type: "url", url: "https://a.test/b.pdf" } }],
          },
        ],
      },
    ],
    [
      "messages[0].content[0].citations: citations",
      {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "text", data: "x" },
                citations: { enabled: true },
              },
            ],
          },
        ],
      },
    ],
    [
      'messages[1].content[0]: a block of the type "server_tool_use"',
      { messages: [...HI, { role: "assistant", content: [{ type: "server_tool_use" }] }] },
    ],
  ];
  for (const [expected, over] of cases)
    it(`is ${expected}`, () => assert.equal(onlyOf(over), `${expected} ${SUFFIX}`));

  it("counts as a file of ten pages where a document is only an address", () => {
    const source = { type: "url", url: "https://a.test/b.pdf" };
    const content = [{ type: "document", source }];
    const chat = read({ messages: [{ role: "user", content }] });
    assert.equal(mediaTokens(chat, "anthropic"), 31_000);
    const result = { type: "tool_result", tool_use_id: "t", content };
    const called = { type: "tool_use", id: "t", name: "f", input: {} };
    const messages = [
      ...HI,
      { role: "assistant", content: [called] },
      { role: "user", content: [result] },
    ];
    assert.equal(mediaTokens(read({ messages }), "anthropic"), 31_000);
  });

  it("is not what has no effect on the meaning", () => {
    const over = {
      service_tier: "auto",
      metadata: { user_id: "u" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
      thread: null,
      compaction: null,
      messages: [
        ...HI,
        { role: "system", output_config: { effort: "low" } },
        { role: "system", content: "Hurry.", clear_at: "never" },
      ],
    };
    assert.equal(onlyOf(over), "nothing");
    assert.deepEqual(
      messagesOf(over).map(({ role }) => role),
      ["system", "user", "system"],
    );
  });

  it("has a limit of 0 tokens", () => assert.equal(read({ max_tokens: 0 }).maxTokens, 0));

  it("may answer calls of a conversation that the provider keeps", () => {
    const result = { type: "tool_result", tool_use_id: "t", content: "x" };
    const over = {
      thread: { type: "continue", previous_message_id: "msg_1" },
      messages: [{ role: "user", content: [result] }],
    };
    assert.match(onlyOf(over), /^thread: /);
    assert.deepEqual(read(over).native!.body["messages"], over.messages);
  });

  it("counts as much as it has bytes, without the data of media", () => {
    const words = "x".repeat(1_000);
    const found = { type: "search_result", content: [{ type: "text", text: words }] };
    const bytesOf = (over: Json) => read(over).native!.untranslatedBytes;
    const block = { messages: [{ role: "user", content: [found] }] };
    assert.equal(bytesOf(block), JSON.stringify(found).length);
    const result = { type: "tool_result", tool_use_id: "t", content: [found] };
    const call = { type: "tool_use", id: "t", name: "f", input: {} };
    const within = [
      { role: "assistant", content: [call] },
      { role: "user", content: [result] },
    ];
    assert.equal(bytesOf({ messages: within }), JSON.stringify(found).length);
    const future = { type: "x_20300101", description: words };
    assert.equal(bytesOf({ tools: [tool("f"), future] }), JSON.stringify(future).length);
    const video = { type: "video", source: { data: words } };
    assert.ok(bytesOf({ messages: [{ role: "user", content: [video] }] })! < 100);
    assert.equal(bytesOf({ top_k: 1 }), 0);
  });
});

describe("a request that is wrong in every format", () => {
  const cases: [string, Json][] = [
    ["max_tokens: is required", { max_tokens: undefined }],
    ["messages: expected at least 1 element, got 0", { messages: [] }],
    ["messages: is required", { messages: undefined }],
    ["temperature: expected a number from 0 to 1, got 1.5", { temperature: 1.5 }],
    [
      "thinking.budget_tokens: expected an integer of at least 1024, got 5",
      { thinking: { type: "enabled", budget_tokens: 5 } },
    ],
    [
      'messages[0].role: expected one of "user", "assistant", "system", got "tool"',
      { messages: [{ role: "tool", content: "x" }] },
    ],
    [
      "messages[0].content[0].text: is required",
      { messages: [{ role: "user", content: [{ type: "text" }] }] },
    ],
    [
      "messages[1].content[1].tool_use_id: answers no tool call of an assistant message before it",
      {
        system: "x",
        messages: [
          ...HI,
          {
            role: "user",
            content: [
              { type: "text", text: "x" },
              { type: "tool_result", tool_use_id: "no", content: "x" },
            ],
          },
        ],
      },
    ],
    [
      "tool_choice: names a function that is not among the tools",
      { tools: [tool("f")], tool_choice: { type: "tool", name: "g" } },
    ],
    [
      'tool_choice: may only be set, other than to "none", together with tools',
      { tool_choice: { type: "any" } },
    ],
    [
      'tool_choice: may only be set, other than to "none", together with tools',
      { tools: [], tool_choice: { type: "tool", name: "f" } },
    ],
  ];
  for (const [expected, over] of cases)
    it(`is refused: ${expected}`, () => assert.equal(issueOf(over), expected));

  it("is refused at the place where its client put what is wrong", () => {
    const search = { type: "web_search_20250305", name: "web_search" };
    const faulty = { name: "f", input_schema: { x: "y".repeat(256 * 1024) } };
    assert.match(issueOf({ tools: [search, tool("g"), faulty] }), /^tools\[2\]\.input_schema: /);
    assert.equal(
      issueOf({ messages: [...HI, { role: "system" }] }),
      "messages[1].content: is required",
    );
  });

  it("is refused if it is too deep to be written again", () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
    assert.match(issueOf({ future_field: deep(200) }), /levels of nesting/);
  });
});

describe("the request for a provider of the same format", () => {
  it("is the client's, with the headers of the format", () => {
    const body = { ...BASE, future_field: { x: 1 }, system: [{ type: "text", text: "x" }] };
    const headers = {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "a,b",
      "anthropic-user-profile-id": "up_1",
      "x-api-key": "secret",
    };
    const { native } = atOnce(readRequest({ json: body, large: false }, headers));
    assert.equal(native!.dialect, "anthropic");
    assert.deepEqual(native!.body, body);
    assert.deepEqual(native!.headers, {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "a,b",
      "anthropic-user-profile-id": "up_1",
    });
  });

  const called = (...thoughts: Json[]) => [
    ...HI,
    {
      role: "assistant",
      content: [...thoughts, { type: "tool_use", id: "t", name: "f", input: {} }],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "x" }] },
  ];
  const own = { type: "thinking", thinking: "Hm.", signature: OWN_SIGNATURE };
  const signed = { type: "thinking", thinking: "Hm.", signature: "EqQB" };

  it("has no thoughts of models that sign none", () => {
    const { body } = read({ messages: called(own, signed) }).native!;
    assert.deepEqual(body["messages"], called(signed));
    const alone = [...HI, { role: "assistant", content: [own] }, ...HI];
    assert.deepEqual(read({ messages: alone }).native!.body["messages"], [
      ...HI,
      { role: "assistant", content: [{ type: "text", text: "(no answer)" }] },
      ...HI,
    ]);
  });

  it("asks for no thoughts where the provider would refuse to think", () => {
    const thinking = { type: "enabled", budget_tokens: 1_024 };
    const of = (messages: unknown[], over: Json = { thinking }) =>
      read({ messages, ...over }).native!.body["thinking"];
    assert.deepEqual(of(called(own)), { type: "disabled" });
    assert.deepEqual(of(called()), { type: "disabled" });
    assert.deepEqual(of(called(signed)), thinking);
    assert.deepEqual(of(called({ type: "redacted_thinking", data: "x" })), thinking);
    // To the provider, what follows the results belongs to the same turn of the user.
    assert.deepEqual(of([...called(), ...HI]), { type: "disabled" });
    assert.deepEqual(of([...called(own), ...HI]), { type: "disabled" });
    const instruction = { role: "system", content: "Hurry." };
    assert.deepEqual(of([...called(own), instruction]), { type: "disabled" });
    assert.deepEqual(of([...called(signed), instruction, ...HI]), thinking);
    const answered = { role: "assistant", content: "Done." };
    assert.deepEqual(of([...called(own), answered, ...HI]), thinking);
    assert.deepEqual(of(called(own), { thinking: { type: "adaptive" } }), { type: "adaptive" });
  });
});

describe("thinking in a loop of calls", () => {
  const call = (id: string, ...thoughts: Json[]) => [
    { role: "assistant", content: [...thoughts, { type: "tool_use", id, name: "f", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "x" }] },
  ];
  const thought = (signature: string) => ({ type: "thinking", thinking: "Hm.", signature });
  const signed = thought("EqQB");
  const own = thought(OWN_SIGNATURE);
  const thinking = { type: "enabled", budget_tokens: 1_024 };
  const thinkingIn = (...calls: unknown[][]) =>
    read({ messages: [...HI, ...calls.flat()], thinking }).native!.body["thinking"];

  it("stays on where the provider itself began it, with thoughts at its beginning or later", () => {
    assert.deepEqual(thinkingIn(call("a", signed), call("b")), thinking);
    assert.deepEqual(thinkingIn(call("a", signed), call("b", own)), thinking);
    assert.deepEqual(thinkingIn(call("a"), call("b", signed)), thinking);
  });

  it("is switched off where another provider's model began it", () => {
    assert.deepEqual(thinkingIn(call("a", own), call("b")), { type: "disabled" });
    assert.deepEqual(thinkingIn(call("a", own), call("b", signed)), { type: "disabled" });
    assert.deepEqual(thinkingIn(call("a"), call("b")), { type: "disabled" });
  });

  it("is no matter of the loops before it", () => {
    const earlier = [...call("a", own), { role: "assistant", content: "Done." }, ...HI];
    assert.deepEqual(thinkingIn(earlier, call("b", signed)), thinking);
  });
});

describe("a request for a count", () => {
  it("needs no limit of the reply", () => {
    const json = { model: "m", messages: HI, tools: [tool("f")] };
    const chat = atOnce(readCountRequest({ json, large: false }, {}));
    assert.equal(chat.maxTokens, undefined);
    assert.equal(chat.tools!.length, 1);
  });
});
