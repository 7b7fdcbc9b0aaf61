// What counts as shown to the client, beside text: it decides whether a stream is continued.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFor, KEY, startGateway } from "../../../support/gateway.ts";
import {
  askScene,
  broken,
  goesOn,
  inTurn,
  seen,
  SHOWN,
  texts,
  WHOLE,
} from "../../../support/recovered.ts";
import { startProvider } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";

describe("what was shown", () => {
  it("is no thinking that the client does not see, of a model without reasoning", async (t) => {
    const { answer } = await askScene(t, {
      models: { m: inTurn(broken([{ reasoning_content: "Hm." }, ...texts(SHOWN)]), goesOn) },
      config: { models: { m: { prefill: "plain", recovery: "continue", reasoning: false } } },
      request: { thinking: { type: "enabled" } },
    });
    const got = await seen(answer);
    assert.deepEqual([got.text, got.reasoning, got.error], [WHOLE, "", undefined]);
  });

  it("is reasoning in sealed form: it is not continued, and it is billed", async (t) => {
    for (const [include, attempts] of [
      [["reasoning.encrypted_content"], 1],
      [[], 2],
    ] as const) {
      const thinks = broken([{ reasoning_content: "Let me think." }, ...texts(SHOWN)]);
      const provider = await startProvider(t, { m: inTurn(thinks, goesOn) });
      const models = { m: { recovery: "continue", prefill: "plain" } };
      const over = { models, apis: ["responses"] };
      const gateway = await startGateway(t, configFor(provider.url, ["m"], over));
      const answer = await fetch(`${gateway.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "m", input: "hi", stream: true, include }),
      });
      const text = await answer.text();
      assert.equal(provider.asked.length, attempts);
      assert.match(text, attempts === 1 ? /response\.failed/ : /response\.completed/);
      await waitFor(() => gateway.access.length > 0, "the access log's line");
      if (attempts === 1) assert.ok(Number(gateway.access[0]!["completion_tokens"]) > 0);
    }
  });
});
