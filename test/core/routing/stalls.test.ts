// One hostile request or provider reply must not block the process: whatever the answer, no turn of
// the event loop is long, so that other clients are served meanwhile. The bounds in milliseconds
// allow for a machine that is busy with other tests. Alone, on two cores, each case takes less than
// 250 ms; without the bounds on the contents of a text each takes 3 to 20 seconds. Bodies have
// their full size with LONG_TESTS; otherwise some have a third of it.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import {
  FORMATS,
  FULL_SIZE,
  gemini,
  listOf,
  message,
  nested,
  newNames,
  request,
  startCostly,
  tool,
  USER,
  type Reply,
} from "../../../scripts/fuzz/costly.ts";
import { busyMs } from "../../support/effort.ts";
import { configFor, startGateway, type RunningGateway } from "../../support/gateway.ts";
import { LONG } from "../../support/long.ts";
import { heightOf } from "../../support/probe.ts";
import { suiteScope } from "../../support/scope.ts";

const WORST_MS = 2_500;
const MiB = 1024 * 1024;
/** A number of events: all of them with LONG_TESTS, else a third. */
const many = (count: number): number => (LONG ? count : Math.ceil(count / 3));

/** For each format, the model is named after it. */
const MODEL = {
  reasoning: true,
  context_tokens: 100_000_000,
  supports: ["tools", "json_object", "json_schema", "images", "files"],
};
const scope = suiteScope();
let gateway: RunningGateway;
let answer: Awaited<ReturnType<typeof startCostly>>["answer"];
before(async () => {
  const costly = await startCostly(scope);
  answer = costly.answer;
  const models = [...FORMATS, "demo"].map((name) => [name, { provider: name, ...MODEL }]);
  const config = configFor("http://127.0.0.1:1", [], {
    providers: { ...costly.config.providers, demo: { vendor: "demo", pace_ms: 0 } },
    models: {
      ...Object.fromEntries(models),
      tags: { provider: "openai", ...MODEL, think_tags: true },
    },
  });
  gateway = await startGateway(scope, config);
});

/** Returns the longest CPU time of this process in one turn of the event loop, in ms. */
function watchTurns(): () => number {
  let last = busyMs();
  let worst = 0;
  let isOver = false;
  const look = (): void => {
    const now = busyMs();
    worst = Math.max(worst, now - last);
    last = now;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    isOver = true;
    return worst;
  };
}

/** Sends the text as a chat request. `reply`: of the provider; absent: a short one. */
async function measure(body: string, reply?: Reply) {
  answer(reply);
  writeFileSync("/proc/self/clear_refs", "5"); // resets the peak memory
  const before = heightOf(process.pid);
  const worst = watchTurns();
  const response = await gateway.chat(body);
  const text = await response.text();
  const grownMb = (heightOf(process.pid) - before) / 1e6;
  return { status: response.status, text, worstMs: worst(), grownMb };
}

const codeIn = (text: string) => /"code":"(\w+)"/.exec(text)?.[1];
const paramIn = (text: string) => /"param":"([^"]+)"/.exec(text)?.[1];

/** Sends the request, and checks the response and that no other client would wait. */
async function assertQuick(
  body: string,
  expected: readonly [status: number, code?: string],
  reply?: Reply,
) {
  const stall = await measure(body, reply);
  const [status, code] = expected;
  assert.deepEqual([stall.status, codeIn(stall.text)], [status, code], stall.text.slice(0, 300));
  assert.ok(stall.worstMs < WORST_MS, `a turn of ${stall.worstMs.toFixed(0)} ms`);
  return stall;
}

describe("a request below max_body_bytes", () => {
  const SIZE = LONG ? FULL_SIZE : 4_000_000;
  it("does not delay others by its words", async () => {
    const words = `{"role":"user","content":"${"a ".repeat(SIZE / 2)}"}`;
    await assertQuick(request("", words)("demo"), [200]);
  });

  /** `count` values in an object: the object itself, a list, and the list's elements. */
  const valuesOf = (count: number) => `{"a":[${listOf(count - 2, () => "1")}]}`;
  const textOf = (length: number) => `{"a":"${"x".repeat(length)}"}`;
  const tools = (count: number, parameters: (at: number) => string, more = "") =>
    `,"tools":[${listOf(count, (at) => `{"type":"function","function":{"name":"f${at}"${more},"parameters":${parameters(at)}}}`)}]`;
  const schemaOf = (schema: string) =>
    `,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":${schema}}}`;
  const parametersOf = (at: number) => `tools[${at}].function.parameters`;
  for (const [name, more, param] of [
    ["10,001 values in a tool's parameters", tool(valuesOf(10_001)), parametersOf(0)],
    ["10,001 values in a schema", schemaOf(valuesOf(10_001)), "response_format.json_schema.schema"],
    ["a schema of more than 256 KiB", tool(textOf(256 * 1024 - 7)), parametersOf(0)],
    [
      "40,001 values in five tools",
      tools(5, (at) => valuesOf(at < 4 ? 10_000 : 9)),
      parametersOf(4),
    ],
    ["more than 1 MiB in five tools", tools(5, () => textOf(250_000)), parametersOf(4)],
  ] as const) {
    it(`${name}: 400 that states the position`, async () => {
      const { status, text } = await measure(request(more)("anthropic"));
      assert.deepEqual([status, codeIn(text), paramIn(text)], [400, "invalid_value", param]);
      assert.match(text, /expected at most \d+ (values|characters of JSON)/);
    });
  }

  it("tools and schemas at the bounds are served by every dialect", async () => {
    const parameters = `{"type":"object","required":["a"],"properties":{"a":{"enum":[${listOf(9_990, () => "1")}]}}}`;
    const most = tools(4, () => parameters, ',"strict":true') + schemaOf(parameters);
    for (const model of ["openai", "anthropic", "gemini", "demo"])
      await assertQuick(request(most)(model), [200]);
  });

  it("a long legitimate history passes: 5,000 messages, a megabyte of JSON as a tool's result", async () => {
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
    const body = request("", listOf(1_250, turn));
    assert.ok(result.length > 700_000);
    for (const model of ["openai", "anthropic", "gemini", "demo"])
      await assertQuick(body(model), [200]);
  });

  it("a malformed image address of megabytes is an error of the client", async () => {
    const url = `data:x${";a".repeat(4 * MiB)}`;
    const image = `{"role":"user","content":[{"type":"image_url","image_url":{"url":"${url}"}}]}`;
    for (const model of ["anthropic", "gemini"])
      await assertQuick(request("", image)(model), [400, "unsupported_value"]);
  });
});

