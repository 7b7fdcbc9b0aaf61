// One request, or one reply of a provider, that was made to stop the process: whatever it is
// answered with, GET /healthz goes on. The bounds in milliseconds are for a machine that is busy
// with other tests. Alone, on two cores, each of these takes less than 250 ms; without the bounds
// on what a text may hold each takes 3 to 20 seconds. Bodies have their full size where LONG_TESTS
// is set, and some a third of it elsewhere.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hashedId } from "../../../src/extensions/providers/turns/index.ts";
import { LONG } from "../../support/long.ts";
import { startScene, type Reply, type Scene } from "../../support/stall.ts";

const WORST_MS = 2_500;
const MiB = 1024 * 1024;
/** A number of messages, parts or events: all of them where LONG_TESTS is set. */
const many = (count: number): number => (LONG ? count : Math.ceil(count / 3));

/** Elements until they have so many characters together. */
function filled(chars: number, element: (index: number) => string): string {
  const elements: string[] = [];
  let length = 0;
  for (let index = 0; length < chars; index += 1) {
    const next = element(index);
    elements.push(next);
    length += next.length + 1;
  }
  return elements.join(",");
}
const listOf = (count: number, element: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => element(index)).join(",");
const newNames = (chars: number) => `{${filled(chars, (at) => `"k${at.toString(36)}":1`)}}`;
/** Objects of 100 names that no other has: what V8 is slowest with. */
const newObjects = (chars: number) =>
  `[${filled(chars, (at) => `{${listOf(100, (name) => `"${at}_${name}":1`)}}`)}]`;
const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

let scene: Scene;
before(async () => {
  scene = await startScene();
});
after(() => scene.close());

const codeIn = (text: string) => /"code":"(\w+)"/.exec(text)?.[1];
const paramIn = (text: string) => /"param":"([^"]+)"/.exec(text)?.[1];

describe("a request below max_body_bytes", () => {
  const SIZE = (LONG ? 9 : 4) * MiB;
  const USER = '{"role":"user","content":"hi"}';
  const body = (model: string, more: string, messages = USER) =>
    `{"model":"${model}","messages":[${messages}]${more === "" ? "" : `,${more}`}}`;
  const tool = (parameters: string) =>
    `"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}]`;
  const call = (id: string) => `{"id":"${id}","function":{"name":"f"}}`;
  const assistant = (calls: string) =>
    `{"role":"assistant","content":null,"tool_calls":[${calls}]}`;
  const clashing = (count: number) =>
    `${listOf(count, (at) => call(hashedId(`${count + 1 + at} a`)))},${listOf(count, () => call("a"))}`;

  for (const [name, model, text, status, code] of [
    [
      "new names in tool parameters",
      "openai",
      body("openai", tool(newNames(SIZE))),
      400,
      "invalid_json",
    ],
    [
      "new names in a field that is ignored",
      "openai",
      body("openai", `"x":${newNames(SIZE)}`),
      400,
      "invalid_json",
    ],
    [
      "objects of new names",
      "openai",
      body("openai", `"x":${newObjects(SIZE)}`),
      400,
      "invalid_json",
    ],
    [
      "millions of numbers",
      "openai",
      body("openai", `"x":[${filled(SIZE, () => "1")}]`),
      400,
      "invalid_json",
    ],
    [
      "ids that clash, Anthropic",
      "anthropic",
      body("anthropic", "", `${USER},${assistant(clashing(many(33_000)))}`),
      200,
      undefined,
    ],
    [
      "ids that clash, Gemini",
      "gemini",
      body("gemini", "", `${USER},${assistant(clashing(many(33_000)))}`),
      200,
      undefined,
    ],
    [
      "tens of thousands of messages, Anthropic",
      "anthropic",
      body(
        "anthropic",
        "",
        listOf(many(90_000), (at) => `{"role":"${at % 2 ? "assistant" : "user"}","content":"x"}`),
      ),
      200,
      undefined,
    ],
    [
      "words, the demo model",
      "demo",
      body("demo", "", `{"role":"user","content":"${"a ".repeat(SIZE / 2)}"}`),
      200,
      undefined,
    ],
  ] as const) {
    it(`${name}: does not keep /healthz waiting`, async () => {
      const stall = await scene.measure(text);
      assert.deepEqual(
        [stall.status, codeIn(stall.text)],
        [status, code],
        `${model}: ${stall.text.slice(0, 300)}`,
      );
      assert.ok(stall.worstMs < WORST_MS, `/healthz took ${stall.worstMs.toFixed(0)} ms`);
    });
  }

  for (const [name, more, param] of [
    [
      "10,001 values in a tool's parameters",
      tool(`{"a":[${listOf(9_999, () => "1")}]}`),
      "tools[0].function.parameters",
    ],
    [
      "10,001 values in a schema",
      `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"a":[${listOf(9_999, () => "1")}]}}}`,
      "response_format.json_schema.schema",
    ],
    [
      "a schema of more than 256 KiB",
      tool(`{"a":"${"x".repeat(256 * 1024 - 7)}"}`),
      "tools[0].function.parameters",
    ],
    [
      "40,001 values in five tools",
      `"tools":[${listOf(5, (at) => `{"type":"function","function":{"name":"f${at}","parameters":{"a":[${listOf(at < 4 ? 9_998 : 7, () => "1")}]}}}`)}]`,
      "tools[4].function.parameters",
    ],
    [
      "more than 1 MiB in five tools",
      `"tools":[${listOf(5, (at) => `{"type":"function","function":{"name":"f${at}","parameters":{"a":"${"x".repeat(250_000)}"}}}`)}]`,
      "tools[4].function.parameters",
    ],
  ] as const) {
    it(`${name}: 400 that says where`, async () => {
      const { status, text } = await scene.measure(body("anthropic", more));
      assert.deepEqual([status, codeIn(text), paramIn(text)], [400, "invalid_value", param]);
      assert.match(text, /expected at most \d+ (values|characters of JSON)/);
    });
  }

  it("tools and schemas at the bounds are served by every dialect", async () => {
    const parameters = `{"type":"object","required":["a"],"properties":{"a":{"enum":[${listOf(9_990, () => "1")}]}}}`;
    const tools = `"tools":[${listOf(4, (at) => `{"type":"function","function":{"name":"f${at}","strict":true,"parameters":${parameters}}}`)}]`;
    const schema = `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":${parameters}}}`;
    for (const model of ["openai", "anthropic", "gemini", "demo"]) {
      const stall = await scene.measure(body(model, `${tools},${schema}`));
      assert.equal(stall.status, 200, `${model}: ${stall.text.slice(0, 300)}`);
      assert.ok(stall.worstMs < WORST_MS, `/healthz took ${stall.worstMs.toFixed(0)} ms`);
    }
  });

  it("a long honest history passes: 5,000 messages, a megabyte of JSON as a tool's result", async () => {
    const result = JSON.stringify(
      JSON.stringify(
        Array.from({ length: 10_000 }, (_, id) => ({
          id,
          name: `name ${id}`,
          tags: ["a", "b"],
          at: { x: 1.5, y: null },
        })),
      ),
    );
    const turn = (at: number) =>
      `${USER},{"role":"assistant","content":null,"tool_calls":[{"id":"c${at}","type":"function","function":{"name":"f","arguments":"{\\"city\\":\\"Oslo\\"}"}}]},` +
      `{"role":"tool","tool_call_id":"c${at}","content":${at === 0 ? result : '"14:05"'}},{"role":"assistant","content":"It is late."}`;
    const text = body("m", "", listOf(1_250, turn));
    assert.ok(result.length > 700_000);
    for (const model of ["openai", "anthropic", "gemini", "demo"]) {
      const stall = await scene.measure(text.replace('"m"', `"${model}"`));
      assert.equal(stall.status, 200, `${model}: ${stall.text.slice(0, 300)}`);
    }
  });

  it("an image's address of megabytes that is malformed is the client's fault", async () => {
    const url = `data:x${";a".repeat(4 * MiB)}`;
    const image = `{"role":"user","content":[{"type":"image_url","image_url":{"url":"${url}"}}]}`;
    for (const model of ["anthropic", "gemini"]) {
      const stall = await scene.measure(body(model, "", image));
      assert.deepEqual([stall.status, codeIn(stall.text)], [400, "unsupported_value"], model);
    }
  });
});

