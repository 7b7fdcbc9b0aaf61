// The pooled client behind a gateway: what a connection that was closed just as it was taken is to
// books, log and metrics, and whose time a wait for a connection is.

import assert from "node:assert/strict";
import net from "node:net";
import { describe, it } from "node:test";
import { entries, priced, type Line } from "../../../support/books.ts";
import { POOLED_ONLY, configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { silent, speak, startProvider, type Behaviour } from "../../../support/provider.ts";
import { waitFor, within } from "../../../support/wait.ts";

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
  },
);

describe("the deadlines of a request", () => {
  it(
    "to wait for a connection is not the provider's silence: first_token_ms begins when the request goes out",
    POOLED_ONLY,
    async (t) => {
      let finish = () => {};
      const held: Behaviour = (asked) => {
        finish = () => {
          speak("At last.")(asked);
        };
      };
      const provider = await startProvider(t, { m: held, n: speak("Fine.") });
      const other = await startProvider(t, { slow: silent });
      const gateway = await startGateway(
        t,
        configFor(provider.url, ["m", "n"], {
          upstream: { max_connections: 1 },
          breaker: { failures: 1 },
          providers: {
            other: { dialect: "openai", base_url: other.url, timeouts: { first_token_ms: 200 } },
            lab: { timeouts: { first_token_ms: 5_000 } },
            quick: { dialect: "openai", base_url: provider.url, timeouts: { first_token_ms: 100 } },
          },
          models: { slow: { provider: "other" }, n: { provider: "quick" } },
        }),
      );
      const first = gateway.chat({ model: "m", messages: user("hi") });
      await waitFor(() => provider.asked.length === 1, "the request that has the connection");
      const waits = gateway.chat({ model: "n", messages: user("hi") });
      // When this has failed, more than the other's time is over.
      assert.equal(
        (await json(await gateway.chat({ model: "slow", messages: user("hi") }))).error.code,
        "upstream_timeout",
      );
      assert.equal(provider.asked.length, 1);
      finish();
      assert.equal((await first).status, 200);
      assert.equal((await waits).status, 200);
    },
  );

  it("a connection that is not made: connect_ms", POOLED_ONLY, async (t) => {
    // A listener that never speaks TLS: the connection is open, but never secure.
    const deaf = await listening(t, net.createServer());
    const gateway = await startGateway(
      t,
      configFor(deaf.replace("http", "https"), ["m"], { timeouts: { connect_ms: 100 } }),
    );
    const response = await within(gateway.chat({ model: "m", messages: user("hi") }), "the answer");
    assert.equal((await json(response)).error.code, "upstream_timeout");
    await waitFor(
      () =>
        gateway.diagnostics.find((line) =>
          String(line["detail"]).includes("no connection within 100 ms"),
        ),
      "the diagnostic line",
    );
  });
});
