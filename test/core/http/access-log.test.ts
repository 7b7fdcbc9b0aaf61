// The access log: the optional fields (what went wrong, what was requested, who served it, what it
// cost), and when a line is written.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createResponseLog } from "../../../src/core/http/access-log.ts";
import type { LiveExchange } from "../../../src/core/http/connection.ts";
import type { AccessRecord } from "../../../src/core/http/exchange.ts";
import { createLineLog } from "../../../src/core/http/line-log.ts";
import { type Line, PRICE, settles } from "../../support/books.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { configFor, demo, startWith, startGateway, user } from "../../support/gateway.ts";
import { chunk, speak, status, stream, usageChunk } from "../../support/provider.ts";
import { waitFor, within } from "../../support/wait.ts";

const ALWAYS = [
  ...["time", "request_id", "method", "path", "status", "duration_ms"],
  ...["account", "key_id", "model"],
];
const more = (record: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !ALWAYS.includes(name)));

describe("a line of the access log", () => {
  it("names the error's code and param, and the requested model, truncated", async (t) => {
    const gateway = await startGateway(t, demo());
    const refused = async (id: string, body: unknown, key = "sk-demo") => {
      const headers = { authorization: `Bearer ${key}`, "x-request-id": id };
      await (await gateway.chat(body, headers)).text();
      return more(await gateway.accessOf(id));
    };
    assert.deepEqual(await refused("key", {}, "sk-wrong"), { error_code: "invalid_api_key" });
    assert.deepEqual(await refused("json", "{"), { error_code: "invalid_json" });
    assert.deepEqual(
      await refused("role", { model: "demo-chat", messages: [{ role: "x", content: "" }] }),
      { error_code: "invalid_value", param: "messages[0].role" },
    );
    for (const [id, model, model_requested] of [
      ["long", "x".repeat(600), `${"x".repeat(512)}\u2026`],
      // Strict readers of JSON refuse a line with half of a character.
      ["halved", `${"x".repeat(511)}\u{1f600}y`, `${"x".repeat(511)}\ufffd\u2026`],
      ["half", "x\ud800y", "x\ufffdy"],
    ] as const)
      assert.deepEqual(await refused(id, { model, messages: user("hi") }), {
        model_requested,
        error_code: "model_not_found",
        param: "model",
      });
    await (await fetch(`${gateway.url}/nowhere`, { headers: { "x-request-id": "404" } })).text();
    assert.deepEqual(more(await gateway.accessOf("404")), { error_code: "unknown_url" });
  });

  it("has the tokens and cost of the books, by provider and model, also for a broken stream", async (t) => {
    const data_dir = folder();
    const usage = usageChunk({ prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 });
    const behaviours = {
      fine: speak("Fine."),
      cut: stream([chunk({ content: "Half a" }), usage], "cut"),
      down: status(500, {}),
    };
    const priced = { price: PRICE };
    const gateway = await startWith(t, behaviours, {
      data_dir,
      models: { fine: priced, cut: priced, down: priced },
      aliases: { "team/any": { models: ["fine"] } },
    });
    const ask = async (id: string, body: object) => {
      await (await gateway.chat({ ...body, messages: user("hi") }, { "x-request-id": id })).text();
      return more(await gateway.accessOf(id));
    };
    const whole = await ask("whole", { model: "team/any" });
    const broken = await ask("broken", { model: "cut", stream: true });
    const failed = await ask("failed", { model: "down" });
    const lines = await settles(data_dir);
    const lineOf = (id: string) => lines.find((each: Line) => each["gateway_request_id"] === id)!;
    const { usage: billed, cost, usage_source } = lineOf("whole");
    const { prompt_tokens, completion_tokens } = billed as Record<string, number>;
    assert.deepEqual(whole, {
      model_requested: "team/any",
      provider: "lab",
      ...(usage_source === "estimated" && { usage_source }),
      prompt_tokens,
      completion_tokens,
      cost,
      currency: "USD",
    });
    assert.notEqual(cost, "0");
    const { error_code, provider, cost: ofBroken } = broken;
    const expected = ["upstream_error", "lab", lineOf("broken")["cost"]];
    assert.deepEqual([error_code, provider, ofBroken], expected);
    assert.deepEqual(failed, {
      model_requested: "down",
      provider: "lab",
      error_code: "upstream_error",
      param: "model",
    });
  });

  it("names the model that was tried last and its provider, even if none served", async (t) => {
    const gateway = await startGateway(
      t,
      configFor("http://127.0.0.1:1", ["a"], {
        providers: { other: { dialect: "openai", base_url: "http://127.0.0.1:2" } },
        models: { b: { provider: "other" } },
        aliases: { x: { models: ["a", "b"] } },
      }),
    );
    await gateway.chat({ model: "x", messages: user("hi") }, { "x-request-id": "both" });
    const { model, provider } = await gateway.accessOf("both");
    assert.deepEqual([model, provider], ["b", "other"]);
  });

  it("has tokens and cost too if the client left, and is written once", async (t) => {
    const m = stream([chunk({ content: "Once upon a time" })], "open");
    const over = { models: { m: { price: PRICE } }, timeouts: { leave_ms: 0 } };
    const gateway = await startWith(t, { m }, over);
    const request = { model: "m", stream: true, messages: user("hi") };
    const response = await gateway.chat(request, { "x-request-id": "left" });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    const record = await gateway.accessOf("left");
    const { status, cost, currency, provider: served, completion_tokens } = record;
    assert.deepEqual([status, currency, served], [499, "USD", "lab"]);
    assert.ok(Number(cost) > 0 && Number(completion_tokens) > 0, JSON.stringify(record));
    await waitFor(() => gateway.gateway.report().inFlight === 0, "the request to be over");
    assert.equal(gateway.access.length, 1);
  });
});

