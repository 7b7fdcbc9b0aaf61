// The demo model through the gateway: everything that a client can ask a model for, answered
// offline, the same way every time.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createDemoTransport } from "../../../../src/extensions/providers/demo/transport.ts";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import { assemble, demo, json, readStream, startGateway, user } from "../../../support/gateway.ts";
import { within } from "../../../support/wait.ts";
import { piecesOf } from "../../../support/pieces.ts";

type Json = Record<string, any>;

const AUTH = { authorization: "Bearer sk-demo" };
const QUESTION = "What is the capital of Norway?";
const ASK = { model: "demo-chat", messages: user(QUESTION) };
const THINK = { model: "demo-reasoner", thinking: { type: "enabled" } };

const tool = (name: string, parameters?: object) => ({
  type: "function",
  function: { name, ...(parameters && { parameters }) },
});
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = [tool("get_time", CITY), tool("send_mail")];
const CALLS = { tools: TOOLS, tool_choice: "auto" };

async function bench(t: TestContext) {
  const gw = await startGateway(t, demo());
  /** The reply, which must be the same whole and streamed, with its usage. */
  async function ask(fields: object) {
    const { choices, usage, model } = await json(await gw.chat({ ...ASK, ...fields }, AUTH));
    const [{ message, finish_reason, logprobs }] = choices;
    const streaming = { stream: true, stream_options: { include_usage: true } };
    const { chunks, done } = await readStream(
      await gw.chat({ ...ASK, ...fields, ...streaming }, AUTH),
    );
    const other = assemble(chunks);
    const plain = ({ content, ...rest }: Json) => ({ ...rest, content: content || null });
    assert.deepEqual(plain(other.message), plain(message));
    assert.deepEqual(
      [done, other.finish_reason, other.logprobs, chunks.at(-1)!.usage],
      [true, finish_reason, logprobs?.content ?? [], usage],
    );
    const { prompt_tokens, completion_tokens, total_tokens } = usage;
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
    return {
      message,
      content: (message.content ?? "") as string,
      called: message.tool_calls?.map((call: Json) => call["function"].name),
      finish: finish_reason,
      logprobs,
      usage,
      model,
      chunks,
    };
  }
  return { ask };
}

