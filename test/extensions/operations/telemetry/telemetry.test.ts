// The complete path over real sockets: from the configuration to a strict collector, and the
// gateway without a collector.

import { install } from "../../../../src/core/extension/install.ts";
import { hooks } from "../../../../src/core/extension/places.ts";
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../../src/core/clock.ts";
import * as telemetry from "../../../../src/extensions/operations/telemetry/index.ts";
import { createSend } from "../../../../src/extensions/operations/telemetry/post.ts";
import { isNeededBy } from "../../../../src/config/loader.ts";
import { installed, checkConfig, loader } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, demo, merge, startGateway, startWith, user } from "../../../support/gateway.ts";
import { readSpans } from "../../../support/otlp-reader.ts";
import * as provided from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { faultsOf } from "../faults-of.ts";

const KEYS = { OTLP_TOKEN: "token-0123456789" };

/** A collector accepts requests like a provider. */
const startCollector = (t: TestContext, answer = provided.status(200)) =>
  provided.startProvider(t, answer);

const spansIn = ({ body }: provided.Asked) => readSpans(JSON.stringify(body));

/** A gateway whose provider and collector record their requests. */
async function site(t: TestContext, answer?: provided.Behaviour, over: object = {}) {
  const { asked: posted, url: endpoint } = await startCollector(t, answer);
  const provider = await provided.startProvider(t, provided.speak("Fine."));
  const headers = { Authorization: "Bearer $OTLP_TOKEN" };
  const telemetry = { otlp: { endpoint: `${endpoint}/base/`, headers, service_name: "gate" } };
  const config = merge(configFor(provider.url, ["m"], { telemetry }), over) as object;
  const gw = await startGateway(t, config, {}, KEYS);
  const ask = async (body: object = {}) =>
    (await gw.chat({ model: "m", messages: user("hi"), ...body })).text();
  return { ...gw, posted, ask };
}

describe("a gateway with a collector", () => {
  it("sends pending spans when it closes, with their headers, and reports how many", async (t) => {
    const { posted, ask, gateway, access } = await site(t);
    for (const stream of [true, false]) await ask({ stream });
    await waitFor(() => access.length === 2, "the end of both requests");
    await gateway.close();
    assert.equal(posted.length, 1);
    const { path, headers } = posted[0]!;
    const head = [path, headers.authorization, headers["content-type"]];
    assert.deepEqual(head, ["/base/v1/traces", "Bearer token-0123456789", "application/json"]);
    const spans = spansIn(posted[0]!);
    const chat = "POST /v1/chat/completions";
    assert.deepEqual(spans.map(({ name }) => name).sort(), [chat, chat, "chat m", "chat m"]);
    assert.equal(spans[0]!.resource["service.name"], "gate");
    const clients = spans.filter(({ name }) => name === "chat m");
    assert.equal(clients[0]!.attributes["server.address"], "127.0.0.1");
    const { sent, dropped } = gateway.report().extensions["telemetry"] as any;
    assert.deepEqual([sent, dropped], [4, 0]);
  });

  it("serves its clients as usual while the collector is down, and shows dropped spans", async (t) => {
    const { ask, gateway, diagnostics } = await site(t, provided.status(400));
    assert.match(await ask(), /Fine\./);
    const admin = gateway.adminAddress();
    const shown = (await (await fetch(`${admin}/status`)).json()) as any;
    assert.deepEqual(shown.telemetry, { spans_sent: 0, spans_dropped: 0 });
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    assert.match(metrics, /^chat_gateway_telemetry_spans_total\{result="dropped"\} 0$/m);
    await gateway.close();
    const told = diagnostics.find(({ event }) => event === "telemetry_dropped");
    const detail = "the collector answered with status 400";
    assert.deepEqual([told?.["spans"], told?.["detail"]], [2, detail]);
  });

  it("omits a provider's host that contains a secret", async (t) => {
    const lab = { api_key: "hidden", base_url: "http://hidden.localhost:1" };
    const { posted, ask, gateway, access } = await site(t, provided.status(200), {
      providers: { lab },
    });
    await ask();
    await waitFor(() => access.length === 1, "the end of the request");
    await gateway.close();
    assert.equal(spansIn(posted[0]!).length, 2);
    assert.doesNotMatch(JSON.stringify(posted[0]!.body), /hidden|server\.address/);
  });

  it("states the host that a request was sent to, even if a reload has changed it", async (t) => {
    const { asked: posted, url: endpoint } = await startCollector(t);
    const { behaviour, finish } = provided.held();
    const provider = await provided.startProvider(t, behaviour);
    const more = { telemetry: { otlp: { endpoint } }, data_dir: folder() };
    const config = (url: string) => configFor(url, ["m"], more);
    const { gateway, chat } = await startGateway(t, config(provider.url));
    const answer = await chat({ model: "m", stream: true, messages: user("hi") });
    gateway.reload(checkConfig(config("https://elsewhere.example")));
    finish();
    await answer.text();
    await gateway.close();
    const [attempt] = spansIn(posted[0]!).filter(({ name }) => name === "chat m");
    assert.equal(attempt!.attributes["server.address"], "127.0.0.1");
  });
});

