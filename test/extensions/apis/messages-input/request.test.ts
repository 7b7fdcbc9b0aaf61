// Translates a Messages API request to the core's own: the result of each field, what only a
// provider of the same format can serve, what is rejected and with which path, and what such a
// provider gets.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pathText, ValidationError } from "../../../../src/core/schema/checker.ts";
import {
  GATEWAY_SIGNATURE,
  readRequest,
} from "../../../../src/extensions/apis/messages-input/index.ts";
import { mediaTokens } from "../../../../src/extensions/providers/media-tokens/index.ts";
import { runSync } from "../../../../src/core/turns.ts";
import { thrownBy } from "../../../support/wait.ts";

type Json = Record<string, unknown>;

const open = (text: string) => (text.startsWith("ok ") ? text.slice(3) : undefined);
const own = { type: "thinking", thinking: "Hm.", signature: GATEWAY_SIGNATURE };
const sealed = (text: string) => ({ ...own, thinking: "", signature: `chat-gateway:${text}` });
const signed = { type: "thinking", thinking: "Hm.", signature: "EqQB" };
const HI = [{ role: "user", content: "Hi" }];
const BASE = { model: "m", max_tokens: 100, messages: HI };
const stepsFor = (over: Json) =>
  readRequest({ json: { ...BASE, ...over }, large: false }, {}, open);
const read = (over: Json = {}) => runSync(stepsFor(over));
const messagesOf = (over: Json) => read(over).messages;
const user = (...content: Json[]) => ({ role: "user", content });
const assistant = (...content: Json[]) => ({ role: "assistant", content });
const userBlocks = (...content: Json[]) => messagesOf({ messages: [user(...content)] });

/** The path and the message of a rejected request. */
function issueOf(over: Json): string {
  const { path, message } = thrownBy(ValidationError, () => read(over)).issues[0]!;
  return `${pathText(path)}: ${message}`;
}

/** What only a provider of the same format can serve. */
function onlyOf(over: Json): string {
  const { nativeOnly } = read(over).native!;
  return nativeOnly ? `${pathText(nativeOnly.path)}: ${nativeOnly.message}` : "nothing";
}

const tool = (name: string) => ({ name, input_schema: { type: "object" } });
const text = (words: string) => ({ type: "text", text: words });
const document = (data: string) => ({ type: "document", source: { type: "text", data } });
const use = (id: string, input: Json = {}) => ({ type: "tool_use", id, name: "f", input });
const resultOf = (tool_use_id: string, content: unknown, more: Json = {}) => ({
  type: "tool_result",
  tool_use_id,
  content,
  ...more,
});
/** A conversation in which a call has a result. */
const called = (thoughts: Json[], content: unknown = "x") => [
  ...HI,
  assistant(...thoughts, use("t")),
  user(resultOf("t", content)),
];

