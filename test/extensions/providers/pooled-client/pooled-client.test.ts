// The pooled client behind a gateway: how books, log and metrics show a connection that was closed
// just as it was used, and whose time a wait for a connection is. Then providers over TLS: whom the
// client trusts, what it sends as the server's name, and how it resumes sessions.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import tls, { type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { entries, priced, type Line } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { POOLED_ONLY, configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { keepBusy } from "../../../support/effort.ts";
import { listening } from "../../../support/listening.ts";
import { fromModules } from "../../../support/program.ts";
import { call, reply, startClient, startRawProvider } from "../../../support/raw-provider.ts";
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

for (const stream of [false, true])
  it(
    `a request, ${stream ? "streamed" : "whole"}, that is sent again because its pooled connection was closed: two attempts in the books, one event in the log, no retry, no failure of the breaker`,
    POOLED_ONLY,
    async (t) => {
      const { dir, gw, ask, provider } = await priced(
        t,
        { m: fickle(speak("Fine.")) },
        { retry: { max_retries: 0 }, breaker: { failures: 1 } },
      );
      for (let i = 0; i < 3; i += 1) assert.equal((await ask({ stream })).status, 200);
      assert.equal(provider.asked.length, 4);
      const [first, second, third] = entries(dir);
      const completed = ["m", "lab", "completed"];
      assert.deepEqual(outcomes(first!), [completed]);
      assert.deepEqual(outcomes(second!), [["m", "lab", "upstream_error"], completed]);
      assert.deepEqual(outcomes(third!), [completed]);
      const { settle } = second!;
      const [failed, served] = settle["attempts"].map((attempt: Line) => attempt["duration_ms"]);
      assert.ok(failed + served <= settle["duration_ms"] + 2, "each has a duration of its own");
      const { status, usage_source, cost, gateway_request_id: request_id } = settle;
      assert.deepEqual([status, usage_source], ["completed", "provider"]);
      assert.equal(cost, first!.settle["cost"]);
      const [line, ...more] = gw.diagnostics;
      const told = { event: "stale_connection", model: "m", provider: "lab", request_id };
      assert.deepEqual([line, more], [{ ...line, ...told }, []]);
      const { models } = gw.gateway.report().extensions["installation"] as {
        models: readonly [{ breaker: Line }];
      };
      assert.equal(models[0].breaker["state"], "closed");
    },
  );

describe("the deadlines of a request", POOLED_ONLY, () => {
  it("do not count a wait for a connection as silence: first_token_ms begins when the request is sent", async (t) => {
    const provider = await startProvider(t, { m: silent, n: speak("Fine.") });
    const other = await startProvider(t, { slow: silent });
    const patient = (base_url: string, first_token_ms: number) => ({
      dialect: "openai",
      base_url,
      timeouts: { first_token_ms },
    });
    const config = configFor(provider.url, ["m"], {
      upstream: { max_connections: 1 },
      breaker: { failures: 1 },
      providers: { other: patient(other.url, 200), quick: patient(provider.url, 100) },
      models: { slow: { provider: "other" }, n: { provider: "quick" } },
      timeouts: { first_token_ms: 5_000 },
    });
    const { chat } = await startGateway(t, config);
    const ask = (model: string) => chat({ model, messages: user("hi") });
    const first = ask("m");
    const asked = await provider.nth(0); // this request has the connection
    const waits = ask("n");
    // By the time this has failed, the other's time would be over.
    assert.equal((await json(await ask("slow"))).error.code, "upstream_timeout");
    assert.equal(provider.asked.length, 1);
    await speak("At last.")(asked);
    assert.equal((await first).status, 200);
    assert.equal((await waits).status, 200);
  });

  it("end an attempt to connect at connect_ms", async (t) => {
    // A listener that never speaks TLS: the connection opens, but never becomes secure.
    const deaf = (await listening(t, net.createServer())).replace("http", "https");
    const config = configFor(deaf, ["m"], { timeouts: { connect_ms: 100 } });
    const { chat, diagnostics } = await startGateway(t, config);
    const response = await within(chat({ model: "m", messages: user("hi") }), "the answer");
    assert.equal((await json(response)).error.code, "upstream_timeout");
    const isTold = () => /no connection within 100 ms/.test(JSON.stringify(diagnostics));
    await waitFor(isTold, "the diagnostic line");
  });

  it("allow a connection that opened while this process was suspended, however long", async (t) => {
    const { url } = await startRawProvider(t, ({ socket }) => socket.write(reply()));
    const { text } = call(startClient(t), url, { connectMs: 20 });
    keepBusy(60);
    assert.equal(await text, "ok");
  });
});

/** What the server knows of a connection. */
interface Handshake {
  readonly name: string | false;
  readonly resumed: boolean;
}

async function startServer(t: TestContext, answer = reply(), host = "127.0.0.1") {
  const { cert_file, key_file } = certificate();
  const handshakes: Handshake[] = [];
  const pair = { cert: readFileSync(cert_file), key: readFileSync(key_file) };
  const server = tls.createServer(pair, (socket: TLSSocket) => {
    // `servername` is false if the client sent none. The types do not say so.
    const name = socket.servername as unknown as string | false;
    handshakes.push({ name, resumed: socket.isSessionReused() });
    socket.on("error", () => undefined);
    socket.on("data", () => {
      if (answer.includes("close")) socket.end(answer);
      else socket.write(answer);
    });
  });
  server.on("tlsClientError", () => undefined);
  const { port } = new URL(await listening(t, server, host));
  return { port, handshakes, cert_file };
}

/** The result of each call, in a process that trusts the authorities of this file. */
async function callsTo(urls: readonly string[], trusted: string): Promise<string[]> {
  const { args, cwd } = fromModules(process.cwd(), "test/support/tls-client.ts");
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
  const run = promisify(execFile)(process.execPath, [...args, ...urls], { cwd, env });
  const { stdout } = await within(run, "the calls to end");
  return stdout.trim().split("\n");
}

describe("a provider over TLS", () => {
  it("is trusted by NODE_EXTRA_CA_CERTS; its name is sent once per connection, and never an IP address", async (t) => {
    const { port, handshakes, cert_file } = await startServer(t);
    const byName = `https://localhost:${port}`;
    const urls = [byName, byName, `https://127.0.0.1:${port}`];
    assert.deepEqual(await callsTo(urls, cert_file), ["200 ok", "200 ok", "200 ok"]);
    const names = handshakes.map(({ name }) => name);
    assert.deepEqual(names, ["localhost", false]);
  });

  it("whose certificate is for another name gets no request", async (t) => {
    const { port, cert_file } = await startServer(t, reply(), "127.0.0.2");
    const calls = await callsTo([`https://127.0.0.2:${port}`], cert_file);
    assert.deepEqual(calls, ["ERR_TLS_CERT_ALTNAME_INVALID"]);
  });

  it("that closes after each reply is reconnected with the previous session", async (t) => {
    const { port, handshakes, cert_file } = await startServer(t, reply("ok", "Connection: close"));
    const url = `https://localhost:${port}`;
    assert.deepEqual(await callsTo([url, url, url], cert_file), ["200 ok", "200 ok", "200 ok"]);
    const resumed = handshakes.map(({ resumed }) => resumed);
    assert.deepEqual(resumed, [false, true, true]);
  });
});
