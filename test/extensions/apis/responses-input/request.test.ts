// Translates Responses API requests to chat completions: items, tools and fields, and the paths in
// errors.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pathText, ValidationError } from "../../../../src/core/schema/checker.ts";
import { pseudonymOf } from "../../../../src/core/providers/parameters.ts";
import { runSync } from "../../../../src/core/turns.ts";
import { readRequest } from "../../../../src/extensions/apis/responses-input/index.ts";
import { thrownBy } from "../../../support/wait.ts";

const open = (sealed: string) => (sealed.startsWith("ok:") ? sealed.slice(3) : undefined);
const read = (more: object, input: unknown = "hi") =>
  runSync(readRequest({ json: { model: "m", input, ...more }, large: false }, open));
const messages = (input: unknown, more: object = {}) => read(more, input).chat.messages;

/** The code and the path of the first issue. */
function refused(more: object, input: unknown = "hi"): [string, string] {
  const [issue] = thrownBy(ValidationError, () => read(more, input)).issues;
  return [issue!.code, pathText(issue!.path)];
}

const call = (id: string, name = "get_time") => ({
  type: "function_call",
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: '{"city":"Oslo"}',
  status: "completed",
});
const result = (id: string, output: unknown = "14:05") => ({
  type: "function_call_output",
  call_id: id,
  output,
});
/** Asserts that these requests are rejected, each with its code and path. */
function assertRefused(...cases: [more: object, code: string, place: string, input?: unknown][]) {
  for (const [more, code, place, input] of cases)
    assert.deepEqual(refused(more, input), [code, place]);
}
const MISSING = "missing_required_parameter";
const INVALID = "invalid_value";
const UNSUPPORTED = "unsupported_value";
const asked = { role: "user", content: "What time is it?" };
const get_time = { type: "function", name: "get_time", parameters: { type: "object" } };
const tool = (name: string) => ({ ...get_time, name });
const namespace = (name: string, ...tools: object[]) => ({ type: "namespace", name, tools });
const search = { type: "tool_search", execution: "client", parameters: { type: "object" } };
const inputText = (text: string) => ({ type: "input_text", text });
const PIXEL = "data:image/png;base64,iVBORw0KGgo=";
/** The names of the functions that a model gets. */
const namesOf = ({ chat }: ReturnType<typeof read>) =>
  chat.tools?.map(({ function: { name } }) => name);

