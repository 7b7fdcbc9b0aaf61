// The fields of the access log that are there where there are some: what went wrong, what was asked
// for, who served it, what it cost.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PRICE, settles, type Line } from "../../support/books.ts";
import { configFor, demo, startGateway, user } from "../../support/gateway.ts";
import { folder } from "../../support/folder.ts";
import { chunk, speak, startProvider, status, stream, usageChunk } from "../../support/provider.ts";
import { waitFor } from "../../support/wait.ts";

const ALWAYS = [
  ...["time", "request_id", "method", "path", "status", "duration_ms"],
  ...["account", "key_id", "model"],
];
const more = (record: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !ALWAYS.includes(name)));

describe("a line of the access log", () => {
  it("names the error's code and param, and the model that was asked for, cut", async (t) => {
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
    assert.deepEqual(await refused("model", { model: "x".repeat(600), messages: user("hi") }), {
      model_requested: `${"x".repeat(512)}\u2026`,
      error_code: "model_not_found",
      param: "model",
    });
    await (await fetch(`${gateway.url}/nowhere`, { headers: { "x-request-id": "404" } })).text();
    assert.deepEqual(more(await gateway.accessOf("404")), { error_code: "unknown_url" });
  });

  it("has the tokens and the cost that the books have, by provider and model, also of a stream that broke off", async (t) => {
    const data_dir = folder();
    const usage = usageChunk({ prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 });
    const provider = await startProvider(t, {
      fine: speak("Fine."),
      cut: stream([chunk({ content: "Half a" }), usage], "cut"),
      down: status(500, {}),
    });
    const priced = { provider: "lab", price: PRICE };
    const gateway = await startGateway(
      t,
      configFor(provider.url, [], {
        data_dir,
        models: { fine: priced, cut: priced, down: priced },
        aliases: { "team/any": { models: ["fine"] } },
      }),
    );
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
    assert.equal(broken["error_code"], "upstream_error");
    assert.equal(broken["provider"], "lab");
    assert.equal(broken["cost"], lineOf("broken")["cost"]);
    assert.deepEqual(failed, {
      model_requested: "down",
      provider: "lab",
      error_code: "upstream_error",
      param: "model",
    });
  });

  it("has them too where the client left, once", async (t) => {
    const provider = await startProvider(t, {
      m: stream([chunk({ content: "Once upon a time" })], "open"),
    });
    const models = { m: { provider: "lab", price: PRICE } };
    const gateway = await startGateway(
      t,
      configFor(provider.url, [], { models, timeouts: { leave_ms: 0 } }),
    );
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
