// Streams: the client gets exactly the provider's content, in the order of wire.md "Chunks", or an
// error.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it } from "node:test";
import { completionShape } from "../../support/shapes.ts";
import {
  assemble,
  assertSound,
  json,
  KEY,
  readStream,
  startWith,
  user,
} from "../../support/gateway.ts";
import {
  chunk,
  completion,
  endless,
  event,
  rawStream,
  speak,
  status,
  stream,
  USAGE,
  usageChunk,
  type Behaviour,
} from "../../support/provider.ts";
import type { Scope } from "../../support/scope.ts";
import { settled, waitFor, within } from "../../support/wait.ts";
import { timersOnCall } from "../../support/unhurried-clock.ts";

const asking = (request: object) => ({
  model: "m",
  stream: true,
  messages: user("hi"),
  ...request,
});

async function ask(t: Scope, behaviour: Behaviour, request: object = {}, over: object = {}) {
  const { provider, ...gateway } = await startWith(t, { m: behaviour }, over);
  return { provider, gateway, response: await gateway.chat(asking(request)) };
}

/** Sends a request over HTTP, and reads only the response head. */
async function unread(url: string, id: string, model = "m", stream = true) {
  const headers = {
    authorization: `Bearer ${KEY}`,
    "content-type": "application/json",
    "x-request-id": id,
  };
  const req = http.request(`${url}/v1/chat/completions`, { method: "POST", headers });
  req.on("error", () => undefined);
  const head = new Promise<http.IncomingMessage>((resolve) => req.on("response", resolve));
  req.end(JSON.stringify({ model, stream, messages: user("hi") }));
  const res = await within(head, "the head of the answer");
  res.pause();
  res.on("error", () => undefined);
  return { req, res };
}

const long = event(chunk({ content: "x".repeat(14 * 1024 * 1024) }));
const done = event(chunk({}, "stop")) + event("[DONE]");
const broken = event({ error: { message: "boom", type: "server_error", code: 500 } });

for (const [name, ending] of [
  ["the end", done],
  ["an error", broken],
] as const) {
  it(`a client that stops reading near the end and leaves before ${name} ends only its own request`, async (t) => {
    const behaviours = { m: rawStream(long + ending), n: speak("Still here.") };
    const gateway = await startWith(t, behaviours);
    const { req } = await unread(gateway.url, "gone");
    req.destroy();
    assert.equal((await gateway.accessOf("gone"))["status"], 499);
    const other = await json(await gateway.chat({ model: "n", messages: user("hi") }));
    assert.equal(other.choices[0].message.content, "Still here.");
  });
}

it("a client that stops reading near the end does not block the provider's connection", async (t) => {
  const { provider, ...gateway } = await startWith(t, { m: rawStream(long + done) });
  for (const id of ["first", "second"]) {
    const { res } = await unread(gateway.url, id);
    res.resume();
    assert.equal((await gateway.accessOf(id))["status"], 200);
  }
  assert.equal(provider.connections(), 1);
});

const [a, b] = ["a", "b"].map((content) => chunk({ content }, "stop"));
const logprobs = { content: [{ token: "a", logprob: -1 }] };
const hidden = { choices: [{ index: 0, delta: { content: "" }, logprobs }] };
const thought = chunk({ reasoning_content: "Hm." });
for (const [name, events, texts] of [
  ["content after a finish_reason is kept, and the finish stays last", [a, b], ["a", "b"]],
  ["content hidden from the client makes no chunk", [thought, hidden, a, hidden], ["a"]],
] as const)
  it(`a sequence of events: ${name}`, async (t) => {
    const { response } = await ask(t, stream([...events, usageChunk()]));
    const { chunks } = await readStream(response);
    const seen = chunks.flatMap(({ choices }) => choices);
    const expected = [{ role: "assistant", content: "" }, ...texts.map((content) => ({ content }))];
    assert.deepEqual(
      seen.map(({ delta }) => delta),
      [...expected, {}],
    );
    assert.equal(seen.at(-1)!.finish_reason, "stop");
  });

