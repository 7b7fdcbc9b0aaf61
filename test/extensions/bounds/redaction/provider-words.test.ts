// What a provider said when it failed reaches the operator, without secrets: in the diagnostics
// log, in /status, in the spend log and in the trace; and it never reaches the client.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { settles } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import {
  chunk,
  reset,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";

type Json = Record<string, any>;

const SAID = "The tool schema is wrong at $.x";
const SECRET = "sk-CANARY-provider";
const PATH = "/v1/chat/completions";

/** Asks the model "m" once, and gathers what everybody gets to know of it. */
async function asked(
  t: TestContext,
  behaviours: Readonly<Record<string, Behaviour>>,
  { request = {}, over = {} }: { request?: object; over?: object } = {},
) {
  const dir = folder();
  const provider = await startProvider(t, behaviours);
  const config = configFor(`${provider.url}/v1`, ["m", "fine"], {
    data_dir: dir,
    providers: { lab: { api_key: SECRET } },
    aliases: { both: { models: ["m", "fine"] } },
    ...over,
  });
  const gw = await startGateway(t, config);
  const response = await gw.chat({ model: "m", messages: user("hi"), ...request });
  const answer = JSON.stringify([...response.headers]) + (await response.text());
  const requestId = response.headers.get("x-request-id")!;
  await gw.accessOf(requestId);
  const admin = gw.gateway.adminAddress();
  const { models } = await json(await fetch(`${admin}/status`));
  const trace = await json(await fetch(`${admin}/trace?request_id=${requestId}`));
  return {
    answer,
    access: JSON.stringify(gw.access),
    log: gw.diagnostics,
    breaker: models[0].breaker as Json,
    attempts: settles(dir)[0]!["attempts"] as Json[],
    traced: trace.spend[0].attempts as Json[],
  };
}

/** What everybody must know of one failed attempt. */
function assertTold(
  { answer, access, log, breaker, attempts, traced }: Awaited<ReturnType<typeof asked>>,
  expected: { status?: number; message?: string; path?: string },
  event = "attempt_failed",
): void {
  const { status: httpStatus, message, path = PATH } = expected;
  const line = log.find((each) => each["event"] === event)!;
  assert.ok(line, JSON.stringify(log));
  assert.deepEqual(
    [line["provider_status"], line["provider_path"], line["provider_message"]],
    [httpStatus, path, message],
  );
  assert.deepEqual(
    breaker["last_answer"],
    JSON.parse(JSON.stringify({ status: httpStatus, path, message })),
  );
  const [attempt] = attempts;
  assert.deepEqual([attempt!["status"], attempt!["path"]], [httpStatus, path]);
  if (message !== undefined) assert.equal(attempt!["detail"], message);
  assert.deepEqual(traced, attempts);
  if (message !== undefined)
    assert.ok(!(answer + access).includes(message.slice(0, 10)), `a client was told: ${answer}`);
  for (const text of [
    answer,
    access,
    ...[log, breaker, attempts].map((each) => JSON.stringify(each)),
  ])
    assert.ok(!text.includes("CANARY"), text);
}