it("the log writes a line when a response ends, and settles at the last line or after its timeout", async () => {
  const records: AccessRecord[] = [];
  const clock = createFakeClock(Date.UTC(2025, 0, 2, 3, 4, 5));
  const log = createResponseLog((record) => records.push(record), clock);
  /** An exchange that begins now. Unless `delivered`, its client leaves. */
  const exchange = (delivered = false): LiveExchange => {
    const req = { method: "POST", url: "/v1/chat/completions?x" };
    const base = { requestId: "req_1", req, log: {}, startedAt: clock.monotonic() };
    return { ...base, delivered, handled: false } as unknown as LiveExchange;
  };
  await within(log.settle(1_000), "nothing to wait for");
  const whole = exchange(true);
  clock.advance(12.3456);
  log.ended(whole, 200);
  const { time, path, duration_ms } = records[0]!;
  assert.deepEqual(
    [time, path, duration_ms],
    ["2025-01-02T03:04:05.012Z", "/v1/chat/completions", 12.346],
  );

  const first = exchange();
  log.ended(first, 499);
  log.ended(exchange(), 499);
  const settled = log.settle(1_000);
  clock.advance(500);
  first.onHandled?.();
  assert.deepEqual([records.length, records[1]!.duration_ms], [2, 0], "the wait is not counted");
  clock.advance(500);
  await within(settled, "the last line");
  assert.equal(records.length, 3);
  assert.equal(clock.pending(), 0);
});

it("a log writes the lines of one turn together, and the rest on flush, each once, without control characters", async () => {
  const writes: string[] = [];
  const log = createLineLog((lines) => writes.push(lines));
  log.write({ a: 1 });
  log.writeText("text");
  assert.deepEqual(writes, []);
  await new Promise(setImmediate);
  assert.deepEqual(writes, ['{"a":1}\ntext\n']);
  log.write({ last: "\u007f\u009b2J\u00a0" });
  log.flush();
  await new Promise(setImmediate);
  assert.deepEqual(writes.slice(1), ['{"last":"\\u007f\\u009b2J\u00a0"}\n']);
});
