// A pooled connection that the provider closed just as it was taken: the request is sent again on a
// new one. That is an attempt of its own for the books, the log and the metrics, but no fault of
// the model's.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, priced, type Line } from "../../../support/books.ts";
import { POOLED_ONLY } from "../../../support/gateway.ts";
import { speak, status, type Behaviour } from "../../../support/provider.ts";

/** Closes the first connection at its second request. Everything else is answered. */
const fickle = (answer: Behaviour): Behaviour => {
  let requests = 0;
  return (asked) => {
    requests += 1;
    if (requests !== 2) return answer(asked);
    asked.socket.destroy();
  };
};
const outcomes = ({ settle }: { settle: Line }) =>
  settle["attempts"].map(({ model, provider, outcome }: Line) => [model, provider, outcome]);

describe(
  "a request that is sent again because its pooled connection was closed",
  POOLED_ONLY,
  () => {
    for (const streaming of [false, true])
      it(`${streaming ? "streamed" : "whole"}: two attempts in the books, one event in the log, no retry, no failure of the breaker`, async (t) => {
        const { dir, gw, ask, provider } = await priced(
          t,
          { m: fickle(speak("Fine.")) },
          { retry: { max_retries: 0 }, breaker: { failures: 1 } },
        );
        for (let i = 0; i < 3; i += 1) assert.equal((await ask({ stream: streaming })).status, 200);
        assert.equal(provider.asked.length, 4);
        const [first, second, third] = entries(dir);
        const completed = ["m", "lab", "completed"];
        assert.deepEqual(outcomes(first!), [completed]);
        assert.deepEqual(outcomes(second!), [["m", "lab", "upstream_error"], completed]);
        assert.deepEqual(outcomes(third!), [completed]);
        const { settle } = second!;
        const [failed, served] = settle["attempts"].map((attempt: Line) => attempt["duration_ms"]);
        assert.ok(failed + served <= settle["duration_ms"] + 2, "each has a duration of its own");
        assert.deepEqual(
          [settle["status"], settle["usage_source"], settle["cost"]],
          ["completed", "provider", first!.settle["cost"]],
        );
        assert.deepEqual(
          gw.diagnostics.map(({ event, model, provider, request_id }) => [
            event,
            model,
            provider,
            request_id,
          ]),
          [["stale_connection", "m", "lab", settle["gateway_request_id"]]],
        );
        const { models } = gw.gateway.report().extensions["installation"] as {
          models: readonly [{ breaker: Line }];
        };
        assert.equal(models[0].breaker["state"], "closed");
      });

    it("takes nothing from max_retries: what fails then is tried again", async (t) => {
      let asked = 0;
      // The first request is answered; then come a closed connection, a 500 on the new one, and an
      // answer.
      const answer: Behaviour = (each) => {
        asked += 1;
        return (asked === 2 ? status(500) : speak("Fine."))(each);
      };
      const { dir, ask } = await priced(
        t,
        { m: fickle(answer) },
        { retry: { max_retries: 1, backoff_ms: 1 } },
      );
      await ask();
      assert.equal((await ask()).status, 200);
      const failed = ["m", "lab", "upstream_error"];
      assert.deepEqual(outcomes(entries(dir)[1]!), [failed, failed, ["m", "lab", "completed"]]);
    });
  },
);