describe("a request of the Responses API", () => {
  it("has a text as input, and instructions as the first system text", () => {
    const { chat } = read({ instructions: "Be brief.", max_output_tokens: 9, user: "u" });
    const system = { role: "system", content: "Be brief." };
    assert.deepEqual(chat.messages, [system, { role: "user", content: "hi" }]);
    assert.deepEqual([chat.maxTokens, chat.user, chat.stream], [9, "u", false]);
  });

  it("keeps the fields of some providers, and the end user as a hash", () => {
    const hints = {
      prompt_cache_key: "k",
      prompt_cache_retention: "24h",
      safety_identifier: "me",
      service_tier: "flex",
    };
    const { extras, user } = read({ ...hints, text: { verbosity: "low" } }).chat;
    assert.equal(user, "me");
    const safety_identifier = pseudonymOf("me");
    assert.deepEqual(extras, { ...hints, safety_identifier, verbosity: "low" });
    assert.equal(read({ ...hints, user: "u" }).chat.user, "u");
    const wrong = {
      prompt_cache_retention: "1h",
      safety_identifier: 7,
      service_tier: "",
      text: { verbosity: "loud" },
    };
    const ignored = read({ ...wrong, prompt_cache_key: "x".repeat(65) }).chat.extras ?? {};
    assert.deepEqual(new Set(Object.values(ignored)), new Set([undefined]));
  });

  it("joins an assistant's items between two inputs into one message", () => {
    const said = [{ type: "output_text", text: "I look.", annotations: [] }];
    const made = messages([
      { type: "message", role: "developer", content: [inputText("Be kind.")] },
      asked,
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "ok:Two cities." },
      { type: "message", id: "msg_1", role: "assistant", phase: "commentary", content: said },
      call("a"),
      call("b"),
      result("a"),
      result("b", [inputText("08:"), inputText("05")]),
      { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
    ]);
    const called = { name: "get_time", arguments: '{"city":"Oslo"}' };
    const tool_calls = ["a", "b"].map((id) => ({ id, type: "function", function: called }));
    const reasoning_content = "Two cities.";
    assert.deepEqual(made, [
      { role: "system", content: "Be kind." },
      { role: "user", content: "What time is it?" },
      { role: "assistant", content: "I look.", reasoning_content, tool_calls },
      { role: "tool", tool_call_id: "a", content: "14:05" },
      { role: "tool", tool_call_id: "b", content: "08:05" },
      { role: "assistant", content: "No.", reasoning_content: undefined, tool_calls: [] },
    ]);
  });

  it("takes reasoning in any of its forms: sealed here, plain, or as a summary", () => {
    const summary = [{ type: "summary_text", text: "S" }];
    const content = [{ type: "reasoning_text", text: "R" }];
    const elsewhere = { encrypted_content: "gAAAA" };
    const here = { encrypted_content: "ok:E" };
    const cases: [items: object[], thought: string | undefined, unread: number][] = [
      [[{ summary, content, ...here }], "E", 0],
      [[{ summary, content, encrypted_content: null }], "R", 0],
      [[{ summary, content: null }], "S", 0],
      [[{ summary: [...summary, ...summary] }], "SS", 0],
      [[{ summary: [] }], undefined, 0],
      [[{ summary: null }], undefined, 0],
      [[elsewhere], undefined, 1],
      [[elsewhere, here, elsewhere], "E", 2],
      [[{ ...elsewhere, summary }], "S", 1],
      [[{ ...elsewhere, summary, content }], "R", 1],
    ];
    const said = { role: "assistant", content: "A" };
    for (const [items, thought, unread] of cases) {
      const thoughts = items.map((item) => ({ type: "reasoning", ...item }));
      const { chat, facts } = read({}, [asked, ...thoughts, said]);
      const message = chat.messages.at(-1)!;
      assert.ok(message.role === "assistant");
      assert.deepEqual([message.reasoning_content, facts.unreadReasoning], [thought, unread]);
    }
    assert.equal(messages([asked, { type: "reasoning", summary: [] }]).length, 1, "interrupted");
    const number = { type: "reasoning", summary: [1] };
    assertRefused([{}, "invalid_type", "input[1].summary[0]", [asked, number]]);
  });

  it("may have 10,000 sealed texts, and opens no more", (t) => {
    const openNone = t.mock.fn(() => undefined);
    const of = (count: number) => {
      const items = Array(count).fill({ type: "reasoning", encrypted_content: "x" });
      const json = { model: "m", input: [asked, ...items] };
      return runSync(readRequest({ json, large: false }, openNone));
    };
    assert.equal(of(10_000).facts.unreadReasoning, 10_000);
    assert.throws(() => of(10_001), /input\[10001\]\.encrypted_content: is one more than/);
    assert.equal(openNone.mock.callCount(), 10_000 + 10_000);
  });

  it("sends images in tool results after the results, under the calls' names", () => {
    const image = { type: "input_image", image_url: PIXEL, detail: "high" };
    const made = messages([
      asked,
      call("a"),
      call("b"),
      call("c"),
      result("a", [inputText("see"), image]),
      result("b"),
      result("c", [image]),
      { role: "user", content: [image, inputText("more")] },
    ]);
    const part = { type: "image_url", image_url: { url: PIXEL, detail: "high" } };
    const follows = "(What the tool shows follows in the next message.)";
    const heading = (id: string) => ({ type: "text", text: `What the tool call ${id} shows:` });
    assert.deepEqual(made.slice(2), [
      { role: "tool", tool_call_id: "a", content: `see\n${follows}` },
      { role: "tool", tool_call_id: "b", content: "14:05" },
      { role: "tool", tool_call_id: "c", content: follows },
      { role: "user", content: [heading("a"), part] },
      { role: "user", content: [heading("c"), part] },
      { role: "user", content: [part, { type: "text", text: "more" }] },
    ]);
  });

  it("puts each result after its call; input between them moves after it, assistant text before it", () => {
    const order = (...items: object[]) =>
      messages([asked, ...items])
        .slice(1)
        .map((message) => {
          if (message.role === "tool") return `= ${message.tool_call_id}`;
          if (message.role !== "assistant") return `${message.role}: ${message.content}`;
          return ["call", ...message.tool_calls.map(({ id }) => id)].join(" ");
        });
    const hurry = { role: "user", content: "hurry" };
    const note = { role: "developer", content: "note" };
    const said = { role: "assistant", content: "Well." };
    const thought = { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
    const [c, d, e] = [call("c"), call("d"), call("e")];
    const orders: [object[], string][] = [
      [[c, hurry, result("c")], "call c, = c, user: hurry"],
      [[c, note, result("c")], "call c, = c, system: note"],
      [[c, d, result("c"), hurry, result("d")], "call c d, = c, = d, user: hurry"],
      [[c, d, result("d"), e, result("c"), result("e")], "call c d, = d, = c, call e, = e"],
      [[c, d, result("c"), said, result("d")], "call, call c d, = c, = d"],
      [[c, hurry, said, result("c")], "user: hurry, call, call c, = c"],
      [[c, hurry, thought, result("c")], "call c, = c, user: hurry"],
      [[c, d, result("c"), said, hurry, result("d")], "call c d, = c, = d, call, user: hurry"],
      [[c, result("c"), hurry, c, result("c")], "call c, = c, user: hurry, call c, = c"],
    ];
    for (const [items, expected] of orders) assert.equal(order(...items).join(", "), expected);
    assertRefused([{}, INVALID, "input[1].call_id", [asked, result("c"), c]]);
  });

  it("takes linear work for the images that one call returned", (t) => {
    const iterator = Object.getPrototypeOf([][Symbol.iterator]());
    const output = [{ type: "input_image", image_url: "data:," }];
    const steps = (count: number): number => {
      const input = [asked, call("c"), ...Array.from({ length: count }, () => result("c", output))];
      const { mock } = t.mock.method(iterator, "next");
      messages(input);
      mock.restore();
      return mock.callCount();
    };
    const [few, many] = [steps(100), steps(1_000)];
    assert.ok(many < few * 20, `${few} steps for 100 images, ${many} for 1,000`);
  });

  it("declares free-form tools, namespaces and the client's search as functions", () => {
    const grammar = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
    const given = read({
      tools: [
        get_time,
        { type: "custom", name: "patch", description: "Edits.", format: grammar },
        namespace("fs", get_time),
        search,
        { type: "tool_search", execution: "server" },
        { type: "web_search", external_web_access: true },
      ],
    });
    assert.deepEqual(namesOf(given), ["get_time", "patch", "fs__get_time", "tool_search"]);
    const { chat, facts } = given;
    const patch = chat.tools![1]!.function;
    assert.match(patch.description!, /^Edits\.\n\n.*lark grammar:\nstart: \/\.\+\/$/s);
    assert.deepEqual(patch.parameters!["required"], ["input"]);
    assert.equal(chat.tool_choice, "auto");
    assert.deepEqual(facts.leftOut, ["tool_search", "web_search"]);
    const origin = { type: "function", name: "get_time", namespace: "fs" };
    assert.deepEqual(facts.tools.get("fs__get_time"), origin);
  });

  it("gives a schema the type and properties that OpenAI requires", () => {
    const whole = { type: "object", properties: {} };
    for (const [parameters, expected] of [
      [{}, whole],
      [
        { type: "object", $schema: "x" },
        { ...whole, $schema: "x" },
      ],
      [{ properties: { a: {} } }, { type: "object", properties: { a: {} } }],
      [{ $ref: "#/$defs/A" }, { $ref: "#/$defs/A" }],
      [undefined, undefined],
    ]) {
      const { chat } = read({ tools: [{ type: "function", name: "f", parameters }] });
      assert.deepEqual(chat.tools![0]!.function.parameters, expected);
    }
  });

  it("finds tools among the items, and their calls by the names of their functions", () => {
    const exec = { type: "custom", name: "exec", format: { type: "text" } };
    const searched = { type: "tool_search_call", call_id: "s", execution: "client" };
    const execCall = { type: "custom_tool_call", call_id: "a", name: "exec", input: 'a "b"' };
    const given = read({}, [
      { type: "additional_tools", role: "developer", tools: [namespace("functions", exec)] },
      asked,
      { ...execCall, namespace: "functions" },
      { type: "custom_tool_call_output", call_id: "a", output: "done" },
      { ...searched, arguments: { q: 1 } },
      { type: "tool_search_output", call_id: "s", execution: "client", tools: [get_time] },
    ]);
    assert.deepEqual(namesOf(given), ["functions__exec", "get_time"]);
    const [, first, , second, found] = given.chat.messages;
    assert.ok(first?.role === "assistant" && second?.role === "assistant");
    const executed = { name: "functions__exec", arguments: '{"input":"a \\"b\\""}' };
    assert.deepEqual(first.tool_calls[0]!.function, executed);
    assert.deepEqual(second.tool_calls[0]!.function, { name: "tool_search", arguments: '{"q":1}' });
    assert.equal(found!.content, "These tools can be called now: get_time");
    const [, withText] = read({}, [asked, { ...searched, arguments: '{"q":1}' }]).chat.messages;
    assert.deepEqual(withText, second, "a text stays as it is");
  });

  it("takes a message between a client's own agents as a user message", () => {
    const sealed = { type: "encrypted_content", encrypted_content: "say hi" };
    const content = [inputText("Payload: "), sealed];
    const made = messages([asked, { type: "agent_message", author: "/root", content }]);
    assert.deepEqual(made.at(-1), { role: "user", content: "Payload: say hi" });
  });

  it("uses the later of two tools with one name, at the position of the first", () => {
    const later = { ...get_time, description: "Later." };
    const given = read({ tools: [get_time, tool("other"), later] });
    assert.deepEqual(namesOf(given), ["get_time", "other"]);
    assert.equal(given.chat.tools![0]!.function.description, "Later.");
  });

  it("shortens names of up to 256 characters without collisions", () => {
    const long = (length: number, end = "") => "n".repeat(length) + end;
    for (const [declared, count] of [
      [namespace("mcp__a_long_server", tool(long(50, "1")), tool(long(50, "2"))), 2],
      [namespace(long(256), get_time, tool(long(256))), 2],
      [tool(long(256)), 1],
    ] as const) {
      const names = namesOf(read({ tools: [declared] }))!;
      assert.ok(names.every((name) => name.length === 64));
      assert.deepEqual([names.length, new Set(names).size], [count, count]);
    }
    const tools = [get_time];
    const tool_choice = { type: "function", name: "f", namespace: long(257) };
    const called = { ...call("a"), namespace: long(257) };
    assertRefused(
      [{ tools: [get_time, namespace(long(257), get_time)] }, INVALID, "tools[1].name"],
      [{ tools: [namespace("n", tool(long(257)))] }, INVALID, "tools[0].tools[0].name"],
      [{ tools: [tool(long(257))] }, INVALID, "tools[0].name"],
      [{ tools, tool_choice }, INVALID, "tool_choice.namespace"],
      [{}, INVALID, "input[1].namespace", [asked, called]],
    );
  });

  it("may have 128 tools, across all lists and namespaces", () => {
    const tools = (count: number, prefix: string) =>
      Array.from({ length: count }, (_, index) => tool(`${prefix}${index}`));
    const searched = { type: "tool_search_call", call_id: "s", arguments: {} };
    const input = (last: number) => [
      asked,
      { type: "additional_tools", tools: tools(40, "b") },
      searched,
      { type: "tool_search_output", call_id: "s", tools: tools(last, "c") },
    ];
    const list = [namespace("ns", ...tools(40, "a")), ...tools(8, "d")];
    assert.equal(read({ tools: list }, input(40)).chat.tools!.length, 128);
    assertRefused([{ tools: list }, INVALID, "input[3].tools[40]", input(41)]);
    // A tool that is found again counts once.
    const again = [...input(40), ...input(40).slice(1)];
    assert.equal(read({ tools: list }, again).chat.tools!.length, 128);
  });

  it("counts the tools of a list before it reads any of them", () => {
    const look = () => assert.fail("a tool was looked at");
    const untouched = new Proxy({}, { get: look, has: look, getOwnPropertyDescriptor: look });
    const tools = Array(129).fill(untouched);
    const found = { type: "tool_search_output", call_id: "a" };
    const tool_choice = { type: "allowed_tools", mode: "auto", tools };
    assertRefused(
      [{ tools }, INVALID, "tools"],
      [{ tools: [namespace("ns", ...tools)] }, INVALID, "tools[0].tools"],
      [{}, INVALID, "input[1].tools", [asked, { type: "additional_tools", tools }]],
      [{}, INVALID, "input[1].tools", [asked, { ...found, tools }]],
      [{ tools: [get_time], tool_choice }, INVALID, "tool_choice.tools"],
    );
  });

  it("follows tool_choice as far as its tools exist here", () => {
    const hosted = { type: "web_search" };
    const tools = [get_time, tool("other"), hosted];
    const choice = (tool_choice: unknown) => read({ tools, tool_choice });
    assert.equal(choice("required").chat.tool_choice, "required");
    const other = { type: "function", name: "other" };
    const function_ = (name: string) => ({ type: "function", function: { name } });
    assert.deepEqual(choice(other).chat.tool_choice, function_("other"));
    const allowed = { type: "allowed_tools", mode: "required" };
    const narrowed = choice({ ...allowed, tools: [other] });
    assert.deepEqual([narrowed.chat.tool_choice, namesOf(narrowed)], ["required", ["other"]]);
    const atService = { ...search, execution: "server" };
    assertRefused(
      [{ tools: [hosted], tool_choice: "required" }, UNSUPPORTED, "tool_choice"],
      [{ tools: [], tool_choice: "required" }, UNSUPPORTED, "tool_choice"],
      [{ tools, tool_choice: { type: "function", name: "x" } }, INVALID, "tool_choice"],
      [{ tools: [atService], tool_choice: search }, UNSUPPORTED, "tool_choice"],
    );
    assert.equal(read({ tools: [hosted] }).chat.tools, undefined);
    const searched = read({ tools: [search], tool_choice: { type: "tool_search" } }).chat;
    assert.deepEqual(searched.tool_choice, function_("tool_search"));
  });

  it("accepts a choice of declared tools of the same type only, and requires its mode", () => {
    const named = { type: "mcp", server_label: "s", name: "f" };
    const tools = [{ type: "mcp", server_label: "s", server_url: "http://x" }, tool("f")];
    const [f, custom] = ["function", "custom"].map((type) => ({ type, name: "f" }));
    const type = "allowed_tools";
    const allowed = (list: unknown, mode?: string) => ({ type, mode, tools: list });
    assert.deepEqual(namesOf(read({ tools, tool_choice: allowed([f], "auto") })), ["f"]);
    assert.equal(namesOf(read({ tools, tool_choice: allowed([named], "auto") })), undefined);
    const cases: [tool_choice: object, code: string, place: string][] = [
      [named, UNSUPPORTED, ""],
      [custom!, INVALID, ""],
      [allowed([named], "required"), UNSUPPORTED, ""],
      [allowed([custom], "auto"), INVALID, ".tools[0]"],
      [allowed(undefined, "auto"), MISSING, ".tools"],
      [allowed([], "auto"), INVALID, ".tools"],
      [allowed([{ name: "f" }], "auto"), MISSING, ".tools[0].type"],
      [allowed([f, { type: "function", name: "zz" }], "auto"), INVALID, ".tools[1]"],
      [allowed([{ type: "web_search" }], "auto"), INVALID, ".tools[0]"],
      [allowed([f]), MISSING, ".mode"],
    ];
    for (const [tool_choice, code, place] of cases)
      assertRefused([{ tools, tool_choice }, code, `tool_choice${place}`]);
  });

  it("is rejected if two different tools would become one function", () => {
    const custom = { type: "custom", name: "f" };
    const ns = namespace("ns", get_time, tool("f"));
    const more = { type: "additional_tools", role: "developer", tools: [custom] };
    assertRefused(
      [{ tools: [tool("ns__f"), ns] }, INVALID, "tools[1].tools[1]"],
      [{ tools: [ns, tool("ns__f")] }, INVALID, "tools[1]"],
      [{ tools: [tool("f"), custom] }, INVALID, "tools[1]"],
      [{ tools: [tool("tool_search"), search] }, INVALID, "tools[1]"],
      [{ tools: [tool("f")] }, INVALID, "input[0].tools[0]", [more, asked]],
    );
    assert.equal(read({ tools: [ns, ns, search, search] }).chat.tools!.length, 3);
  });

  it("requests thinking, and shows it as a summary", () => {
    const cases: [reasoning: object | null, expected: unknown[]][] = [
      [null, [false, false, undefined]],
      [{ summary: "auto" }, [true, true, undefined]],
      [{ summary: null, generate_summary: "auto" }, [true, true, undefined]],
      [{ effort: "high" }, [true, false, "high"]],
      [{ effort: "low", summary: "detailed" }, [true, true, "low"]],
      [{ effort: "none", summary: "auto" }, [false, false, undefined]],
    ];
    for (const [reasoning, expected] of cases) {
      const { wantsThinking, showThinking, effort } = read({ reasoning }).chat;
      assert.deepEqual([wantsThinking, showThinking, effort], expected);
    }
  });

  it("uses the effort and format that its conversation set last", () => {
    const type = "configuration_update";
    const first = { type, reasoning: { effort: "low" }, text: { format: { type: "text" } } };
    const input = [first, asked, { type, reasoning: { effort: "max" } }, { type, reasoning: {} }];
    const { effort, ...chat } = read({ text: { format: { type: "json_object" } } }, input).chat;
    assert.deepEqual([effort, chat.response_format, chat.messages.length], ["max", undefined, 1]);
  });

  it("repeats of its reasoning what takes effect", () => {
    const asked = { effort: "low", generate_summary: "auto" };
    const ignored = { mode: "pro", context: "all_turns" };
    const update = { type: "configuration_update", reasoning: { effort: "high" } };
    const input = [{ role: "user", content: "hi" }, update];
    for (const [reasoning, given, expected] of [
      [{ ...asked, ...ignored }, "hi", { effort: "low", summary: "auto" }],
      [{ ...asked, summary: null }, input, { effort: "high", summary: "auto" }],
      [ignored, "hi", { effort: null, summary: null }],
    ] as const)
      assert.deepEqual(Object(read({ reasoning }, given).facts.echo)["reasoning"], expected);
  });

  it("has its format in text.format", () => {
    const type = "json_schema";
    const schema = { name: "answer", schema: { type: "object", properties: {} }, strict: true };
    assert.deepEqual(read({ text: { format: { type, ...schema } } }).chat.response_format, {
      type,
      json_schema: { ...schema, description: undefined },
    });
    assert.equal(read({ text: { format: { type: "text" } } }).chat.response_format, undefined);
  });

  it("is rejected if it needs stored items, or features of OpenAI's service", () => {
    const hint = /: nothing is stored here; set store: false, and send the items$/;
    const references: [object, string, unknown?][] = [
      [{ previous_response_id: "resp_1" }, "previous_response_id"],
      [{ conversation: "conv_1" }, "conversation"],
      [{}, "input[1]", [asked, { type: "item_reference", id: "msg_1" }]],
      [{}, "input[1]", [asked, { id: "msg_1" }]],
      [{}, "input[1]", [asked, { type: null, id: "msg_1" }]],
    ];
    for (const [more, place, input] of references) {
      assertRefused([more, UNSUPPORTED, place, input]);
      assert.throws(() => read(more, input), hint);
    }
    const stored = [{ role: "user", content: [{ type: "input_image", file_id: "file_1" }] }];
    assertRefused(
      [{ prompt: "x" }, UNSUPPORTED, "prompt"],
      [{ moderation: { model: "m" } }, UNSUPPORTED, "moderation"],
      [{ store: true }, UNSUPPORTED, "store"],
      [{ background: true }, UNSUPPORTED, "background"],
      [{}, UNSUPPORTED, "input[0].content[0].file_id", stored],
    );
    assert.equal(read({ store: false, background: false }).chat.stream, false);
  });

  it("names the path of an invalid value as in the client's request", () => {
    const clip = { type: "input_audio", input_audio: { data: "", format: "wav" } };
    assertRefused(
      [{}, INVALID, "input[0].type", [{ type: "web_search_call" }]],
      [{}, MISSING, "input[0].content", [{ role: "user" }]],
      [{}, MISSING, "input[1].name", [asked, { ...call("a"), name: undefined }]],
      [{}, INVALID, "input[1].call_id", [asked, result("nobody")]],
      [{}, INVALID, "input[0].content[0].type", [{ role: "system", content: [clip] }]],
      [{ tools: [tool("no spaces")] }, INVALID, "tools[0].name"],
      [{ tools: [{ type: "local_shell" }] }, INVALID, "tools[0].type"],
      [{ reasoning: { effort: "ultra" } }, INVALID, "reasoning.effort"],
    );
  });

  it("is rejected if a text part has no text, or a part must be text and is not", () => {
    const parts: [object, string, string][] = [
      [{ type: "input_text" }, MISSING, "text"],
      [{ type: "input_text", text: null }, "invalid_type", "text"],
      [{ type: "refusal" }, MISSING, "refusal"],
      [{ type: "encrypted_content", text: "x" }, MISSING, "encrypted_content"],
    ];
    for (const [part, code, member] of parts) {
      const input = [{ role: "user", content: [part] }];
      assertRefused([{}, code, `input[0].content[0].${member}`, input]);
    }
    const content = [inputText("b"), { type: "input_image", image_url: PIXEL }];
    for (const kind of [{ role: "assistant" }, { type: "agent_message" }, { type: "reasoning" }])
      assertRefused([{}, INVALID, "input[1].content[1].type", [asked, { ...kind, content }]]);
    const item = { type: "reasoning", summary: content };
    assertRefused([{}, INVALID, "input[1].summary[1].type", [asked, item]]);
  });
});