describe("the demo model", { concurrency: 2 }, () => {
  it("speaks of the question, and says the same every time, in many pieces", async (t) => {
    const { ask } = await bench(t);
    const first = await ask({});
    assert.ok(first.content.includes(QUESTION));
    assert.deepEqual((await (await bench(t)).ask({})).message, first.message);
    assert.notEqual((await ask({ messages: user("And of Sweden?") })).content, first.content);
    assert.ok(first.chunks.length > 20);
  });

  it("answers the last question of a conversation, given as text or as parts", async (t) => {
    const { ask } = await bench(t);
    const before = [...user("First."), { role: "assistant", content: "Yes." }];
    const parts = ["Second ", "one?"].map((text) => ({ type: "text", text }));
    for (const content of ["Second one?", parts]) {
      const { content: answer } = await ask({ messages: [...before, { role: "user", content }] });
      assert.match(answer, /Second one\?/);
    }
  });

  it("says something well-formed to anything", async (t) => {
    const { ask } = await bench(t);
    const questions = ["", " ", "😀".repeat(200), `${"x".repeat(119)}😀`, "a\r\nb", "\u0000"];
    const blank = (count: number) => " ".repeat(count);
    const blanks = [`a${blank(998)}😀`, `${blank(999)}😀`, `x${blank(99_999)}y`];
    for (const question of [...questions, ...blanks, "“quoted”", "x".repeat(100_000)]) {
      const { content } = await ask({ messages: user(question) });
      assert.ok(content.length > 0);
      assert.doesNotMatch(content, /\p{Surrogate}/u, "half a character");
    }
    const { content } = await ask({ messages: user(`${blank(200_000)}Norway?`) });
    assert.match(content, /“Norway\?”/);
  });

  it("is the cheap one and the one that thinks, by alias", async (t) => {
    const { ask } = await bench(t);
    assert.equal((await ask({ model: "auto/chat" })).model, "demo-chat");
    assert.equal((await ask({ model: "auto/reasoning" })).model, "demo-reasoner");
  });

  it("thinks where it is asked to and can, and gives the same answer", async (t) => {
    const { ask } = await bench(t);
    const on = await ask(THINK);
    assert.match(on.message.reasoning_content, /Norway/);
    assert.ok(on.usage.completion_tokens_details.reasoning_tokens > 0);
    for (const fields of [{ model: "demo-reasoner" }, { thinking: THINK.thinking }]) {
      const { message, usage } = await ask(fields);
      assert.ok(!("reasoning_content" in message));
      assert.equal(message.content, on.message.content);
      assert.equal(usage.completion_tokens_details.reasoning_tokens, 0);
    }
  });

  for (const [choice, called] of [
    [undefined, undefined],
    ["none", undefined],
    ["auto", ["get_time"]],
    ["required", ["get_time"]],
    [{ type: "function", function: { name: "send_mail" } }, ["send_mail"]],
  ] as const)
    it(`calls ${called ?? "no tool"} with tool_choice ${JSON.stringify(choice)}`, async (t) => {
      const { ask } = await bench(t);
      const reply = await ask({ tools: TOOLS, tool_choice: choice });
      assert.deepEqual([reply.called, reply.finish], [called, called ? "tool_calls" : "stop"]);
    });

  it("fills arguments by their schema, and has an id for each conversation", async (t) => {
    const { ask } = await bench(t);
    const [call] = (await ask(CALLS)).message.tool_calls;
    assert.deepEqual(JSON.parse(call.function.arguments), { city: "Oslo" });
    assert.match(call.id, /^call_[0-9a-f]{24}$/);
    const [other] = (await ask({ ...CALLS, messages: user("And in Rome?") })).message.tool_calls;
    assert.notEqual(other.id, call.id);
    const bare = await ask({ tools: [tool("f")], tool_choice: "required" });
    assert.equal(bare.message.tool_calls[0].function.arguments, "{}");
  });

  it("answers a tool's result in text; if a call is required, by another call", async (t) => {
    const { ask } = await bench(t);
    const { message } = await ask(CALLS);
    const [{ id }] = message.tool_calls;
    const result = { role: "tool", tool_call_id: id, content: "It is 14:05." };
    const messages = [...user(QUESTION), message, result];
    const answer = await ask({ ...CALLS, messages });
    assert.match(answer.content, /It is 14:05\./);
    const again = await ask({ ...CALLS, messages, tool_choice: "required" });
    assert.notEqual(again.message.tool_calls[0].id, id);
    const next = await ask({ ...CALLS, messages: [...messages, ...user("And in Rome?")] });
    assert.deepEqual(next.called, ["get_time"], "a new question is a new turn");
  });

  it("writes JSON where it is asked for", async (t) => {
    const { ask } = await bench(t);
    const { content } = await ask({ response_format: { type: "json_object" } });
    assert.equal(JSON.parse(content).question, QUESTION);
    const format = (more: object) => ({
      response_format: { type: "json_schema", json_schema: { name: "x", ...more } },
    });
    const written = await ask(format({ schema: CITY }));
    assert.deepEqual(JSON.parse(written.content), { city: "Oslo" });
    JSON.parse((await ask(format({}))).content);
  });

  for (const top of [0, 1, 20])
    it(`gives log probabilities, with top_logprobs ${top}`, async (t) => {
      const { ask } = await bench(t);
      const messages = user("Grüße, 😀!");
      const given = await ask({ messages, logprobs: true, top_logprobs: top });
      const tokens: Json[] = given.logprobs.content;
      assert.equal(tokens.map(({ token }) => token).join(""), given.content);
      assert.equal(tokens.length, given.usage.completion_tokens);
      for (const { token, logprob, bytes, top_logprobs } of tokens) {
        assert.deepEqual(bytes, [...Buffer.from(token)]);
        assert.equal(new Set(top_logprobs.map((each: Json) => each["token"])).size, top);
        if (top > 0) assert.deepEqual(top_logprobs[0], { token, logprob, bytes });
        const order = top_logprobs.map((each: Json) => each["logprob"]);
        assert.deepEqual(
          order,
          order.toSorted((a: number, b: number) => b - a),
        );
      }
    });

  it("ends before the first of the sequences to stop at", async (t) => {
    const { ask } = await bench(t);
    const full = (await ask({})).content;
    const upTo = (text: string) => full.slice(0, full.indexOf(text));
    for (const [stop, expected] of [
      [["same answer", "demo model"], upTo("demo model")],
      [["offline"], full],
      ["You said", ""],
    ] as const) {
      const { content, finish } = await ask({ stop });
      assert.deepEqual([content, finish], [expected, "stop"]);
    }
  });

  it("is cut off by max_tokens, in its thoughts, its text and its arguments", async (t) => {
    const { ask } = await bench(t);
    for (const fields of [{}, THINK, CALLS]) {
      const full = await ask(fields);
      const all = full.usage.completion_tokens;
      assert.deepEqual((await ask({ ...fields, max_tokens: all })).message, full.message);
      for (const max_tokens of [2, all - 1]) {
        const { finish, usage } = await ask({ ...fields, max_tokens });
        assert.deepEqual([finish, usage.completion_tokens], ["length", max_tokens]);
      }
    }
    const { message } = await ask({ ...THINK, max_tokens: 3 });
    assert.equal(message.content, "");
  });

  it("counts more tokens for longer prompts, and as cached what a conversation repeats", async (t) => {
    const { ask } = await bench(t);
    const count = async (fields: object) => (await ask(fields)).usage;
    const bare = await count({});
    assert.equal(bare.prompt_cache_hit_tokens, 0);
    const so = [...user(QUESTION), { role: "assistant", content: "Oslo." }];
    for (const fields of [{ tools: TOOLS }, { messages: so }]) {
      const { prompt_tokens, prompt_cache_hit_tokens } = await count(fields);
      assert.ok(prompt_tokens > bare.prompt_tokens);
      assert.equal(prompt_cache_hit_tokens, 0);
    }
    const grown = await count({ messages: [...so, ...user("And of Sweden?")] });
    assert.equal(grown.prompt_cache_hit_tokens, (await count({ messages: so })).prompt_tokens);
  });
});

describe("the demo transport, aborted", () => {
  const send = (cancel: Cancel, stream: boolean) =>
    createDemoTransport({ paceMs: 3_600_000 })("http://demo.invalid", {
      method: "POST",
      headers: {},
      body: JSON.stringify({ ...ASK, stream }),
      cancel,
      redirect: "manual",
      connectMs: 1_000,
      sent: () => undefined,
    });
  const reason = new Error("the client has left");

  it("before the request: it is rejected with the signal's reason", async () => {
    const cancel = new Cancel();
    cancel.abort(reason);
    await assert.rejects(send(cancel, false), reason);
  });

  it("in a pause of a stream: the body throws the signal's reason", async () => {
    const abort = new Cancel();
    const { body } = await send(abort, true);
    const reading = piecesOf(body!);
    assert.match(Buffer.from((await reading.next()).value!).toString(), /"content":"You"/);
    const next = reading.next();
    abort.abort(reason);
    await within(assert.rejects(next, reason), "the end of the pause");
  });

  it("a whole reply is not paced", async () => {
    const { body } = await send(new Cancel(), false);
    const { value } = await within(piecesOf(body!).next(), "the reply");
    assert.match(Buffer.from(value!).toString(), /"finish_reason":"stop"/);
  });
});
