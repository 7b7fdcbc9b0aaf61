// Failed recoveries: what the breaker counts for which model, which model the operator's log names,
// and what the books and the client see.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { bufferAttempt } from "../../../../src/extensions/routing/recovery/buffered.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import type { Attempt } from "../../../../src/core/routing/attempt.ts";
import { startWith, user } from "../../../support/gateway.ts";
import {
  askScene,
  broken,
  goesOn,
  inTurn,
  PRICES,
  REST,
  seen,
  SHOWN,
  texts,
  WHOLE,
} from "../../../support/recovered.ts";
import { chunk, silent, status, stream, type Behaviour } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";

const refuses = status(500, { error: { message: "no" } });
const two = (over: object = {}) => ({
  models: { m: { prefill: "plain" }, n: { prefill: "plain" } },
  aliases: { x: { models: ["m", "n"], recovery: "continue" } },
  ...over,
});

describe("a model that refuses the beginning of its answer", () => {
  const filtered = { error: { message: "content_filter", code: "content_filter" } };
  const REFUSALS: Readonly<Record<string, Behaviour>> = {
    "400": status(400, { error: { message: "prefill is not supported" } }),
    "413": status(413, { error: { message: "too large" } }),
    "422": status(422, { error: { message: "unprocessable" } }),
    "content filter": stream([filtered], "eof"),
  };
  for (const [name, refusal] of Object.entries(REFUSALS))
    it(`with ${name} lets the next candidate be tried`, async (t) => {
      const models = { m: inTurn(broken(texts(SHOWN)), refusal), n: goesOn };
      const config = two({ retry: { max_retries: 2, backoff_ms: 1 } });
      const { answer, attempts, gateway } = await askScene(t, { models, config, model: "x" });
      const got = seen(answer);
      assert.deepEqual([got.text, got.error, got.models], [WHOLE, undefined, ["m", "n"]]);
      assert.deepEqual(attempts, ["m upstream_error", "m upstream_error", "n completed"]);
      assert.deepEqual(gateway.breakerOf("m"), ["closed", 1], "the break alone counts");
    });
});

describe("a held reply that is complete", () => {
  const batches: (readonly Part[])[] = ["The ", "quick ", "fox"].map((text) => [
    { type: "text", text },
  ]);
  const deliverAll: Attempt = async (_chat, _serving, deliver) => {
    for (const parts of batches) assert.equal(deliver(parts), undefined);
  };
  const deliverTo = (
    deliver: (parts: readonly Part[]) => Promise<void>,
    cancel = new Cancel(),
    attempt = deliverAll,
  ) => {
    const serving = { model: { provider: { maxReplyBytes: 1_000 } } } as never;
    const held = bufferAttempt(attempt);
    return held({} as never, serving, deliver, { cancel, retain: () => undefined } as never);
  };

  it("is delivered batch by batch, each once the client has taken the previous one", async () => {
    const events: unknown[] = [];
    await deliverTo(async (parts) => {
      events.push(parts);
      await new Promise(setImmediate);
      events.push("taken");
    });
    const expected = batches.flatMap((parts) => [parts, "taken"]);
    assert.deepEqual(events, expected);
  });

  it("or endless, is rejected at the first part beyond max_reply_bytes", async () => {
    let delivered = 0;
    const endless: Attempt = async (_chat, _serving, deliver) => {
      for (; delivered < 100; delivered += 1) deliver([{ type: "text", text: "x".repeat(100) }]);
    };
    const rejected = deliverTo(async () => assert.fail("shown"), new Cancel(), endless);
    await assert.rejects(rejected, { code: "upstream_error" });
    assert.equal(delivered, 5, "another 100 bytes count for each part");
  });

  it("is cut with an error at the end of the request's time if its client reads slowly", async () => {
    const cancel = new Cancel();
    const delivered = deliverTo(async () => {
      cancel.abort(new ProviderError("upstream_timeout", "not finished within total_ms"));
      throw new Error("The operation was aborted");
    }, cancel);
    await assert.rejects(delivered, { code: "upstream_timeout" });
  });
});

describe("a recovery that ends in an error", () => {
  it("reports each break, and the error with the model that it belongs to", async (t) => {
    const models = {
      m: inTurn(broken(texts(SHOWN), "stall"), refuses),
      n: broken(texts(" fox jumps")),
    };
    const lab = { timeouts: { idle_ms: 40 } };
    const config = two({ retry: { max_recoveries: 1 }, providers: { lab } });
    const { answer, gateway, settlement } = await askScene(t, { models, config, model: "x" });
    const got = seen(answer);
    assert.deepEqual([got.text, got.error], [`${SHOWN} fox jumps`, "upstream_timeout"]);
    assert.deepEqual(
      gateway.diagnostics.map(({ event, model, code }) => `${event} ${model} ${code}`),
      [
        "reply_broken m upstream_timeout",
        "attempt_failed m upstream_error",
        "reply_broken n upstream_error",
        "reply_cut m upstream_timeout",
      ],
    );
    const { modelServed, price, recovery } = settlement;
    assert.deepEqual([modelServed, price?.output, recovery], ["m", PRICES.m.output, "failed"]);
    const outputs = settlement.attempts.map(({ share }: { share?: any }) => share?.prices.output);
    assert.deepEqual(outputs, [PRICES.m.output, undefined, PRICES.n.output]);
  });

  it("counts as continued if the client left in the middle of the continuation", async (t) => {
    const rest = stream([chunk({ content: REST })], "open");
    for (const [leaves, outcome] of [
      [REST, "continued"],
      [SHOWN.slice(-5), "failed"],
    ] as const) {
      const second = outcome === "continued" ? rest : silent;
      const { provider, access, chat } = await startWith(
        t,
        { m: inTurn(broken(texts(SHOWN)), second) },
        { models: { m: { recovery: "continue", prefill: "plain" } }, timeouts: { leave_ms: 0 } },
      );
      const leaving = new AbortController();
      const body = { model: "m", stream: true, messages: user("hi") };
      const answer = await chat(body, {}, leaving.signal);
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; !text.includes(leaves); ) {
        const { done, value } = await reader.read();
        assert.ok(!done, `the stream ended without ${leaves}: ${text}`);
        text += value;
      }
      await waitFor(() => provider.asked.length === 2, "the second attempt");
      leaving.abort();
      await reader.closed.catch(() => undefined);
      await waitFor(() => access.length > 0, "the access log's line");
      const { status: code, recovery } = access[0]!;
      assert.deepEqual([code, recovery], [499, outcome]);
    }
  });
});