describe("the parameters of a request", () => {
  it("are those of chat completions under Anthropic's names", () => {
    const own = { temperature: 0.5, top_p: 0.9, stop_sequences: ["END"] };
    const chat = read({ stream: true, ...own, metadata: { user_id: "u1" } });
    const { model, stream, maxTokens, temperature, top_p, stop, user, wantsThinking } = chat;
    assert.deepEqual(
      [model, stream, maxTokens, temperature, top_p, stop, user, wantsThinking],
      ["m", true, 100, 0.5, 0.9, ["END"], "u1", false],
    );
    assert.equal(chat.native!.nativeOnly, undefined);
  });

  it("count as absent if they are -1, which a provider of the same format still gets", () => {
    const { top_p, native } = read({ top_p: -1, top_k: -1 });
    assert.deepEqual([top_p, native!.nativeOnly], [undefined, undefined]);
    assert.deepEqual([native!.body["top_p"], native!.body["top_k"]], [-1, -1]);
  });

  it("set whether the model thinks, how much, and whether the client sees it", () => {
    const ways: [Json, [boolean, boolean, string | undefined]][] = [
      [{}, [false, false, undefined]],
      [{ thinking: { type: "disabled" } }, [false, false, undefined]],
      [{ thinking: { type: "between_tools" } }, [false, false, undefined]],
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

  it("have the client's tools, which the model may call by default", () => {
    const parameters = { type: "object", properties: {} }; // OpenAI requires `properties`
    const tools = [{ type: "custom", ...tool("f"), description: "d" }];
    const f = { type: "tool", name: "f", disable_parallel_tool_use: true };
    const choices: [Json | undefined, unknown, boolean | undefined][] = [
      [undefined, "auto", undefined],
      [{ type: "any" }, "required", undefined],
      [{ type: "none" }, "none", undefined],
      [f, { type: "function", function: { name: "f" } }, false],
    ];
    for (const [tool_choice, choice, parallel] of choices) {
      const chat = read({ tools, tool_choice });
      assert.deepEqual(chat.tool_choice, choice);
      assert.equal(chat.parallel_tool_calls, parallel);
      const declared = { name: "f", description: "d", parameters, strict: undefined };
      assert.deepEqual(chat.tools![0]!.function, declared);
    }
  });

  it("have the reply's schema under either name", () => {
    const [type, schema] = ["json_schema", { type: "object" }];
    const json_schema = { name: "reply", description: undefined, schema, strict: true };
    const format = { type, schema };
    for (const over of [{ output_config: { format } }, { output_format: format }])
      assert.deepEqual(read(over).response_format, { type, json_schema });
  });

  it("have strict schemas only if all properties are required, as OpenAI demands", () => {
    const city = { type: "object", properties: { city: {} }, required: ["city"] };
    for (const [schema, strict] of [
      [city, true],
      [{ properties: { properties: city }, required: ["properties"] }, true],
      [{ ...city, required: [] }, undefined],
      [{ properties: { a: { ...city, required: [] } }, required: ["a"] }, undefined],
      [{ anyOf: [{ type: "array", items: { ...city, required: undefined } }] }, undefined],
    ] as const) {
      const tools = [{ name: "f", input_schema: schema, strict: true }];
      const chat = read({ tools, output_format: { type: "json_schema", schema } });
      assert.equal(chat.tools![0]!.function.strict, strict);
      const { response_format: format } = chat;
      assert.equal(format?.type === "json_schema" && format.json_schema.strict, strict);
    }
  });
});

describe("messages", () => {
  it("begin with the system's text, its blocks as paragraphs, without Claude Code's own line", () => {
    const line = "x-anthropic-billing-header: cc_version=2;";
    const systems: [unknown, string | undefined][] = [
      ["One.", "One."],
      [[text(line), text("You help."), text("You are brief.")], "You help.\n\nYou are brief."],
      [`${line}\n\nYou help.`, "You help."],
      [[text(`${line}\nYou help.`)], "You help."],
      [line, undefined],
    ];
    for (const [system, content] of systems) {
      const first = content === undefined ? [] : [{ role: "system", content }];
      assert.deepEqual(messagesOf({ system }), [...first, ...HI]);
    }
  });

  it("have texts and documents as paragraphs", () => {
    const list = { type: "content", content: [text("a"), text("b")] };
    const contents: [Json[], string][] = [
      [[text("one"), text("two")], "one\n\ntwo"],
      [[document("The end."), text("What does it say?")], "The end.\n\nWhat does it say?"],
      [
        [{ ...document(""), title: "Notes", source: list }, text("Well?")],
        "Notes\n\na\n\nb\n\nWell?",
      ],
    ];
    for (const [blocks, expected] of contents)
      assert.equal(userBlocks(...blocks)[0]!.content, expected);
    // Several texts of an assistant are pieces of one text.
    for (const [pieces, expected] of [
      [[text("one"), text(" and two")], "one and two"],
      [[{ type: "redacted_thinking", data: "x" }], ""],
    ] as const)
      assert.equal(messagesOf({ messages: [assistant(...pieces)] })[0]!.content, expected);
  });

  it("have images and documents as parts", () => {
    const base64 = { type: "base64", media_type: "image/png", data: "QQ==" };
    const pdf = { type: "base64", media_type: "application/pdf", data: "Qg==" };
    const [{ content } = { content: "" }] = userBlocks(
      text("See:"),
      { type: "image", source: base64 },
      { type: "image", source: { type: "url", url: "https://x.example/i.png" } },
      { type: "document", source: pdf, title: "r.pdf", context: "A report." },
      { ...document("Plain."), title: "Notes" },
      { type: "document", source: { type: "content", content: "In one." } },
    );
    const file_data = "data:application/pdf;base64,Qg==";
    assert.deepEqual(content, [
      text("See:"),
      { type: "image_url", image_url: { url: "data:image/png;base64,QQ==", detail: undefined } },
      { type: "image_url", image_url: { url: "https://x.example/i.png", detail: undefined } },
      text("A report."),
      { type: "file", file: { filename: "r.pdf", file_data } },
      text("Notes\n\nPlain."),
      text("\n\nIn one."),
    ]);
  });

  it("have calls, thinking and results as in chat completions", () => {
    const image = { type: "image", source: { type: "url", url: "https://x.example/" } };
    const redacted = { type: "redacted_thinking", data: "x" };
    const results = [
      resultOf("a", [text("one"), { type: "tool_reference", tool_name: "f" }]),
      resultOf("b", [text("two"), text("three"), image], { is_error: true }),
    ];
    const messages = [
      ...HI,
      assistant(signed, redacted, text("Let me see."), use("a", { x: 1 }), use("b")),
      user(...results, text("Go on.")),
    ];
    const called = (id: string, args: string) => ({
      id,
      type: "function",
      function: { name: "f", arguments: args },
    });
    const shown = "Error: two\nthree\n(What the tool shows follows in the next message.)";
    const shows = [
      text("What the tool call b shows:"),
      { type: "image_url", image_url: { url: "https://x.example/", detail: undefined } },
      text("Go on."),
    ];
    assert.deepEqual(messagesOf({ messages }).slice(1), [
      {
        role: "assistant",
        content: "Let me see.",
        reasoning_content: "Hm.",
        tool_calls: [called("a", '{"x":1}'), called("b", "{}")],
      },
      { role: "tool", tool_call_id: "a", content: "one\nThe tool f can be called now." },
      { role: "tool", tool_call_id: "b", content: shown },
      { role: "user", content: shows },
    ]);
  });

  it("declare a deferred tool once the client's search has found it, or a tool_choice names it", () => {
    const late = { ...tool("late"), defer_loading: true };
    const tools = [tool("search"), late, { ...late, name: "x".repeat(65) }];
    const over = { tools, messages: called([], [{ type: "tool_reference", tool_name: "late" }]) };
    assert.equal(onlyOf(over), "nothing");
    const choosing = { tools, tool_choice: { type: "tool", name: "late" } };
    const declared = [over, choosing, { tools }].map((more) => read(more).tools!.length);
    assert.deepEqual(declared, [2, 2, 1]);
  });

  it("have the thoughts that the gateway sealed in a signature, if it can open them", () => {
    const thoughts = [sealed("ok One."), sealed("Elsewhere."), { ...signed, thinking: "" }];
    const [, calling] = messagesOf({ messages: called([...thoughts, own]) });
    assert.equal(calling?.role === "assistant" && calling.reasoning_content, "One.\nHm.");
    const [three, six] = [thoughts, [...thoughts, ...thoughts]].map(
      (blocks) => [...stepsFor({ messages: called(blocks) })].length,
    );
    assert.equal(six! - three!, 3, "one step each");
  });

  it("have results directly after their calls, whatever stands between them", () => {
    const contents = (...messages: Json[]) =>
      messagesOf({ messages: [...HI, ...messages] }).map(({ content }) => content);
    const [calling, waiting] = [assistant(use("a")), assistant(text("I wait."))];
    const oneByOne = [user(resultOf("a", "one"), text("Wait.")), user(resultOf("b", "two"))];
    const calls = assistant(use("a"), use("b"));
    assert.deepEqual(contents(calls, ...oneByOne), ["Hi", null, "one", "two", "Wait."]);
    // Assistant text after the calls is moved before them.
    const results = user(resultOf("a", "one"), resultOf("a", "two"));
    const ended = ["I wait.", null, "one", "two"];
    assert.deepEqual(contents(calling, waiting, results), ["Hi", ...ended]);
    assert.deepEqual(contents(calling, user(text("So?")), waiting, results), [
      "Hi",
      "So?",
      ...ended,
    ]);
  });
});

describe("what only a provider of the same format can serve", () => {
  const tools = (...list: Json[]) => ({ tools: [tool("f"), ...list] });
  const block = (...content: Json[]) => ({ messages: [user(...content)] });
  const answers = [user(resultOf("t", "x"))];
  const hurry = { role: "system", content: "Hurry." };
  const link = { type: "url", url: "https://a.test/b.pdf" };
  const bash = { type: "bash_2025", name: "b" };
  const cases: [string, Json, type?: string][] = [
    ["top_k", { top_k: 5 }],
    ["max_tokens", { max_tokens: 0 }],
    ["thinking.type", { thinking: { type: "type_of_tomorrow" } }],
    ["tool_choice.type", { ...tools(), tool_choice: { type: "several" } }],
    ["compaction", { compaction: { type: "summarize" } }],
    ["thread", { thread: { type: "create" } }],
    // The results may belong to calls that the provider stores.
    ["thread", { thread: { type: "continue", previous_message_id: "x" }, messages: answers }],
    ["messages[1].clear_at", { messages: [...HI, { ...hurry, clear_at: "next_user_message" }] }],
    ["output_format", { output_format: { type: "grammar" } }],
    ["output_config.format", { output_config: { format: { type: "grammar" } } }],
    ["container", { container: "c" }],
    ["inference_geo", { inference_geo: "us" }],
    ["mcp_servers", { mcp_servers: [{ type: "url" }] }],
    ["stop_sequences", { stop_sequences: ["a", "b", "c", "d", "e"] }],
    ["context_management.edits[0]", { context_management: { edits: [{ type: "compact_2026" }] } }],
    ["tools[1].type", tools({ type: "search_2025", name: "search" }), "search_2025"],
    ["tools[1].type", { ...tools(bash), tool_choice: { type: "tool", name: "b" } }, "bash_2025"],
    ["tools[1].name", tools(tool("x".repeat(65)))],
    ["tools", tools(...Array.from({ length: 128 }, (_, n) => tool(`f${n}`)))],
    ["messages[0].content[1]", block(text("x"), { type: "search_result" }), "search_result"],
    ["messages[0].content[0].source", block({ type: "image", source: { type: "file" } }), "file"],
    ["messages[0].content[0].source", block({ type: "document", source: link }), "url"],
    ["messages[0].content[0].citations", block({ ...document("x"), citations: { enabled: true } })],
    ["messages[1].content[0]", { messages: [...HI, assistant({ type: "new_use" })] }, "new_use"],
  ];
  it("is listed with its path", () => {
    const needs = "needs a model of a provider that speaks the Messages API";
    for (const [place, over, type] of cases) {
      assert.equal(onlyOf(over), `${place}: ${type ? `"${type}" ` : ""}${needs}`);
      assert.deepEqual(read(over).native!.body["messages"], over["messages"] ?? HI);
    }
    assert.equal(read({ max_tokens: 0 }).maxTokens, 0);
  });

  it("counts a document that is only an address as a file of ten pages", () => {
    const content = [{ type: "document", source: link }];
    for (const messages of [[user(...content)], called([], content)])
      assert.equal(mediaTokens(read({ messages }), "anthropic"), 31_000);
  });

  it("excludes what does not change the meaning", () => {
    const over = {
      service_tier: "auto",
      inference_geo: "global",
      metadata: { user_id: "u" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      system: [{ ...text("x"), cache_control: { type: "ephemeral" } }],
      thread: null,
      compaction: null,
      messages: [
        ...HI,
        { role: "system", output_config: { effort: "low" } },
        { ...hurry, clear_at: "never" },
      ],
    };
    assert.equal(onlyOf(over), "nothing");
    const roles = messagesOf(over).map(({ role }) => role);
    assert.deepEqual(roles, ["system", "user", "system"]);
  });

  it("counts its size in bytes, without the data of media", () => {
    const words = "x".repeat(1_000);
    const found = { type: "search_result", content: [text(words)] };
    const future = { type: "x_20300101", description: words };
    const bytesOf = (over: Json) => read(over).native!.untranslatedBytes!;
    assert.equal(bytesOf(block(found)), JSON.stringify(found).length);
    assert.equal(bytesOf({ messages: called([], [found]) }), JSON.stringify(found).length);
    assert.equal(bytesOf(tools(future)), JSON.stringify(future).length);
    assert.ok(bytesOf(block({ type: "video", source: { data: words } })) < 100);
    assert.equal(bytesOf({ top_k: 1 }), 0);
  });
});

describe("a request that is wrong in every format", () => {
  const untouched = new Proxy({}, { get: () => assert.fail("a tool was read") });
  const without = 'may only be set, other than to "none", together with tools';
  const cases: [string, Json][] = [
    ["max_tokens: is required", { max_tokens: undefined }],
    ["messages: expected at least 1 element, got 0", { messages: [] }],
    ["messages: is required", { messages: undefined }],
    ["temperature: expected a number from 0 to 1, got 1.5", { temperature: 1.5 }],
    ["temperature: expected a number from 0 to 1, got -1", { temperature: -1 }],
    ["top_p: expected a number from 0 to 1, got -0.5", { top_p: -0.5 }],
    ["top_k: expected an integer of at least 0, got -2", { top_k: -2 }],
    ["top_k: expected an integer, got -1.5", { top_k: -1.5 }],
    [
      "thinking.budget_tokens: expected an integer of at least 1024, got 5",
      { thinking: { type: "enabled", budget_tokens: 5 } },
    ],
    [
      'messages[0].role: expected one of "user", "assistant", "system", got "tool"',
      { messages: [{ role: "tool", content: "x" }] },
    ],
    ["messages[0].content[0].text: is required", { messages: [user({ type: "text" })] }],
    [
      "messages[1].content[1].tool_use_id: answers no tool call of an assistant message before it",
      { messages: [...HI, user(text("x"), resultOf("no", "x"))] },
    ],
    [
      "tool_choice: names a function that is not among the tools",
      { tools: [tool("f")], tool_choice: { type: "tool", name: "g" } },
    ],
    [`tool_choice: ${without}`, { tool_choice: { type: "any" } }],
    [`tool_choice: ${without}`, { tools: [], tool_choice: { type: "tool", name: "f" } }],
    ["messages[1].content: is required", { messages: [...HI, { role: "system" }] }],
    ["tools: expected at most 10000 elements, got 10001", { tools: Array(10_001).fill(untouched) }],
  ];
  it("is rejected, with the reason", () => {
    for (const [expected, over] of cases) assert.equal(issueOf(over), expected);
  });

  it("is rejected with the client's path of the invalid value", () => {
    const search = { type: "web_search_20250305", name: "web_search" };
    const faulty = { name: "f", input_schema: { x: "y".repeat(256 * 1024) } };
    assert.match(issueOf({ tools: [search, tool("g"), faulty] }), /^tools\[2\]\.input_schema: /);
  });

  it("is rejected if it is nested too deeply to be serialized again", () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
    assert.match(issueOf({ future_field: deep(200) }), /levels of nesting/);
  });
});

it("a provider of the same format gets no blocks of other models that it would reject", () => {
  const { body } = read({ messages: called([own, sealed("ok A."), signed]) }).native!;
  assert.deepEqual(body["messages"], called([signed]));
  const alone = (...content: Json[]) => [...HI, assistant(...content), ...HI];
  const passed = (messages: unknown[]) => read({ messages }).native!.body["messages"];
  assert.deepEqual(passed(alone(own)), alone(text("(no answer)")));
  // An empty reply, which only the last message may be.
  assert.deepEqual(passed(alone()), alone(text("(no answer)")));
  assert.deepEqual(passed(alone().slice(0, -1)), alone().slice(0, -1));
  assert.deepEqual(passed(alone(own, text("\n\n"), text("x"))), alone(text("x")));
  assert.deepEqual(passed(alone(text(" "))), alone(text("(no answer)")));
  const said = (content: string) => [...HI, { role: "assistant", content }, ...HI];
  for (const blank of ["", " \n"])
    assert.deepEqual(passed(said(blank)), alone(text("(no answer)")));
  for (const kept of [said("x"), said("").slice(0, -1)]) assert.deepEqual(passed(kept), kept);
  const others = [user(text(" ")), ...alone(text(" ")).slice(0, -1)];
  assert.deepEqual(passed(others), others);
});

it("a provider of the same format is asked for thinking in a loop of calls only if it began it with thinking", () => {
  const thinking = { type: "enabled", budget_tokens: 1_024 };
  const of = (messages: unknown[], over: Json = { thinking }) =>
    read({ messages, ...over }).native!.body["thinking"];
  const call = (id: string, ...thoughts: Json[]) => [
    assistant(...thoughts, use(id)),
    user(resultOf(id, "x")),
  ];
  const instruction = { role: "system", content: "Hurry." };
  const answered = { role: "assistant", content: "Done." };
  // For the provider, messages after the results belong to the same user turn.
  for (const messages of [
    call("a", own),
    call("a"),
    [...call("a"), ...HI],
    [...call("a", own), ...HI],
    [...call("a", own), instruction],
    [...call("a", own), ...call("b")],
    [...call("a", own), ...call("b", signed)],
    [...call("a"), ...call("b")],
  ])
    assert.deepEqual(of([...HI, ...messages]), { type: "disabled" }, JSON.stringify(messages));
  for (const messages of [
    call("a", signed),
    call("a", { type: "redacted_thinking", data: "x" }),
    [...call("a", signed), instruction, ...HI],
    [...call("a", own), answered, ...HI],
    [...call("a", own), answered, ...HI, ...call("b", signed)],
    [...call("a", signed), ...call("b")],
    [...call("a", signed), ...call("b", own)],
    [...call("a"), ...call("b", signed)],
  ])
    assert.deepEqual(of([...HI, ...messages]), thinking, JSON.stringify(messages));
  assert.deepEqual(of(called([own]), { thinking: { type: "adaptive" } }), { type: "adaptive" });
});
