// server.max_reply_bytes: how large a provider's whole reply may be, or what is put together of a
// stream for a client that wants it whole.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, readStream, user, startGateway } from "../../support/gateway.ts";
import {
  chunk,
  completion,
  status,
  stream,
  type Behaviour,
  startProvider,
} from "../../support/provider.ts";

const BOUND = 20_000;
const TEXT = "x".repeat(30_000);

/** A whole reply of exactly so many bytes. */
function replyOf(bytes: number): string {
  const text = JSON.stringify(completion({ content: "" }));
  return text.replace('"content":""', `"content":"${"y".repeat(bytes - text.length)}"`);
}

async function serving(t: TestContext, behaviour: Behaviour, model: object = {}) {
  const provider = await startProvider(t, behaviour);
  const gw = await startGateway(
    t,
    configFor(provider.url, ["m"], {
      server: { max_reply_bytes: BOUND },
      models: { m: model },
      retry: { max_retries: 0 },
    }),
  );
  const ask = (more: object = {}) => gw.chat({ model: "m", messages: user("hi"), ...more });
  /** The reply is refused; the operator is told why, the client is not. The breaker hears nothing. */
  const refused = async () => {
    const response = await ask();
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [503, "upstream_error"]);
    assert.doesNotMatch(error.message, /bytes/);
    const told = gw.diagnostics.map(({ detail }) => String(detail)).join();
    assert.ok(told.includes(`a reply of more than ${BOUND} bytes`), told);
    assert.deepEqual(gw.breakerOf("m"), ["closed", 0], "it is what was asked for");
  };
  return { ask, refused };
}

describe("server.max_reply_bytes", () => {
  it("passes a whole reply of exactly so many bytes, and refuses one more", async (t) => {
    const passing = await serving(t, status(200, replyOf(BOUND)));
    const { choices } = await json(await passing.ask());
    assert.ok(choices[0].message.content.length > BOUND - 1_000);
    const { refused } = await serving(t, status(200, replyOf(BOUND + 1)));
    await refused();
  });

  it("bounds a stream that is put together for a client that wants it whole", async (t) => {
    const large = stream([chunk({ content: TEXT }), chunk({}, "stop")]);
    const { refused } = await serving(t, large, { stream_only: true });
    await refused();
    const small = stream([chunk({ content: "Fine." }), chunk({}, "stop")]);
    const { ask } = await serving(t, small, { stream_only: true });
    assert.equal((await json(await ask())).choices[0].message.content, "Fine.");
  });

  it("does not bound a stream that the client reads", async (t) => {
    const { ask } = await serving(t, stream([chunk({ content: TEXT }), chunk({}, "stop")]));
    const { chunks, done } = await readStream(await ask({ stream: true }));
    assert.equal(chunks.map(({ choices }) => choices[0]?.delta["content"] ?? "").join(""), TEXT);
    assert.ok(done);
  });
});

it("a stream of more than 10,000 tool calls ends in the error, without [DONE]", async (t) => {
  const call = (at: number) =>
    chunk({ tool_calls: [{ index: at, id: `c${at}`, function: { name: "f" } }] });
  const calls = Array.from({ length: 10_001 }, (_, at) => call(at));
  const passing = await serving(t, stream([...calls.slice(1), chunk({}, "tool_calls")]));
  assert.ok((await readStream(await passing.ask({ stream: true }))).done);
  const { ask } = await serving(t, stream([...calls, chunk({}, "tool_calls")]));
  const { error, done } = await readStream(await ask({ stream: true }));
  assert.deepEqual([error?.code, done], ["upstream_error", false]);
});
