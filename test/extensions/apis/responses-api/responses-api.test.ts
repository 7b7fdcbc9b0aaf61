// POST /v1/responses at a running gateway: from the key to the receipt.
import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { settled } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, KEY, startGateway } from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Behaviours,
} from "../../../support/provider.ts";
import { readEvents } from "../../../support/api-events.ts";
import { post } from "../post.ts";
import { waitFor } from "../../../support/wait.ts";

const TOOLS = [
  { type: "function", name: "get_time", parameters: { type: "object" } },
  { type: "web_search", external_web_access: true },
];
const hello = { role: "user", content: "hi" };
const called = { id: "call_1", type: "function", function: { name: "get_time", arguments: "{}" } };
/** The result of the call that the model `caller` makes. */
const result = { type: "function_call_output", call_id: "call_1", output: "14:05" };
const behaviours: Behaviours = {
  model: speak("It is 14:05.", { reasoning: "First the city." }),
  caller: status(200, completion({ content: null, reasoning_content: "R", tool_calls: [called] })),
  silent,
  limited: status(429, { error: { message: "slow down" } }),
  cut: stream([chunk({ content: "Half" })], "cut"),
  hanging: stream([chunk({ content: "Half" })], "open"),
  broken: status(500),
};

/** The stream begins before the provider sends anything. */
const QUICK = { server: { keep_alive_ms: 20 } };

async function start(t: TestContext, over: object = {}) {
  const provider = await startProvider(t, behaviours);
  const config = configFor(provider.url, Object.keys(behaviours), { apis: ["responses"], ...over });
  const gateway = await startGateway(t, config);
  const ask = (body: object | string, headers: Record<string, string> = {}) => {
    const request = typeof body === "string" ? body : { model: "model", input: "hi", ...body };
    return post(`${gateway.url}/v1/responses`, request, headers);
  };
  return { ...gateway, provider, ask };
}