/** JSON.stringify of later Node lines does not recurse, so nothing is too deep for it. */
const WRITES_ANY_DEPTH = (() => {
  try {
    return JSON.stringify(JSON.parse(nested(200_000))).length > 0;
  } catch {
    return false;
  }
})();

describe("a reply of a provider", () => {
  const SIZE = (LONG ? 15 : 6) * MiB;
  const ask = (model: string, stream = false) =>
    JSON.stringify({ model, stream, messages: [{ role: "user", content: "hi" }] });
  const json = (body: string, status = 200): Reply => ({ type: "application/json", body, status });
  const message = (fields: string) =>
    `{"choices":[{"message":{"role":"assistant",${fields}},"finish_reason":"stop"}]}`;
  const delta = (fields: string, finish = "null") =>
    `data: {"choices":[{"index":0,"delta":{${fields}},"finish_reason":${finish}}]}\n\n`;
  const END = `${delta('"content":"x"', '"stop"')}data: [DONE]\n\n`;
  const events = (body: string): Reply => ({ type: "text/event-stream", body });
  const anthropic = (content: string) =>
    `{"type":"message","content":[${content}],"stop_reason":"end_turn","usage":{}}`;
  const gemini = (parts: string) =>
    `{"candidates":[{"content":{"parts":[${parts}]},"finishReason":"STOP"}]}`;

  /** Just below max_reply_bytes: each keeps two cores busy for a second. */
  const LARGEST: [name: string, model: string, reply: () => Reply][] = [
    ["62 MB of names", "openai", () => json(`{"x":${newNames(62 * MiB)}}`)],
    ["62 MB of brackets", "openai", () => json(`{"x":${nested(31 * MiB)}}`)],
  ];

  for (const [name, model, reply, streamed = false] of [
    ...(LONG ? LARGEST : []),
    ["megabytes of names", "openai", () => json(message(`"content":"x","y":${newNames(SIZE)}`))],
    [
      "megabytes of objects of new names",
      "openai",
      () => json(message(`"content":"x","y":${newObjects(SIZE)}`)),
    ],
    [
      "megabytes of brackets",
      "openai",
      () => json(message(`"content":"x","y":${nested(SIZE / 2)}`)),
    ],
    ["an event of names", "openai", () => events(`data: {"x":${newNames(SIZE)}}\n\n${END}`), true],
    ["an event of brackets", "openai", () => events(`data: ${nested(SIZE / 2)}\n\n${END}`), true],
    ["200,000 parts at once", "gemini", () => json(gemini(listOf(200_000, () => '{"text":"x"}')))],
    [
      "200,000 parts in an event",
      "gemini",
      () => events(`data: ${gemini(listOf(200_000, () => '{"text":"x"}'))}\n\n`),
      true,
    ],
    [
      "100,000 blocks",
      "anthropic",
      () => json(anthropic(listOf(100_000, () => '{"type":"text","text":"x"}'))),
    ],
    [
      "90,000 tool calls",
      "openai",
      () =>
        json(
          message(
            `"tool_calls":[${listOf(90_000, (at) => `{"id":"${at}","function":{"name":"f"}}`)}]`,
          ),
        ),
    ],
    [
      "calls without names",
      "openai",
      () => json(message(`"tool_calls":[${listOf(200_000, (index) => `{"index":${index}}`)}]`)),
    ],
    [
      "arguments nested 200,000 deep",
      "openai",
      () =>
        json(
          message(
            `"tool_calls":[{"id":"a","function":{"name":"f","arguments":${nested(200_000)}}}]`,
          ),
        ),
    ],
    [
      "an input nested 200,000 deep",
      "anthropic",
      () =>
        json(anthropic(`{"type":"tool_use","id":"a","name":"f","input":{"a":${nested(200_000)}}}`)),
    ],
    [
      "args nested 200,000 deep",
      "gemini",
      () => json(gemini(`{"functionCall":{"name":"f","args":{"a":${nested(200_000)}}}}`)),
    ],
  ] as const satisfies readonly (readonly [string, string, () => Reply, boolean?])[]) {
    const isPassedOn = name.endsWith("deep") && WRITES_ANY_DEPTH;
    const outcome = isPassedOn ? "passed on as it is" : "upstream_error";
    it(`${name}: ${outcome}, and /healthz goes on`, async () => {
      const stall = await scene.measure(ask(model, streamed), reply());
      assert.deepEqual(
        [stall.status, codeIn(stall.text)],
        isPassedOn ? [200, undefined] : [503, "upstream_error"],
        stall.text.slice(0, 300),
      );
      assert.ok(stall.worstMs < WORST_MS, `/healthz took ${stall.worstMs.toFixed(0)} ms`);
      assert.ok(stall.heightMb < 1_000, `the process has grown to ${stall.heightMb.toFixed(0)} MB`);
    });
  }

  for (const [name, model, reply, streamed] of [
    [
      "a text of megabytes",
      "openai",
      () => json(message(`"content":"${"x".repeat(SIZE)}"`)),
      false,
    ],
    [
      "a finish in each of many events, with 5,000 calls open",
      "openai",
      () =>
        events(
          listOf(5_000, (at) =>
            delta(`"tool_calls":[{"id":"${at}","function":{"name":"f"}}]`),
          ).replaceAll("\n\n,", "\n\n") +
            delta('"content":""', '"stop"').repeat(many(100_000)) +
            END,
        ),
      true,
    ],
    [
      "blanks before thinking, many times",
      "tags",
      () => events(delta('"content":" "').repeat(many(100_000)) + END),
      true,
    ],
    [
      "new usage fields in each of many events",
      "anthropic",
      () =>
        events(
          Array.from(
            { length: many(50_000) },
            (_, at) => `data: {"type":"message_delta","delta":{},"usage":{"u${at}":1}}\n\n`,
          ).join("") +
            'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\ndata: {"type":"message_stop"}\n\n',
        ),
      true,
    ],
    [
      "megabytes of empty data lines",
      "openai",
      () => events(`${"data:\n".repeat(SIZE / 6)}\n${END}`),
      true,
    ],
  ] as const satisfies readonly (readonly [string, string, () => Reply, boolean])[]) {
    it(`${name}: is delivered, and /healthz goes on`, async () => {
      const stall = await scene.measure(ask(model, streamed), reply());
      assert.equal(stall.status, 200, stall.text.slice(0, 300));
      assert.equal(codeIn(stall.text), undefined);
      assert.ok(stall.worstMs < WORST_MS, `/healthz took ${stall.worstMs.toFixed(0)} ms`);
    });
  }

  it("an error's body that is nested as deeply as fits keeps its status's meaning", async () => {
    for (const body of [
      nested(30_000),
      `{"detail":${nested(30_000)}}`,
      `{"error":${nested(30_000)}}`,
    ]) {
      const stall = await scene.measure(ask("openai"), json(body, 400));
      assert.deepEqual([stall.status, codeIn(stall.text)], [400, "upstream_rejected"]);
    }
  });
});
