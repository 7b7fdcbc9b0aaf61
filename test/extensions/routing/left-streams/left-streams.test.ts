// Clients that leave a stream: how long the provider is still read (`leave_ms`), what ends that
// earlier, what is billed, and which model the books name; and how long usage may take after a
// finish (`closing_ms`).

import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import {
  costOf,
  COUNTED,
  only,
  PRICE,
  priced,
  settled,
  usageRecords,
  type Line,
} from "../../../support/books.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { merge, user, type RunningGateway } from "../../../support/gateway.ts";
import {
  chunk,
  endless,
  event,
  silent,
  speak,
  stream,
  usageChunk,
  type Asked,
  type Behaviour,
} from "../../../support/provider.ts";
import { createLeftStreams } from "../../../../src/extensions/routing/left-streams/index.ts";
import { settled as standingStill, waitFor, within } from "../../../support/wait.ts";

const NO_END = 600_000;
const LONG = { timeouts: { leave_ms: NO_END, closing_ms: NO_END } };
const END = event(chunk({}, "stop")) + event(usageChunk());

/** Sends one word, and then what the test sends. */
const word = stream([chunk({ content: "Once" })], "open");

/** A client of a stream. */
function open(gw: RunningGateway, body: object = {}) {
  const client = new AbortController();
  const request = { model: "m", stream: true, messages: user("Say something."), ...body };
  const answer = gw.chat(request, {}, client.signal);
  answer.catch(() => undefined);
  return {
    /** Reads until this text has arrived, and then stops reading. */
    async has(part: string): Promise<void> {
      const reader = (await answer).body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; !text.includes(part); ) {
        const { done, value } = await reader.read();
        assert.ok(!done, `the stream ended without ${part}: ${text}`);
        text += value;
      }
      reader.releaseLock();
    },
    /** Leaves. Resolves when the gateway has noticed. */
    async leave(): Promise<void> {
      const before = gw.gateway.report().inFlight;
      client.abort();
      await waitFor(
        () => gw.gateway.report().inFlight < before,
        "the gateway to know that the client has left",
      );
    },
  };
}

/** A model whose provider is read without a time limit, and a client that has left its stream. */
async function afterLeaving(t: TestContext, over: object = {}, behaviour = word) {
  const models = { m: behaviour, n: speak("Fine.") };
  const scene = await priced(t, models, merge(LONG, over) as object);
  const client = open(scene.gw);
  await client.has("content");
  const asked = await scene.provider.nth(0);
  await client.leave();
  return { ...scene, asked };
}

const closed = (asked: Asked, what = "the provider's connection to close") =>
  waitFor(() => asked.closed() || asked.socket.destroyed, what);
const figures = (settle: Line) =>
  Object.fromEntries(Object.keys(BILLED).map((name) => [name, settle[name]]));
const BILLED = {
  status: "cancelled",
  http_status: 499,
  usage_source: "provider",
  usage: COUNTED,
  cost: costOf(COUNTED, PRICE),
};