/** JSON.stringify of later Node versions does not recurse, so no nesting is too deep for it. */
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
  const json = (body: string): Reply => ({ body });
  const calls = (list: string): Reply => json(message(`"tool_calls":[${list}]`));
  const delta = (fields: string, finish = "null") =>
    `data: {"choices":[{"index":0,"delta":{${fields}},"finish_reason":${finish}}]}\n\n`;
  const END = `${delta('"content":"x"', '"stop"')}data: [DONE]\n\n`;
  const events = (body: string): Reply => ({ type: "text/event-stream", body });
  type Expected = readonly [status: number, code?: string];
  const DELIVERED: Expected = [200];
  const REFUSED: Expected = [503, "upstream_error"];
  /** Passed on unchanged if this Node version can. */
  const TOO_DEEP = WRITES_ANY_DEPTH ? DELIVERED : REFUSED;

  /**
   * The model's provider sends this reply. Checks the client's answer, and that others are served.
   */
  function gives(name: string, expected: Expected, model: string, reply: () => Reply): void {
    it(`${name}: ${expected.join(" ")}, and others are served`, async () => {
      const made = reply();
      const streamed = made.type === "text/event-stream";
      const { grownMb } = await assertQuick(ask(model, streamed), expected, made);
      assert.ok(grownMb < 900, `the process has grown by ${grownMb.toFixed(0)} MB`);
    });
  }
  gives("an event of names", REFUSED, "openai", () =>
    events(`data: {"x":${newNames(SIZE)}}\n\n${END}`),
  );
  gives("an event of brackets", REFUSED, "openai", () =>
    events(`data: ${nested(SIZE / 2)}\n\n${END}`),
  );
  gives("200,000 parts in an event", REFUSED, "gemini", () =>
    events(`data: ${gemini(listOf(200_000, () => '{"text":"x"}'))}\n\n`),
  );
  gives("90,000 tool calls", REFUSED, "openai", () =>
    calls(listOf(90_000, (at) => `{"id":"${at}","function":{"name":"f"}}`)),
  );
  gives("calls without names", REFUSED, "openai", () =>
    calls(listOf(200_000, (index) => `{"index":${index}}`)),
  );
  gives("arguments nested 200,000 deep", TOO_DEEP, "openai", () =>
    calls(`{"id":"a","function":{"name":"f","arguments":${nested(200_000)}}}`),
  );
  gives("args nested 200,000 deep", TOO_DEEP, "gemini", () =>
    json(gemini(`{"functionCall":{"name":"f","args":{"a":${nested(200_000)}}}}`)),
  );
  gives("a text of megabytes", DELIVERED, "openai", () =>
    json(message(`"content":"${"x".repeat(SIZE)}"`)),
  );
  gives("a finish in each of many events, with 5,000 calls open", DELIVERED, "openai", () => {
    const call = (at: number) => delta(`"tool_calls":[{"id":"${at}","function":{"name":"f"}}]`);
    const begun = Array.from({ length: 5_000 }, (_, at) => call(at)).join("");
    return events(begun + delta('"content":""', '"stop"').repeat(many(100_000)) + END);
  });
  gives("blanks before thinking, many times", DELIVERED, "tags", () =>
    events(delta('"content":" "').repeat(many(100_000)) + END),
  );
  gives("new usage fields in each of many events", DELIVERED, "anthropic", () => {
    const next = (fields: string) => `data: {"type":"message_delta",${fields}}\n\n`;
    const usages = Array.from({ length: many(50_000) }, (_, at) =>
      next(`"delta":{},"usage":{"u${at}":1}`),
    );
    const end = next('"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}');
    return events(`${usages.join("")}${end}data: {"type":"message_stop"}\n\n`);
  });
  gives("megabytes of empty data lines", DELIVERED, "openai", () =>
    events(`${"data:\n".repeat(SIZE / 6)}\n${END}`),
  );

  it("the deepest nesting that fits into an error body does not change the meaning of its status", async () => {
    for (const body of [
      nested(30_000),
      `{"detail":${nested(30_000)}}`,
      `{"error":${nested(30_000)}}`,
    ]) {
      const stall = await measure(ask("openai"), { body, status: 400 });
      assert.deepEqual([stall.status, codeIn(stall.text)], [400, "upstream_rejected"]);
    }
  });
});
