// The deadlines of a request and the pooled client: a wait for a connection, and one that is never made.

import assert from "node:assert/strict";
import net from "node:net";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { POOLED_ONLY, configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { silent, speak, startProvider, type Behaviour } from "../../../support/provider.ts";
import { waitFor, within } from "../../../support/wait.ts";

describe("the deadlines of a request", () => {
  it(
    "to wait for one of them is not the provider's silence: first_token_ms begins when the request goes out",
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
    const deaf = net.createServer();
    await new Promise<void>((resolve) => deaf.listen(0, "127.0.0.1", resolve));
    const sockets: net.Socket[] = [];
    deaf.on("connection", (socket) => sockets.push(socket));
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      deaf.close();
    });
    const { port } = deaf.address() as AddressInfo;
    const gateway = await startGateway(
      t,
      configFor(`https://127.0.0.1:${port}`, ["m"], { timeouts: { connect_ms: 100 } }),
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