describe("streamed and whole replies agree", () => {
  const lp = (token: string) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [] });
  const thinking = { thinking: { type: "enabled" } };
  type Logprobs = { readonly content: readonly object[] };
  const callOf = (args: string) => ({
    id: `c${args}`,
    type: "function",
    function: { name: "f", arguments: args },
  });
  const asked = { logprobs: true };
  const thought = { content: "So.", reasoning_content: "Hm." };
  type Reply = readonly [
    name: string,
    message: Record<string, any>,
    finish: string,
    request: object,
    logprobs?: Logprobs,
  ];
  const replies: readonly Reply[] = [
    ["text", { content: "One two \u{1f600}." }, "stop", {}],
    ["thinking", thought, "stop", thinking],
    ["nothing but thinking", { content: "", reasoning_content: "Hm." }, "length", thinking],
    ["an end with calls of which there are none", { content: "So." }, "tool_calls", {}],
    ["a refusal", { content: null, refusal: "No." }, "stop", {}],
    ["a call with text", { content: "Look:", tool_calls: [callOf("{}")] }, "tool_calls", {}],
    [
      "calls without text, one of them without arguments",
      { content: null, tool_calls: ["", '{"x":1}'].map(callOf) },
      "tool_calls",
      {},
    ],
    ["requested thinking that does not come", { content: "So." }, "stop", thinking],
    ["filtered", { content: "" }, "content_filter", {}],
    ["logprobs", { content: "Hi" }, "stop", asked, { content: [lp("H"), lp("i")] }],
    ["logprobs that were not requested", { content: "Hi" }, "stop", {}, { content: [lp("Hi")] }],
    ["logprobs without text", { content: "" }, "stop", asked, { content: [lp("H")] }],
  ];
  const saying =
    (message: Record<string, any>, finish: string, logprobs: object | undefined): Behaviour =>
    (asked) => {
      const { tool_calls, ...texts } = message;
      if (!asked.body["stream"]) {
        const said = { role: "assistant", ...message };
        const choice = { index: 0, message: said, finish_reason: finish, logprobs };
        return status(200, { choices: [choice], usage: USAGE })(asked);
      }
      const fragments = tool_calls?.map((call: object, index: number) => ({ index, ...call }));
      const delta = { ...texts, ...(fragments && { tool_calls: fragments }) };
      const choice = { index: 0, delta, finish_reason: null, logprobs };
      return stream([{ choices: [choice] }, chunk({}, finish), usageChunk()])(asked);
    };
  for (const [field, message, request] of [
    ["refusal", { content: null, refusal: "No." }, {}],
    ["reasoning_content", thought, thinking],
  ] as const)
    it(`log probabilities of ${field} are in a separate field`, async (t) => {
      const said = saying(message, "stop", { [field]: [lp("No.")] });
      const asked = { ...request, logprobs: true };
      const { gateway, response } = await ask(t, said, asked);
      const { chunks } = await readStream(response);
      const shown = chunks.flatMap(({ choices }) => choices[0]?.logprobs ?? []);
      const whole = await json(await gateway.chat(asking({ ...asked, stream: false })));
      for (const each of [whole.choices[0].logprobs, ...shown])
        assert.deepEqual([each.content, each[field]], [null, [lp("No.")]]);
      assert.equal(shown.length, 1);
    });

  it("log probabilities of thinking are hidden with it if nobody asked for it", async (t) => {
    const said = saying(thought, "stop", { reasoning_content: [lp("Hm.")] });
    const { gateway, response } = await ask(t, said, { logprobs: true });
    assert.doesNotMatch(await response.text(), /"Hm\."/);
    const whole = await json(await gateway.chat(asking({ stream: false, logprobs: true })));
    assert.equal(whole.choices[0].logprobs, null);
  });

  for (const [name, message, finish, request, logprobs] of replies) {
    it(name, async (t) => {
      const said = saying(message, finish, logprobs);
      const withUsage = { ...request, stream_options: { include_usage: true } };
      const { gateway, response } = await ask(t, said, withUsage);
      const { chunks } = await readStream(response);
      const whole = await json(await gateway.chat(asking({ ...request, stream: false })));
      completionShape(whole);
      assertSound(chunks, "m");
      const [choice] = whole.choices;
      const shown = "logprobs" in request ? logprobs : undefined;
      // A finish with tool_calls but without any call is a normal finish.
      const stated = name.startsWith("an end with calls") ? "stop" : finish;
      assert.deepEqual(assemble(chunks), {
        message: choice.message,
        finish_reason: stated,
        logprobs: shown?.content ?? [],
      });
      assert.deepEqual([choice.index, choice.finish_reason], [0, stated]);
      assert.deepEqual(choice.logprobs?.content, shown?.content);
      for (const call of choice.message.tool_calls ?? [])
        assert.ok(JSON.parse(call.function.arguments), "empty arguments are an object");
      assert.deepEqual(
        chunks.map(({ usage }) => usage),
        chunks.map((chunk) => (chunk === chunks.at(-1) ? whole.usage : null)),
      );
      const thoughts = "thinking" in request ? (message["reasoning_content"] ?? "") : undefined;
      assert.equal(choice.message.reasoning_content, thoughts);
    });
  }
});