describe("a client that leaves a stream after text was delivered", { concurrency: 4 }, () => {
  it("pays by figures that arrive within leave_ms; the provider is read until then, and the slots are free", async (t) => {
    const bounds = { server: { max_in_flight: 1 }, accounts: { acme: { max_in_flight: 1 } } };
    const { dir, gw, asked } = await afterLeaving(t, bounds);
    assert.equal((await gw.chat({ model: "n", messages: user("hi") })).status, 200);
    const before = await settled(dir);
    assert.deepEqual([before.length, asked.closed()], [1, false], "the books wait");
    asked.res.write(END); // neither [DONE] nor an end
    await closed(asked);
    const [, settle] = await settled(dir, 2);
    assert.deepEqual(figures(settle!), BILLED);
    const { finish_reason, model_served, error_code, attempts } = settle!;
    assert.deepEqual([finish_reason, model_served, error_code], ["stop", "m", null]);
    assert.equal(attempts[0].outcome, "completed", "the provider has finished");
    const line = await waitFor(() => gw.access[1], "the line of the access log");
    assert.equal(line["status"], 499);
    assert.deepEqual(gw.diagnostics, []);
  });

  it("is settled at once if the figures arrived before it left", async (t) => {
    const { dir, gw, provider } = await priced(t, { m: word }, LONG);
    const client = open(gw);
    const asked = await provider.nth(0);
    asked.res.write(END + event(chunk({ content: " more" })) + event(usageChunk()));
    await client.has("more");
    await client.leave();
    await closed(asked);
    assert.deepEqual(figures((await settled(dir))[0]!), BILLED);
  });

  it("pays an estimate after leave_ms: text that arrived meanwhile counts, the connection closes", async (t) => {
    const leave_ms = 400;
    const { dir, gw, provider } = await priced(t, { m: word }, { timeouts: { leave_ms } });
    const client = open(gw);
    await client.has("Once");
    const asked = await provider.nth(0);
    const left = performance.now();
    await client.leave();
    asked.res.write(event(chunk({ content: "x".repeat(396) })));
    await closed(asked);
    const ms = performance.now() - left;
    assert.ok(ms >= leave_ms - 20, `closed after ${ms} ms, although it is read on for ${leave_ms}`);
    const [settle] = await settled(dir);
    const { status, usage_source, usage, attempts, cost } = settle!;
    const ended = [status, usage_source, usage.completion_tokens, attempts[0].outcome, cost];
    assert.deepEqual(ended, ["cancelled", "estimated", 100, "cancelled", costOf(usage, PRICE)]);
  });

  const piece = event(chunk({ content: "x".repeat(64 * 1024) }));
  const flood = endless("text/event-stream", piece);
  type Row = [
    what: string,
    over: object,
    does?: ((asked: Asked) => void) | undefined,
    from?: Behaviour,
  ];
  const CUT: readonly Row[] = [
    ["its provider's own leave_ms is 0", { providers: { lab: { timeouts: { leave_ms: 0 } } } }],
    ["its provider breaks off", {}, ({ socket }) => socket.resetAndDestroy()],
    ["the request's total_ms is over", { timeouts: { total_ms: 800 } }],
    ["its provider floods", {}, undefined, flood],
  ];
  for (const [what, over, does, from] of CUT)
    it(`pays an estimate at once if ${what}, and no cut reply is reported`, async (t) => {
      const { dir, gw, asked } = await afterLeaving(t, over, from);
      does?.(asked);
      await closed(asked);
      const { status, http_status, error_code, usage_source } = (await settled(dir))[0]!;
      assert.deepEqual([status, http_status, error_code], ["cancelled", 499, null]);
      assert.equal(usage_source, "estimated");
      assert.deepEqual(gw.diagnostics, []);
    });

  it("does not block the provider if it had stopped reading, and the figures count", async (t) => {
    let written = 0;
    let left = false;
    const behaviour: Behaviour = async ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      while (!left) {
        written += 1;
        if (!res.write(piece)) await once(res, "drain");
      }
      res.end(END + event("[DONE]"));
    };
    const { dir, gw } = await priced(t, { m: behaviour }, LONG);
    const client = open(gw);
    await waitFor(() => written > 0, "the provider to begin");
    await standingStill(() => written, "the provider to be held back", 300);
    left = true;
    await client.leave();
    const [settle] = await within(settled(dir), "the settle line");
    assert.deepEqual(figures(settle!), BILLED);
  });

  it("is settled at once, before the books close, if the gateway closes", async (t) => {
    const { dir, gw, asked } = await afterLeaving(t);
    await within(gw.gateway.close(NO_END), "the gateway to close");
    const { settle } = only(dir);
    assert.deepEqual([settle["status"], settle["usage_source"]], ["cancelled", "estimated"]);
    assert.equal(usageRecords(dir).length, 1);
    await closed(asked);
  });
});

describe("a client that leaves before anything was delivered", { concurrency: 4 }, () => {
  const role = stream([chunk({ role: "assistant", content: "" })], "open");
  const thinking = stream([chunk({ reasoning_content: "Hm." })], "open");
  const CASES: [name: string, behaviour: Behaviour, streaming: boolean][] = [
    ["silence", silent, true],
    ["a role without text", role, true],
    ["thinking that it does not get to see", thinking, true],
    ["a whole reply", silent, false],
  ];
  for (const [name, behaviour, streaming] of CASES)
    it(`${name}: the provider is disconnected at once, whatever leave_ms is`, async (t) => {
      const { gw, provider, dir } = await priced(t, { m: behaviour }, LONG);
      const client = open(gw, { stream: streaming });
      const asked = await provider.nth(0);
      await client.leave();
      await closed(asked);
      const { status, usage_source, usage, cost } = (await settled(dir))[0]!;
      // The provider has the prompt: 14 bytes, four per token.
      assert.deepEqual([status, usage_source, usage.prompt_tokens], ["cancelled", "estimated", 4]);
      assert.ok(Number(cost) > 0);
    });
});

it("usage that arrives within closing_ms counts; a provider's setting overrides the general one", async (t) => {
  const finished = stream([chunk({ content: "Once" }), chunk({}, "stop")], "open");
  const lab = { timeouts: { closing_ms: NO_END } };
  const over = { timeouts: { closing_ms: 1 }, providers: { lab } };
  const { dir, gw, provider } = await priced(t, { m: finished }, over);
  await open(gw).has("Once");
  (await provider.nth(0)).res.end(event(usageChunk()));
  const expected = { ...BILLED, status: "completed", http_status: 200 };
  assert.deepEqual(figures((await settled(dir))[0]!), expected);
});

it("abandoned streams are read only up to a limit, and not while the gateway closes", () => {
  const left = createLeftStreams(createFakeClock());
  const ended: string[] = [];
  const add = (name: string) => left.add(NO_END, 2, () => ended.push(name));
  const forgetFirst = add("first");
  add("second");
  add("third");
  assert.deepEqual(ended, ["third"], "no room to keep reading it");
  forgetFirst();
  add("fourth");
  left.close();
  add("fifth");
  assert.deepEqual(ended, ["third", "second", "fourth", "fifth"]);
});
