// The limits of a process: connections, and the bytes of bodies and replies that it holds.

import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import tls from "node:tls";
import type { Part } from "../../../../src/core/openai/parts.ts";
import type { Complete } from "../../../../src/core/routing/fallback.ts";
import { countingKept } from "../../../../src/extensions/bounds/capacity/retained.ts";
import { createCapacity } from "../../../../src/extensions/bounds/capacity/index.ts";
import { connectionShare } from "../../../../src/extensions/bounds/capacity/shares.ts";
import { certificate } from "../../../support/certificate.ts";
import { KEY, startWith, user } from "../../../support/gateway.ts";
import { chunk, held, speak, stream, type Behaviour } from "../../../support/provider.ts";
import { assertError, parseAnswer } from "../../../support/raw.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { post } from "../../apis/post.ts";

const KB = 1024;

/** The head of a chat request whose body has this length. */
const headOf = (length: number, more = "") =>
  "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
  `Authorization: Bearer ${KEY}\r\n${more}Content-Length: ${length}\r\n\r\n`;
const HI = { model: "m", messages: user("hi"), stream: true };

/** A connection, over TLS if the gateway uses it, and the text received on it. */
async function connect(t: TestContext, url: string) {
  const { port, protocol } = new URL(url);
  const options = { port: Number(port), host: "127.0.0.1", rejectUnauthorized: false };
  const isSecure = protocol === "https:";
  const socket = isSecure ? tls.connect(options) : net.connect(options);
  let text = "";
  socket.on("data", (data: Buffer) => (text += data.toString("latin1")));
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  await within(once(socket, isSecure ? "secureConnect" : "connect"), "the connection");
  return { socket, text: () => text };
}

async function refusedAsOverload(answer: Response): Promise<void> {
  assert.equal(answer.status, 503);
  assert.match(await answer.text(), /"server_overloaded"/);
}

describe("bytes in hand", () => {
  it("of a single exchange are not bounded", () => {
    const { retain } = createCapacity(Infinity, 100);
    assert.equal(retain(90, 0), undefined);
    assert.equal(retain(90, 90), undefined);
    assert.match(String(retain(1, 0)), /too many large requests/);
    assert.equal(retain(-180, 180), undefined);
    assert.equal(retain(60, 0), undefined);
  });

  const body = (size: number) =>
    JSON.stringify({ model: "m", messages: user("x".repeat(size)), stream: true });
  const bound = { server: { max_bytes_in_flight: 100 * KB } };

  /** A gateway with 60 of 100 KB in flight, for a request that is answered at `release`. */
  async function crowded(t: TestContext, behaviours: Record<string, Behaviour> = {}, over = {}) {
    const { behaviour, finish } = held();
    const all = { m: behaviour, ...behaviours };
    const { provider, ...gateway } = await startWith(t, all, { ...bound, ...over });
    const first = gateway.chat(body(60 * KB));
    await provider.nth(0);
    const release = async (): Promise<void> => {
      finish();
      assert.match(await within((await first).text(), "the first reply"), /\[DONE\]/);
    };
    return { ...gateway, provider, finish, release };
  }

  it("reject a request by its Content-Length before its body arrives: 503 with Retry-After", async (t) => {
    const { url, chat, provider, accessOf, finish, release } = await crowded(t);
    const second = await connect(t, url);
    second.socket.write(headOf(60 * KB, "Expect: 100-continue\r\nX-Request-Id: crowded\r\n"));
    await waitFor(() => second.text().includes("}}"), "the refusal");
    const refused = parseAnswer(second.text());
    assertError(refused, 503, "server_overloaded");
    const { "retry-after": after, "x-request-id": id } = refused.headers;
    assert.deepEqual([after, id], ["1", "crowded"]);
    second.socket.destroy();
    assert.equal((await accessOf("crowded"))["status"], 503);

    await release();
    const third = chat(body(60 * KB));
    await provider.nth(1);
    finish();
    assert.match(await within((await third).text(), "the third reply"), /\[DONE\]/);
  });

  it("are still counted after a rejection that waits behind another response", async (t) => {
    const two = held();
    const { url, chat, provider, release } = await crowded(t, { n: two.behaviour });
    const small = JSON.stringify({ model: "n", messages: user("hi"), stream: true });
    const pipelined = await connect(t, url);
    pipelined.socket.write(`${headOf(small.length)}${small}${headOf(1000 * KB)}`);
    await provider.nth(1);
    await refusedAsOverload(await within(chat(body(60 * KB)), "the refusal"));
    pipelined.socket.destroy();
    two.finish();
    await release();
  });

  it("include held streams and whole replies, and their rejection counts as no failure", async (t) => {
    const over = { aliases: { held: { models: ["large"], recovery: "hold" } } };
    const { chat, release } = await crowded(t, { large: speak("y".repeat(60 * KB)) }, over);
    await refusedAsOverload(await chat({ model: "held", messages: user("hi"), stream: true }));
    const ask = () => chat({ model: "large", messages: user("hi") });
    await refusedAsOverload(await ask());
    await release();
    assert.equal((await ask()).status, 200);
  });

  it("count received bytes, not announced ones: a client that sends nothing blocks nobody", async (t) => {
    const gateway = await startWith(t, { m: speak("Hi.") }, bound);
    const idle = await connect(t, gateway.url);
    idle.socket.write(`${headOf(90 * KB)}{`);
    const answer = await gateway.chat({ model: "m", messages: user("x".repeat(90 * KB)) });
    assert.equal(answer.status, 200);
  });

  it("reject a chunked body once it is too large", async (t) => {
    const { url, release } = await crowded(t);
    const chunked = await connect(t, url);
    chunked.socket.write(
      headOf(0).replace("Content-Length: 0", "Transfer-Encoding: chunked") +
        `f000\r\n${" ".repeat(0xf000)}\r\n`,
    );
    await waitFor(() => chunked.text().includes("}}"), "the refusal");
    assert.equal(parseAnswer(chunked.text()).status, 503);
    chunked.socket.destroy();
    await release();
  });
});