it("the sums over all processes do not decrease if some die or are late", () => {
  const endpoint = "http://127.0.0.1:1";
  const config = checkConfig(demo({ telemetry: { otlp: { endpoint } } }), KEYS);
  const [sums] = install([{ name: "telemetry", ...telemetry }]).listeners(hooks.status);
  const told = (...reports: readonly (readonly [process: string, sent: number])[]) => {
    const all = reports.map(([process, sent]) => ({ process, sent, dropped: 2 * sent }));
    return sums!.call([...all, undefined], config);
  };
  told(["a", 3], ["b", 4]);
  assert.deepEqual(told(["a", 5]), { telemetry: { spans_sent: 9, spans_dropped: 18 } });
  assert.deepEqual(told(["a", 5], ["c", 1]), { telemetry: { spans_sent: 10, spans_dropped: 20 } });
});

describe("a gateway without a collector", () => {
  it("passes on no trace headers, and has no span figures", async (t) => {
    const { provider, chat, gateway } = await startWith(t, { m: provided.speak("Fine.") });
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await (await chat({ model: "m", messages: user("hi") }, { traceparent })).text();
    assert.equal("traceparent" in provider.asked[0]!.headers, false);
    const shown = await (await fetch(`${gateway.adminAddress()}/status`)).json();
    assert.equal("telemetry" in (shown as object), false);
  });

  it("does not get one by a reload: the setting is read only at start", async (t) => {
    const { asked: posted, url: endpoint } = await startCollector(t);
    const provider = await provided.startProvider(t, provided.speak("Fine."));
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

describe("the response of a collector", () => {
  const partly = (rejectedSpans: unknown) =>
    provided.status(200, { partialSuccess: { rejectedSpans } });
  const refusal = (code: number) =>
    provided.status(code, {}, { location: "/elsewhere", "retry-after": "7" });
  const all = Infinity;

  for (const [situation, answer, rejected, isTemporary] of [
    ["200", provided.status(200), 0],
    ["200 without the spans that it rejects", partly("1"), 1],
    ["200 with their number as a number", partly(1), 1],
    ["200 with a number that is none", partly("-3"), 0],
    ["200 with other JSON", provided.status(200, []), 0],
    ["200 without an end", provided.endless("application/json", "x".repeat(16_384)), 0],
    ["429", refusal(429), all, true],
    ["502", refusal(502), all, true],
    ["503", refusal(503), all, true],
    ["504", refusal(504), all, true],
    ["307, which is not followed", refusal(307), all, false],
    ["400", refusal(400), all, false],
    ["401", refusal(401), all, false],
    ["404", refusal(404), all, false],
    ["500", refusal(500), all, false],
    ["nothing: it is cut", provided.reset, all, true],
  ] as readonly (readonly [string, provided.Behaviour, number, boolean?])[])
    it(`${situation}: rejected are ${rejected}${isTemporary ? ", for now" : ""}`, async (t) => {
      const { asked: posted, url: endpoint } = await startCollector(t, answer);
      const settings = { endpoint, headers: new Map(), service_name: "x" };
      const send = createSend(settings, (spans) => `[${spans.join()}]`, systemClock);
      const result = await send(["1", "2"], new AbortController().signal);
      const bodies = posted.map(({ body }) => body);
      assert.deepEqual(bodies, [[1, 2]]);
      assert.deepEqual([result.rejected, result.isTemporary], [rejected, isTemporary]);
      if (isTemporary !== undefined && /^\d/.test(situation)) {
        const detail = `the collector answered with status ${situation.slice(0, 3)}`;
        assert.deepEqual([result.afterMs, result.detail], [7_000, detail]);
      }
      assert.doesNotMatch(result.detail, /127\.0\.0\.1|http/, "the address is not shown");
    });
});

describe("the settings of the collector", () => {
  const endpoint = "http://127.0.0.1:4318";
  const withHeaders = (headers: object) => ({ endpoint, headers });

  for (const [situation, otlp, expected] of [
    ["no endpoint", {}, /^telemetry\.otlp\.endpoint: /],
    ["another protocol", { endpoint: "grpc://h:4317" }, /endpoint: expected an http:\/\//],
    ["a password in the address", { endpoint: "http://u:p@h" }, /must not contain a user name/],
    ["a query", { endpoint: `${endpoint}?a=1` }, /endpoint: must not have a query/],
    ["the path of the signal", { endpoint: `${endpoint}/v1/traces` }, /to which \/v1\/traces/],
    ["a header of HTTP's own", withHeaders({ Host: "x" }), /headers\.Host: is not a header/],
    ["no header name", withHeaders({ "a b": "x" }), /headers\["a b"\]: is not a header/],
    ["a header twice", withHeaders({ a: "x", A: "y" }), /headers\.A: is set twice/],
    ["a line end", withHeaders({ a: "secret\nx" }), /headers\.a: expected printable/],
    ["an unset variable", withHeaders({ a: "Bearer $NO_SUCH" }), /NO_SUCH is not set$/],
    ["an unknown field", { endpoint, header: {} }, /telemetry\.otlp/],
  ] as const)
    it(`are rejected with ${situation}, and no secret is repeated`, () => {
      const [issue = "", ...others] = faultsOf(demo({ telemetry: { otlp } }), KEYS);
      assert.match(issue, expected);
      assert.doesNotMatch(issue, /secret/);
      assert.deepEqual(others, []);
    });

  it("treat header values as secrets, with and without a scheme before them", () => {
    const headers = { a: "Bearer $OTLP_TOKEN", b: "plain-secret" };
    const config = checkConfig(demo({ telemetry: { otlp: { endpoint, headers } } }), KEYS);
    const secrets = installed.listeners(hooks.secrets).flatMap(({ call }) => call(config));
    for (const secret of [KEYS.OTLP_TOKEN, "plain-secret"]) assert.ok(secrets.includes(secret));
  });
});