describe("what a provider says", () => {
  it("of a request that it refuses is told with its status and path", async (t) => {
    const told = await asked(t, { m: status(400, { error: { message: SAID } }) });
    assertTold(told, { status: 400, message: SAID });
    assert.equal(told.breaker["last_fault"], null, "a refused request is no fault of the provider");
  });

  it("of its own failure is told with the attempt that another candidate made good", async (t) => {
    const told = await asked(
      t,
      { m: status(500, { error: { message: SAID } }), fine: speak("Fine.") },
      { request: { model: "both" } },
    );
    assertTold(told, { status: 500, message: SAID });
    const { model, outcome, ...rest } = told.attempts[1]!;
    assert.deepEqual([model, outcome], ["fine", "completed"]);
    assert.deepEqual(Object.keys(rest), ["provider", "duration_ms"], "nothing of one that worked");
  });

  const BODIES: [name: string, body: unknown, message: string][] = [
    ["an error that is a text", { error: SAID }, SAID],
    ["a flat error", { object: "error", message: SAID }, SAID],
    ["details", { detail: [{ loc: ["x"], msg: "bad" }] }, '[{"loc":["x"],"msg":"bad"}]'],
    ["JSON of another kind", { fault: { reason: SAID } }, `{"fault":{"reason":"${SAID}"}}`],
    ["a page", "<html>\n502 Bad Gateway</html>", "<html> 502 Bad Gateway</html>"],
    ["a list", [{ error: { message: SAID } }], SAID],
    [
      "a key of its own",
      { error: { message: `key ${SECRET} is not valid` } },
      "key [redacted] is not valid",
    ],
    ["a very long message", { error: { message: "ab ".repeat(5_000) } }, "ab ".repeat(100)],
  ];
  for (const [name, body, message] of BODIES)
    it(`is found in ${name}`, async (t) => {
      const told = await asked(t, { m: status(502, body) });
      assertTold(told, { status: 502, message });
    });

  it("in an error inside a 200 is told, whole and streamed", async (t) => {
    const body = { error: { message: SAID, code: 503 } };
    for (const streamed of [false, true]) {
      const m = streamed ? stream([body]) : status(200, body);
      assertTold(await asked(t, { m }, { request: { stream: streamed } }), {
        status: 200,
        message: SAID,
      });
    }
  });

  it("in an error after the first text is told with the reply that was cut", async (t) => {
    const events = [chunk({ content: "Once" }), { error: { message: `${SAID} ${SECRET}` } }];
    const told = await asked(t, { m: stream(events) }, { request: { stream: true } });
    assertTold(told, { status: 200, message: `${SAID} [redacted]` }, "reply_cut");
  });

  it("in a finish reason that means a failure is told", async (t) => {
    const m = stream([chunk({}, `error: ${SECRET} ${"ab ".repeat(5_000)}`)]);
    const message = `finish_reason error: [redacted] ${"ab ".repeat(100)}`.slice(0, 300);
    assertTold(await asked(t, { m }), { status: 200, message });
  });

  it("is nothing where a reply is unusable: no part of it is told", async (t) => {
    const body = { choices: [{ text: "the reply itself" }] };
    const told = await asked(t, { m: status(200, body) });
    assertTold(told, { status: 200 });
    assert.equal(told.attempts[0]!["detail"], "the answer is no reply");
    assert.ok(!JSON.stringify([told.log, told.attempts, told.breaker]).includes("itself"));
  });

  it("is told to nobody with logs.provider_messages: false: the status remains", async (t) => {
    const prompt = "a very private prompt";
    for (const streamed of [false, true]) {
      const error = { error: { message: `cannot parse: ${prompt}`, code: 503 } };
      const seen = await asked(
        t,
        { m: streamed ? stream([chunk({ content: "Once" }), error]) : status(502, error) },
        {
          request: { stream: streamed, messages: user(prompt) },
          over: { logs: { provider_messages: false } },
        },
      );
      assert.equal(seen.breaker["last_answer"]["status"], streamed ? 200 : 502);
      assert.deepEqual(Object.keys(seen.breaker["last_answer"]), ["status"]);
      const everything = JSON.stringify(seen);
      assert.ok(!everything.includes(prompt), everything);
      assert.ok(seen.attempts[0]!["detail"].length > 0);
    }
  });

  it("is nothing where the connection breaks: the path is told, and what happened", async (t) => {
    const told = await asked(t, { m: reset });
    assertTold(told, {});
    assert.match(told.attempts[0]!["detail"], /^the connection failed: E/);
  });

  it("is told with a path of the dialect, without its query", async (t) => {
    const { url } = await startProvider(t, status(403, { error: { message: SAID } }));
    const google = { vendor: "gemini", base_url: url, api_key: "g-secret" };
    const config = configFor(url, [], {
      providers: { google },
      models: { g: { provider: "google" } },
    });
    const gw = await startGateway(t, config);
    await (await gw.chat({ model: "g", stream: true, messages: user("hi") })).text();
    const [line] = gw.diagnostics;
    assert.deepEqual(
      [line?.["provider_status"], line?.["provider_path"], line?.["provider_message"]],
      [403, "/v1beta/models/g:streamGenerateContent", SAID],
    );
  });
});