describe("what a stream retains", () => {
  const call = (text: string, id?: string) =>
    chunk({ tool_calls: [{ index: 0, id, function: { name: id, arguments: text } }] });
  const over = { apis: ["messages"], server: { max_reply_bytes: 100 * KB } };

  it("for the Messages API is bounded like a whole reply: endless arguments end the stream", async (t) => {
    const pieces = Array(20).fill(call("x".repeat(10 * KB)));
    const m = stream([call('{"a":"', "f"), ...pieces], "open");
    const gateway = await startWith(t, { m }, over);
    const request = { model: "m", max_tokens: 9, stream: true, messages: user("hi") };
    const answer = await post(`${gateway.url}/v1/messages`, request);
    const text = await within(answer.text(), "the end of the stream");
    assert.match(text, /event: error\n/);
    assert.doesNotMatch(text, /message_stop/);
  });

  /** Delivers these parts to a request with these fields. Returns how many bytes it retains. */
  function play(parts: readonly Part[], fields: object): number {
    let kept = 0;
    const serving = { model: { provider: { maxReplyBytes: 16 * 1024 * KB } } };
    const complete = countingKept(((_chat, _models, deliver) =>
      deliver(parts, serving as never)) as Complete);
    const context = { retain: (bytes: number) => (kept += bytes) };
    complete(fields as never, [], () => undefined, context as never);
    return kept;
  }
  const text: Part = { type: "text", text: "y" };
  const STREAM = { stream: true, native: {} };

  it("has at most 10,000 blocks, streamed and whole", () => {
    const thought: Part = { type: "reasoning", text: "x" };
    const alternating = Array.from({ length: 5_001 }, () => [thought, text]).flat();
    for (const stream of [false, true]) {
      assert.throws(() => play(alternating, { stream, native: {} }), /more than 10000 blocks/);
      play(alternating.slice(2), { stream, native: {} });
      play(alternating, { stream });
      play(Array(20_000).fill(text), { stream, native: {} });
    }
  });

  it("for the Messages API is hidden thoughts, and all from the first call on", () => {
    const thought: Part = { type: "reasoning", text: "x" };
    const called: Part = { type: "tool_call", call: 0, id: "c", name: "f" };
    const args: Part = { type: "tool_arguments", call: 0, text: "{}" };
    const native = { dialect: "anthropic" };
    const hidden = { wantsThinking: true, showThinking: false };
    // 512 bytes count for each block.
    for (const [parts, fields, expected] of [
      [[thought, text, text], {}, 2 * 512],
      [[thought, text], { wantsThinking: true, showThinking: true }, 2 * 512],
      [[thought, text], hidden, 2 * 512 + 2],
      [[text, called, args, text], {}, 3 * 512 + 3],
    ] as const)
      assert.equal(play(parts, { stream: true, native, ...fields }), expected);
    assert.equal(play([text, text], { stream: true, native: { dialect: "responses" } }), 512 + 2);
    assert.equal(play([text, text], { stream: false, native: { dialect: "responses" } }), 0);
  });

  it("counts log probabilities", () => {
    const token = { token: "x", logprob: -1, bytes: null, top_logprobs: [] };
    const kept = play([{ ...text, logprobs: Array(200).fill(token) }], STREAM);
    assert.ok(kept > 200 * 50, `${kept} bytes`);
  });

  it("counts the provider's own events from the first retained one", () => {
    const own = (type: string): Part => ({ type: "native", event: { type }, content: false });
    const keptOf = (...types: string[]) => play(types.map(own), STREAM);
    assert.deepEqual([keptOf("ping"), keptOf("message_delta", "ping")], [0, 39]);
    assert.equal(keptOf("content_block_start"), 512);
  });

  it("counts for an unfinished event: a request without room gets an error", async (t) => {
    const m: Behaviour = ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`data: {"x":"${"y".repeat(300 * KB)}`);
    };
    const { chat } = await startWith(t, { m }, { server: { max_bytes_in_flight: 400 * KB } });
    const ask = () => chat({ model: "m", messages: user("hi"), stream: true });
    const [first, second] = [ask(), ask()];
    await refusedAsOverload(await within(Promise.race([first, second]), "a refusal"));
  });
});

