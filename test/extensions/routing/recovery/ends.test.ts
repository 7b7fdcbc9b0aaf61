// What a recovery that fails says: of whom the breaker counts what, which model the operator is
// told of, and what the books and the client's side see.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { bufferAttempt } from "../../../../src/extensions/routing/recovery/buffered.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { configFor, KEY, startGateway, user } from "../../../support/gateway.ts";
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
import {
  chunk,
  silent,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";
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
    it(`with ${name} lets the next candidate be asked`, async (t) => {
      const scene = await askScene(t, {
        models: { m: inTurn(broken(texts(SHOWN)), refusal), n: goesOn },
        config: two({ retry: { max_retries: 2, backoff_ms: 1 } }),
        model: "x",
      });
      const got = seen(scene.answer);
      assert.deepEqual([got.text, got.error, got.models], [WHOLE, undefined, ["m", "n"]]);
      assert.deepEqual(
        scene.settlement.attempts.map(({ model, outcome }) => `${model} ${outcome}`),
        ["m upstream_error", "m upstream_error", "n completed"],
      );
      assert.deepEqual(scene.gateway.breakerOf("m"), ["closed", 1], "the break alone counts");
    });
});

describe("the end of the request's time", () => {
  const timeout = new ProviderError("upstream_timeout", "not finished within total_ms");
  const text = { type: "text", text: "The quick brown fox" } as const;
  const serving = { model: { provider: { maxReplyBytes: 1_000 } } } as never;

  it("is said of a held reply whose client reads slowly", async () => {
    const cancel = new Cancel();
    const attempt = bufferAttempt(async (_chat, _serving, deliver) => {
      await deliver([text]);
    });
    const deliver = (): Promise<never> => {
      cancel.abort(timeout);
      return Promise.reject(new Error("The operation was aborted"));
    };
    const options = { cancel, retain: () => undefined } as never;
    await assert.rejects(attempt({} as never, serving, deliver, options), {
      code: "upstream_timeout",
    });
  });
});

describe("a held reply that has ended", () => {
  it("is delivered batch by batch, each when the client has taken the one before", async () => {
    const batches: (readonly Part[])[] = ["The ", "quick ", "fox"].map((text) => [
      { type: "text", text },
    ]);
    const attempt = bufferAttempt(async (_chat, _serving, deliver) => {
      for (const parts of batches) assert.equal(deliver(parts), undefined);
    });
    const events: unknown[] = [];
    const deliver = async (parts: readonly Part[]): Promise<void> => {
      events.push(parts);
      await new Promise(setImmediate);
      events.push("taken");
    };
    const options = { cancel: new Cancel(), retain: () => undefined } as never;
    const serving = { model: { provider: { maxReplyBytes: 1_000 } } } as never;
    await attempt({} as never, serving, deliver, options);
    assert.deepEqual(
      events,
      batches.flatMap((parts) => [parts, "taken"]),
    );
  });
});

describe("a recovery that ends in an error", () => {
  /** The model and the error of each line for the operator. */
  const told = ({ gateway }: Awaited<ReturnType<typeof askScene>>) =>
    gateway.diagnostics.map(({ event, model, code }) => `${event} ${model} ${code}`);

  it("tells each break, and the error with the model whose it is", async (t) => {
    const scene = await askScene(t, {
      models: {
        m: inTurn(broken(texts(SHOWN), "stall"), refuses),
        n: broken(texts(" fox jumps")),
      },
      config: two({
        retry: { max_recoveries: 1 },
        providers: { lab: { timeouts: { idle_ms: 40 } } },
      }),
      model: "x",
    });
    const got = seen(scene.answer);
    assert.deepEqual([got.text, got.error], [`${SHOWN} fox jumps`, "upstream_timeout"]);
    assert.deepEqual(told(scene), [
      "reply_broken m upstream_timeout",
      "attempt_failed m upstream_error",
      "reply_broken n upstream_error",
      "reply_cut m upstream_timeout",
    ]);
    assert.equal(scene.settlement.modelServed, "m");
    assert.equal(scene.settlement.price?.output, PRICES.m.output);
    assert.equal(scene.settlement.recovery, "failed");
  });

  it("is said to have gone on where the client left in the middle of it", async (t) => {
    const rest = stream([chunk({ content: REST })], "open");
    for (const [leaves, outcome] of [
      [REST, "continued"],
      [SHOWN.slice(-5), "failed"],
    ] as const) {
      const second = outcome === "continued" ? rest : silent;
      const provider = await startProvider(t, { m: inTurn(broken(texts(SHOWN)), second) });
      const gateway = await startGateway(
        t,
        configFor(provider.url, ["m"], {
          models: { m: { recovery: "continue", prefill: "plain" } },
          timeouts: { leave_ms: 0 },
        }),
      );
      const leaving = new AbortController();
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "m", stream: true, messages: user("hi") }),
        signal: leaving.signal,
      });
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; !text.includes(leaves); ) text += (await reader.read()).value;
      await waitFor(() => provider.asked.length === 2, "the second attempt");
      leaving.abort();
      await reader.closed.catch(() => undefined);
      await waitFor(() => gateway.access.length > 0, "the access log's line");
      const { status: code, recovery } = gateway.access[0]!;
      assert.deepEqual([code, recovery], [499, outcome]);
    }
  });
});