describe("POST /v1/responses", () => {
  it("has errors in OpenAI's format, with the request's id", async (t) => {
    const plain = { provider: "lab", supports: ["tools"] };
    const { ask, url } = await start(t, { models: { plain } });
    const expect = async (asked: Promise<Response>, about: string, param: string | null) => {
      const answer = await asked;
      const { error } = await json(answer);
      assert.deepEqual([`${answer.status} ${error.code}`, error.param], [about, param]);
      assert.equal(error.request_id, answer.headers.get("x-request-id"));
      return error.message as string;
    };
    await expect(ask({}, { authorization: "Bearer nobody" }), "401 invalid_api_key", null);
    await expect(ask({ model: "none" }), "404 model_not_found", "model");
    await expect(ask("{"), "400 invalid_json", null);
    await expect(ask({ model: "limited" }), "503 model_overloaded", "model");
    await expect(fetch(`${url}/v1/responses`), "405 method_not_allowed", null);
    const image = { type: "input_image", image_url: "https://example.org/a.png" };
    const asked = { role: "user", content: [image] };
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const result = { type: "function_call_output", call_id: "c", output: [image] };
    const unsupported = "400 unsupported_value";
    for (const [input, place] of [
      [[hello, asked], "input[1].content"],
      [[hello, call, hello, result], "input[3].output"],
    ] as const) {
      const message = await expect(ask({ input }), unsupported, place);
      assert.equal(message, `Invalid '${place}': this model does not take images.`);
    }
    const include = ["message.output_text.logprobs"];
    const message = await expect(ask({ model: "plain", include }), unsupported, "include");
    assert.equal(message, "Invalid 'include': this model states no log probabilities.");
  });

  it("accepts a key in x-api-key; logs omitted tools, and passes on calls of the others", async (t) => {
    const { ask, provider, diagnostics } = await start(t);
    const headers = { "x-request-id": "left-out", authorization: "", "x-api-key": KEY };
    const reply = await json(await ask({ model: "caller", tools: TOOLS }, headers));
    assert.equal(reply.output[0].name, "get_time");
    const { body } = await provider.nth(0);
    assert.equal(body["tools"].length, 1);
    assert.equal(body["tool_choice"], "auto");
    const line = await waitFor(
      () => diagnostics.find(({ event }) => event === "tools_left_out"),
      "the line about the tools",
    );
    assert.deepEqual([line["request_id"], line["tools"]], ["left-out", ["web_search"]]);
  });

  it("notes omitted items in the receipt, however the request ends", async (t) => {
    const data_dir = folder();
    const { ask } = await start(t, { data_dir, timeouts: { leave_ms: 0 } });
    const sealed = { type: "reasoning", summary: [], encrypted_content: "gAAAAABpvendor" };
    const asked = { tools: TOOLS, stream: true, input: [hello, sealed, sealed] };
    for (const model of ["model", "broken", "cut"]) await (await ask({ ...asked, model })).text();
    const reader = (await ask({ ...asked, model: "hanging" })).body!.getReader();
    await reader.read();
    await reader.cancel();
    const lines = await settled(data_dir, 4);
    const ends = lines.map(({ status }) => status);
    assert.deepEqual(ends, ["completed", "failed", "failed", "cancelled"]);
    const left = ["left out: web_search", "left out: reasoning sealed elsewhere (2)"];
    for (const { notes } of lines) assert.deepEqual(notes, left);
  });

  it("sends sealed reasoning back to its model, also after a restart", async (t) => {
    const over = { data_dir: folder() };
    const first = await start(t, over);
    const include = ["reasoning.encrypted_content"];
    const turn = { model: "caller", tools: TOOLS, reasoning: { effort: "low" }, include };
    const { output } = await json(await first.ask(turn));
    assert.deepEqual([output[0].type, output[0].summary], ["reasoning", []]);
    await first.gateway.close();

    const second = await start(t, over);
    const input = [hello, ...output, result];
    assert.equal((await second.ask({ ...turn, model: "model", input })).status, 200);
    const { body } = await second.provider.nth(0);
    assert.equal(body["messages"][1].reasoning_content, "R");
  });

  describe("a request for a WebSocket", () => {
    /** The headers of a handshake that nginx and Apache pass on. */
    const passedOn = {
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      authorization: `Bearer ${KEY}`,
    };
    const handshake = { connection: "keep-alive, Upgrade", upgrade: "websocket", ...passedOn };
    const get = async (url: string, headers: object, method = "GET") => {
      const req = request(url, { method, headers: { ...headers } });
      req.end(method === "POST" ? JSON.stringify({ model: "model", input: "hi" }) : undefined);
      const [res] = (await once(req, "response")) as [IncomingMessage];
      return { res, text: await text(res) };
    };

    it("gets 426 with the supported protocol, also from pages of allowed origins", async (t) => {
      const origin = "https://app.example.org";
      const { url, accessOf } = await start(t, { server: { cors: { origins: [origin] } } });
      const { res, text } = await get(`${url}/v1/responses?model=model`, { ...handshake, origin });
      assert.equal(res.statusCode, 426);
      assert.deepEqual([res.headers.upgrade, res.headers.connection], ["HTTP/1.1", "Upgrade"]);
      assert.equal(res.headers["access-control-allow-origin"], origin);
      const { message, ...error } = JSON.parse(text).error;
      assert.match(message, /send the request by POST/);
      const request_id = res.headers["x-request-id"] as string;
      const [type, code] = ["invalid_request_error", "upgrade_required"];
      assert.deepEqual(error, { type, code, param: null, request_id });
      assert.equal((await accessOf(request_id))["error_code"], code);
      assert.equal((await get(`${url}/v1/responses`, passedOn)).res.statusCode, 426);
    });

    it("changes no other request, and is unknown without the API", async (t) => {
      const { url } = await start(t);
      const off = await start(t, { apis: [] });
      const post = { ...handshake, "content-type": "application/json" };
      for (const [expected, path, headers, method] of [
        [405, `${url}/v1/responses`, { connection: "Upgrade", upgrade: "h2c" }, "GET"],
        [405, `${url}/v1/chat/completions`, handshake, "GET"],
        [200, `${url}/v1/responses`, post, "POST"],
        [404, `${off.url}/v1/responses`, handshake, "GET"],
      ] as const)
        assert.equal((await get(path, headers, method)).res.statusCode, expected);
    });
  });

  it("sends an error before the first text as events, if the stream has begun", async (t) => {
    const { ask } = await start(t, { ...QUICK, timeouts: { first_token_ms: 200 } });
    const more = { instructions: "Be brief.", temperature: 0.5, metadata: { a: "b" } };
    const asked = { model: "silent", tools: TOOLS, tool_choice: "none", ...more };
    const answer = await ask({ ...asked, stream: true });
    assert.equal(answer.status, 200);
    const events = readEvents(await answer.text());
    const types = events.map(({ type }) => type.replace("response.", ""));
    assert.deepEqual(types, ["created", "in_progress", "error", "failed"]);
    const echoed = { ...asked, parallel_tool_calls: true, top_p: 1, store: false };
    for (const { response } of events.filter(({ type }) => type !== "error"))
      for (const [field, value] of Object.entries(echoed))
        assert.deepEqual(response[field], value, field);
  });

  it("calls the prompt `input` in such an error too", async (t) => {
    const { ask, provider } = await start(t, QUICK);
    const answer = await ask({ model: "silent", stream: true });
    status(400, { error: { code: "context_length_exceeded" } })(await provider.nth(0));
    const error = readEvents(await answer.text()).find(({ type }) => type === "error")!;
    assert.deepEqual([error["param"], error["error"].param], ["input", "input"]);
  });
});