describe("open connections", () => {
  it("are limited by half of the open files that the system allows, if it states them", (t) => {
    for (const [stated, limit] of [
      ["Max open files            1024                 4096", 448],
      ["Max open files            100                  4096", 1],
      ["Max open files            unlimited            unlimited", Infinity],
      [undefined, Infinity],
    ] as const) {
      const reading = () => stated ?? assert.fail("there is no /proc");
      const { mock } = t.mock.method(fs, "readFileSync", reading);
      syncBuiltinESMExports();
      try {
        assert.equal(connectionShare(), limit);
      } finally {
        mock.restore();
        syncBuiltinESMExports();
      }
    }
  });

  /** A gateway with a limit on connections, one of which has an unfinished stream. */
  async function busyGateway(t: TestContext, server: object) {
    const { behaviour, finish } = held();
    const { url, provider } = await startWith(t, { m: behaviour }, { server });
    const { socket, text } = await connect(t, url);
    const body = JSON.stringify(HI);
    socket.write(headOf(body.length) + body);
    await provider.nth(0);
    const finished = async () => {
      finish();
      await waitFor(() => text().includes("[DONE]"), "the busy connection's reply");
    };
    return { url, finished };
  }

  it("beyond the limit close the one that has been idle longest, never a busy one", async (t) => {
    const { url, finished } = await busyGateway(t, { max_connections: 3 });
    const closed: number[] = [];
    for (const name of [1, 2, 3, 4]) {
      const { socket } = await connect(t, url);
      socket.on("close", () => closed.push(name));
    }
    await waitFor(() => closed.length >= 2, "two connections to be closed");
    assert.deepEqual(closed, [1, 2]);
    await finished();
  });

  it("count once each under TLS too, so that a busy one is not taken for idle", async (t) => {
    const server = { max_connections: 2, tls: certificate() };
    const { url, finished } = await busyGateway(t, server);
    const { socket } = await connect(t, url);
    assert.equal(socket.destroyed, false);
    await connect(t, url);
    await waitFor(() => socket.destroyed, "the idle connection to be closed");
    await finished();
  });
});
