// The whole way over real sockets: from the configuration to a collector that reads strictly, and
// what the gateway does without one.

import { install } from "../../../../src/core/extension/install.ts";
import { moments } from "../../../../src/core/extension/places.ts";
import assert from "node:assert/strict";
import http from "node:http";
import { text as textOf } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../../src/core/clock.ts";
import * as telemetry from "../../../../src/extensions/operations/telemetry/index.ts";
import { createSend } from "../../../../src/extensions/operations/telemetry/post.ts";
import { isNeededBy } from "../../../../src/config/loader.ts";
import { installed, checkConfig, loader } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, demo, merge, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { readSpans } from "../../../support/otlp-reader.ts";
import { held, speak, startProvider } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { faultsOf } from "../faults-of.ts";

interface Posted {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

type Answer = (res: http.ServerResponse) => void;

const accept: Answer = (res) => {
  res.writeHead(200, { "content-type": "application/json" }).end("{}");
};

async function startCollector(t: TestContext, answer: Answer = accept) {
  const posted: Posted[] = [];
  const server = http.createServer(async (req, res) => {
    const body = await textOf(req);
    posted.push({ path: req.url!, headers: req.headers, body });
    answer(res);
  });
  return { posted, endpoint: await listening(t, server) };
}

const KEYS = { OTLP_TOKEN: "token-0123456789" };

/** A gateway, of whose provider and collector the test knows what they are told. */
async function site(t: TestContext, answer?: Answer, over: object = {}) {
  const { posted, endpoint } = await startCollector(t, answer);
  const provider = await startProvider(t, speak("Fine."));
  const headers = { Authorization: "Bearer $OTLP_TOKEN" };
  const telemetry = { otlp: { endpoint: `${endpoint}/base/`, headers, service_name: "gate" } };
  const config = merge(configFor(provider.url, ["m"], { telemetry }), over) as object;
  const gw = await startGateway(t, config, {}, KEYS);
  const ask = async (body: object = {}) =>
    (await gw.chat({ model: "m", messages: user("hi"), ...body })).text();
  return { ...gw, posted, ask };
}

describe("a gateway with a collector", () => {
  it("sends what it holds when it closes, with its headers, and says how much that was", async (t) => {
    const { posted, ask, gateway, access } = await site(t);
    for (const stream of [true, false]) await ask({ stream });
    await waitFor(() => access.length === 2, "the end of both requests");
    await gateway.close();
    const [{ path, headers, body }, ...others] = posted as [Posted];
    assert.deepEqual(
      [path, headers.authorization, headers["content-type"], others],
      ["/base/v1/traces", "Bearer token-0123456789", "application/json", []],
    );
    const spans = readSpans(body);
    const chat = "POST /v1/chat/completions";
    assert.deepEqual(spans.map(({ name }) => name).sort(), [chat, chat, "chat m", "chat m"]);
    assert.equal(spans[0]!.resource["service.name"], "gate");
    const clients = spans.filter(({ name }) => name === "chat m");
    assert.equal(clients[0]!.attributes["server.address"], "127.0.0.1");
    const { sent, dropped } = gateway.report().extensions["telemetry"] as any;
    assert.deepEqual([sent, dropped], [4, 0]);
  });

  it("answers its clients as ever while the collector is away, and shows what it drops", async (t) => {
    const refuse: Answer = (res) => res.writeHead(400).end("no");
    const { ask, gateway, diagnostics } = await site(t, refuse);
    assert.match(await ask(), /Fine\./);
    const admin = gateway.adminAddress();
    const status = (await (await fetch(`${admin}/status`)).json()) as any;
    assert.deepEqual(status.telemetry, { spans_sent: 0, spans_dropped: 0 });
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    assert.match(metrics, /^chat_gateway_telemetry_spans_total\{result="dropped"\} 0$/m);
    await gateway.close();
    const told = diagnostics.find(({ event }) => event === "telemetry_dropped");
    const detail = "the collector answered with status 400";
    assert.deepEqual([told?.["spans"], told?.["detail"]], [2, detail]);
  });

  it("leaves the host of a provider out in which a secret stands", async (t) => {
    const lab = { api_key: "hidden", base_url: "http://hidden.localhost:1" };
    const { posted, ask, gateway, access } = await site(t, accept, { providers: { lab } });
    await ask();
    await waitFor(() => access.length === 1, "the end of the request");
    await gateway.close();
    assert.equal(readSpans(posted[0]!.body).length, 2);
    assert.doesNotMatch(posted[0]!.body, /hidden|server\.address/);
  });

  it("tells where a request was sent that a reload has overtaken", async (t) => {
    const { posted, endpoint } = await startCollector(t);
    const { behaviour, finish } = held();
    const provider = await startProvider(t, behaviour);
    const telemetry = { otlp: { endpoint } };
    const config = (url: string) => configFor(url, ["m"], { telemetry, data_dir });
    const data_dir = folder();
    const { gateway, chat } = await startGateway(t, config(provider.url));
    const answer = await chat({ model: "m", stream: true, messages: user("hi") });
    gateway.reload(checkConfig(config("https://elsewhere.example")));
    finish();
    await answer.text();
    await gateway.close();
    const [attempt] = readSpans(posted[0]!.body).filter(({ name }) => name === "chat m");
    assert.equal(attempt!.attributes["server.address"], "127.0.0.1");
  });
});

it("the figures of all processes do not fall when some die or are late", () => {
  const endpoint = "http://127.0.0.1:1";
  const config = checkConfig(demo({ telemetry: { otlp: { endpoint } } }), KEYS);
  const [status] = install([{ name: "telemetry", ...telemetry }]).listeners(moments.status);
  const told = (...reports: readonly (readonly [process: string, sent: number])[]) => {
    const all = reports.map(([process, sent]) => ({ process, sent, dropped: 2 * sent }));
    const { spans_sent, spans_dropped } = (status!.call([...all, undefined], config) as any)
      .telemetry;
    assert.equal(spans_dropped, 2 * spans_sent);
    return spans_sent;
  };
  assert.deepEqual(
    [told(["a", 3], ["b", 4]), told(["a", 5]), told(["a", 5], ["c", 1])],
    [7, 9, 10],
  );
  for (let dead = 1; dead <= 1_000; dead += 1)
    assert.equal(told(["a", 5 + dead], [`dead ${dead}`, 1]), 10 + 2 * dead);
});

describe("a gateway without a collector", () => {
  it("hands no trace headers on, and has no figures of spans", async (t) => {
    const provider = await startProvider(t, speak("Fine."));
    const gateway = await startGateway(t, configFor(provider.url, ["m"]));
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await (await gateway.chat({ model: "m", messages: user("hi") }, { traceparent })).text();
    assert.equal("traceparent" in provider.asked[0]!.headers, false);
    const status = await (await fetch(`${gateway.gateway.adminAddress()}/status`)).json();
    assert.equal("telemetry" in (status as object), false);
  });

  it("does not get one by a reload: the setting is read at start only", async (t) => {
    const { posted, endpoint } = await startCollector(t);
    const provider = await startProvider(t, speak("Fine."));
    const config = configFor(provider.url, ["m"]);
    const extensions = await loader.load(
      (entry) => entry.checks || entry.serves || isNeededBy(config, entry),
    );
    const { gateway, chat, access } = await startGateway(t, config, { extensions });
    gateway.reload(checkConfig({ ...config, telemetry: { otlp: { endpoint } } }));
    await (await chat({ model: "m", messages: user("hi") })).text();
    await waitFor(() => access.length === 1, "the end of the request");
    await gateway.close();
    assert.deepEqual(posted, []);
  });
});

describe("the answer of a collector", () => {
  const json =
    (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
    (res) =>
      res.writeHead(status, headers).end(JSON.stringify(body));
  const endless: Answer = (res) => {
    const fill = () => {
      while (!res.destroyed && res.write("x".repeat(16_384)));
    };
    res.writeHead(200).on("drain", fill);
    fill();
  };
  const partly = (rejectedSpans: unknown) => json(200, { partialSuccess: { rejectedSpans } });
  const status = (code: number): Answer =>
    json(code, {}, { location: "/elsewhere", "retry-after": "7" });
  const all = Infinity;

  for (const [situation, answer, rejected, isTemporary] of [
    ["200", json(200, {}), 0],
    ["200 without the spans that it rejects", partly("1"), 1],
    ["200 with their number as a number", partly(1), 1],
    ["200 with a number that is none", partly("-3"), 0],
    ["200 with other JSON", json(200, []), 0],
    ["200 without an end", endless, 0],
    ["429", status(429), all, true],
    ["502", status(502), all, true],
    ["503", status(503), all, true],
    ["504", status(504), all, true],
    ["307, which is not followed", status(307), all, false],
    ["400", status(400), all, false],
    ["401", status(401), all, false],
    ["404", status(404), all, false],
    ["500", status(500), all, false],
    ["nothing: it is cut", (res) => res.destroy(), all, true],
  ] as readonly (readonly [string, Answer, number, boolean?])[])
    it(`${situation}: rejected are ${rejected}${isTemporary ? ", for the moment" : ""}`, async (t) => {
      const { posted, endpoint } = await startCollector(t, answer);
      const settings = { endpoint, headers: new Map(), service_name: "x" };
      const send = createSend(settings, (spans) => `[${spans.join()}]`, systemClock);
      const result = await send(["1", "2"], new AbortController().signal);
      assert.deepEqual(
        posted.map(({ body }) => body),
        ["[1,2]"],
      );
      assert.deepEqual([result.rejected, result.isTemporary], [rejected, isTemporary]);
      const isRefused = isTemporary !== undefined && /^\d/.test(situation);
      if (isRefused) {
        assert.equal(result.afterMs, 7_000);
        const code = situation.slice(0, 3);
        assert.equal(result.detail, `the collector answered with status ${code}`);
      }
      assert.doesNotMatch(result.detail, /127\.0\.0\.1|http/, "nothing of the address is told");
    });
});

describe("the settings of the collector", () => {
  const endpoint = "http://127.0.0.1:4318";
  const withHeaders = (headers: object) => ({ endpoint, headers });

  for (const [situation, otlp, expected] of [
    ["no endpoint", {}, /^telemetry\.otlp\.endpoint: /],
    ["another protocol", { endpoint: "grpc://h:4317" }, /endpoint: expected an http:\/\//],
    ["a password in the address", { endpoint: "http://u:p@h" }, /must not hold a user name/],
    ["a query", { endpoint: `${endpoint}?a=1` }, /endpoint: must not have a query/],
    ["the path of the signal", { endpoint: `${endpoint}/v1/traces` }, /to which \/v1\/traces/],
    ["a header of HTTP's own", withHeaders({ Host: "x" }), /headers\.Host: is no name of a header/],
    ["no header name", withHeaders({ "a b": "x" }), /headers\["a b"\]: is no name of a header/],
    ["a header twice", withHeaders({ a: "x", A: "y" }), /headers\.A: stands there twice/],
    ["a line end", withHeaders({ a: "secret\nx" }), /headers\.a: expected printable/],
    ["an unset variable", withHeaders({ a: "Bearer $NO_SUCH" }), /NO_SUCH is not set$/],
    ["an unknown field", { endpoint, header: {} }, /telemetry\.otlp/],
  ] as const)
    it(`are refused with ${situation}, and no secret is repeated`, () => {
      const [issue = "", ...others] = faultsOf(demo({ telemetry: { otlp } }), KEYS);
      assert.match(issue, expected);
      assert.doesNotMatch(issue, /secret/);
      assert.deepEqual(others, []);
    });

  it("are secrets as far as headers go, with and without the word before them", () => {
    const headers = { a: "Bearer $OTLP_TOKEN", b: "plain-secret" };
    const config = checkConfig(demo({ telemetry: { otlp: { endpoint, headers } } }), KEYS);
    const secrets = installed.listeners(moments.secrets).flatMap(({ call }) => call(config));
    for (const secret of [KEYS.OTLP_TOKEN, "plain-secret"]) assert.ok(secrets.includes(secret));
  });
});
