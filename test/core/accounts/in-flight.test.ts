// The limits on requests in flight of an account and of a process, over HTTP. limiter.test.ts tests
// the limiter itself.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { checkConfig } from "../../support/config.ts";
import { configFor, KEY, startWith, user } from "../../support/gateway.ts";
import {
  chunk,
  event,
  silent,
  speak,
  status,
  stream,
  type Asked,
  type Behaviour,
} from "../../support/provider.ts";
import { waitFor } from "../../support/wait.ts";
import { chatBytes, connect } from "../http/wire.ts";

describe("requests in flight over HTTP", () => {
  /** A stream that has begun. The test ends it. */
  const held: Behaviour = ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(event(chunk({ content: "Fi" })));
  };
  const finish = ({ res }: Asked) => {
    res.end(event(chunk({ content: "ne." }, "stop")));
  };

  async function bench(t: TestContext, over: object) {
    const behaviours = {
      held,
      silent,
      fine: speak("Fine."),
      bad: status(500),
      cut: stream([chunk({ content: "Fi" })], "cut"),
    };
    const keys = [
      { account: "acme", key: KEY },
      { account: "beta", key: "sk-beta" },
    ];
    const settings = { keys, timeouts: { leave_ms: 0 }, ...over };
    const { provider, ...gw } = await startWith(t, behaviours, settings);
    const send = (
      model: string,
      { key = KEY, signal, body = {} }: { key?: string; signal?: AbortSignal; body?: object } = {},
    ) =>
      gw.chat(
        { model, messages: user("hi"), stream: model === "held" || model === "cut", ...body },
        { authorization: `Bearer ${key}` },
        signal,
      );
    /** Resolves with the status once the reply is complete. */
    const statusOf = async (model: string, key = KEY) => {
      const response = await send(model, { key });
      await response.text();
      return response.status;
    };
    const hold = async (count: number, key = KEY) => {
      const sent = Array.from({ length: count }, () => send("held", { key }));
      const responses = await Promise.all(sent);
      for (const response of responses) assert.equal(response.status, 200);
      return responses;
    };
    const heldAt = () =>
      provider.asked.filter(
        ({ body, closed, res }) => body["model"] === "held" && !closed() && !res.writableEnded,
      );
    return { gw, provider, send, statusOf, hold, heldAt };
  }

  async function assertRefusal(response: Response, status: number, error: object): Promise<void> {
    assert.deepEqual([response.status, response.headers.get("retry-after")], [status, "1"]);
    const request_id = response.headers.get("x-request-id");
    assert.deepEqual(await response.json(), { error: { ...error, param: null, request_id } });
  }
  const assertFull = (response: Response, size: number) =>
    assertRefusal(response, 429, {
      message: `Concurrency limit exceeded: this account may have ${size} requests in flight. Retry after 1 seconds.`,
      type: "rate_limit_error",
      code: "concurrency_limit_exceeded",
    });

  it("a request rejected by the rate limit takes no concurrency slot, and the reverse", async (t) => {
    const { send, hold, heldAt, statusOf } = await bench(t, {
      accounts: { acme: { max_in_flight: 1, rpm: 2 } },
    });
    const [stream] = await hold(1);
    for (let at = 0; at < 3; at += 1) await assertFull(await send("fine"), 1);
    heldAt().forEach(finish);
    await stream!.text();
    assert.equal(await statusOf("fine"), 200);
    for (let at = 0; at < 2; at += 1)
      assert.match(await (await send("fine")).text(), /Requests-per-minute/, "it got a slot");
  });

  it("a concurrency slot is released however a request ends", async (t) => {
    const { gw, send, statusOf, provider } = await bench(t, {
      accounts: { acme: { max_in_flight: 1 } },
    });
    const free = async (after: string) => assert.equal(await statusOf("fine"), 200, after);
    await free("a whole reply");
    assert.equal(await statusOf("bad"), 503);
    await free("a provider's failure");
    assert.equal(await statusOf("cut"), 200);
    await free("a stream that the provider cut");
    assert.equal((await send("fine", { body: { messages: 1 } })).status, 400);
    assert.equal((await gw.chat("{")).status, 400);
    assert.equal((await gw.chat("{}", { "content-type": "text/plain" })).status, 415);
    await free("a body that was refused");

    for (const model of ["held", "silent"]) {
      const leaver = new AbortController();
      const sent = send(model, { signal: leaver.signal });
      sent.catch(() => undefined);
      const { closed } = await provider.nth(provider.asked.length);
      if (model === "held") await sent;
      await assertFull(await send("fine"), 1);
      leaver.abort();
      await waitFor(closed, "the provider to be left");
      await waitFor(() => gw.access.at(-1)!["status"] === 499, "its line in the access log");
      await free(`a client that left a ${model} provider`);
    }

    // An incomplete body holds a slot until its client leaves.
    const fields = ["X-Request-Id: half", "Content-Length: 9"];
    const { socket } = connect(t, gw.url, chatBytes(KEY, "{", fields));
    await waitFor(() => gw.gateway.report().inFlight === 1, "it to arrive");
    await assertFull(await send("fine"), 1);
    socket.destroy();
    assert.equal((await gw.accessOf("half"))["status"], 499);
    await free("a client that left while it was sending");
  });

  it("after a reload the new limit applies at once, and running requests release their slots", async (t) => {
    const { gw, provider, send, statusOf, hold, heldAt } = await bench(t, {
      accounts: { acme: { max_in_flight: 2 } },
    });
    const reload = (max_in_flight: number | null) => {
      const accounts = { acme: { max_in_flight } };
      gw.gateway.reload(checkConfig(configFor(provider.url, ["held", "fine"], { accounts }), {}));
    };
    const early = await hold(2);
    reload(null);
    const unbounded = await hold(3);
    reload(3);
    const third = await hold(1);
    await assertFull(await send("fine"), 3);
    heldAt().forEach(finish);
    for (const response of [...early, ...unbounded, ...third]) await response.text();
    assert.equal(await statusOf("fine"), 200);
    await hold(3);
    await assertFull(await send("fine"), 3);
  });

  it("beyond the process limit any request gets 503 at once, before its key is checked; /healthz still answers", async (t) => {
    const { gw, provider, send, statusOf, hold, heldAt } = await bench(t, {
      server: { port: 0, max_in_flight: 4 },
    });
    const streams = [...(await hold(2)), ...(await hold(2, "sk-beta"))];
    const asked = provider.asked.length;
    for (const key of [KEY, "sk-nobody", ""]) {
      const response = await send("fine", { key });
      assert.equal(response.headers.get("www-authenticate"), null);
      assert.equal(response.headers.get("x-ratelimit-limit-requests"), null);
      await assertRefusal(response, 503, {
        message: "The gateway has too many requests in flight.",
        type: "service_unavailable_error",
        code: "server_overloaded",
      });
    }
    assert.equal(provider.asked.length, asked);
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200);
    const refused = () => gw.access.filter((line) => line["status"] === 503);
    await waitFor(() => refused().length === 3, "their lines in the access log");
    for (const line of refused()) assert.equal(line["account"], null, "not authenticated yet");
    const over = () => gw.access.filter((line) => line["model"] === "held").length;
    finish(heldAt()[0]!);
    await waitFor(() => over() === 1, "one stream to be over");
    assert.equal(await statusOf("fine"), 200);
    await hold(1);
    assert.equal(await statusOf("fine"), 503);
    heldAt().forEach(finish);
    for (const response of streams) await response.text();
    await waitFor(() => over() === 5, "all streams to be over");
    assert.deepEqual([await statusOf("fine"), await statusOf("fine", "sk-nobody")], [200, 401]);
  });
});