it("an unreadable event inside a stream is skipped, and the operator is told", async (t) => {
  const [a, b] = ["a", "b"].map((content) => event(chunk({ content })));
  const raw = `${a}data: {"broken\n\n${b}${event(chunk({}, "stop"))}data: [DONE]\n\n`;
  const { response, gateway } = await ask(t, rawStream(raw));
  assert.equal(assemble((await readStream(response)).chunks).message["content"], "ab");
  const unreadable = gateway.diagnostics.find(({ event }) => event === "unreadable_events");
  assert.equal(unreadable?.["level"], "warn");
});

it("a whole reply to a streaming request is still streamed to the client", async (t) => {
  const { response } = await ask(t, status(200, completion({ content: "Whole." })));
  const { chunks, done } = await readStream(response);
  assertSound(chunks, "m");
  assert.ok(done);
  assert.equal(assemble(chunks).message["content"], "Whole.");
});

it("a client that pauses reading pauses the provider, and later gets everything", async (t) => {
  const piece = event(chunk({ content: "x".repeat(64 * 1024) }));
  const pieces = 1_000;
  let sent = 0;
  const m: Behaviour = async ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (; sent < pieces; sent += 1)
      if (!res.write(piece)) await new Promise((resolve) => res.once("drain", resolve));
    res.end(event(chunk({}, "stop")));
  };
  const gateway = await startWith(t, { m }, { timeouts: { idle_ms: 300 } });
  const { res } = await unread(gateway.url, "slow");
  // Longer than idle_ms: a slow client does not count as a silent provider.
  await settled(() => sent, "the provider to be held back", 500);
  assert.ok(sent < pieces / 2, `${sent} of ${pieces} pieces were sent although nobody reads`);
  let size = 0;
  let tail = "";
  res.on("data", (data: Buffer) => {
    size += data.length;
    tail = (tail + data.toString("latin1")).slice(-20);
  });
  res.resume();
  await within(new Promise((resolve) => res.once("end", resolve)), "the end of the stream");
  assert.ok(size > pieces * 64 * 1024);
  assert.ok(tail.endsWith("data: [DONE]\n\n"));
  assert.equal(sent, pieces);
});

it("a client that never reads again is cut off at total_ms", async (t) => {
  const total_ms = 123_456;
  const piece = event(chunk({ content: "x".repeat(64 * 1024) }));
  for (const [behaviour, stream] of [
    [endless("text/event-stream", piece), true],
    [status(200, completion({ content: "x".repeat(16_000_000) })), false],
  ] as const) {
    const time = timersOnCall(total_ms);
    const timeouts = { total_ms, leave_ms: 0 };
    const made = await startWith(t, { m: behaviour }, { timeouts }, { after: time.after });
    const { req } = await unread(made.url, "stuck", "m", stream);
    const { socket, closed } = made.provider.asked[0]!;
    await settled(() => socket.bytesWritten, "the provider to be held back", 300);
    time.fire();
    assert.equal((await made.accessOf("stuck"))["status"], 499);
    req.destroy();
    if (stream) await waitFor(closed, "the provider's connection to close");
  }
});
