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
  stream as events,
  type Behaviour,
  type Behaviours,
} from "../../../support/provider.ts";

type Json = Record<string, any>;

const SAID = "The tool schema is wrong at $.x";
const SECRET = "sk-CANARY-provider";
const PATH = "/v1/chat/completions";

/** Asks the model "m" once, and gathers what everybody gets to know of it. */
async function asked(t: TestContext, behaviours: Behaviours, request: object = {}, over = {}) {
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

interface Words {
  readonly status?: number;
  readonly message?: string;
}

/** What everybody must know of one failed attempt. */
function assertTold(
  told: Awaited<ReturnType<typeof asked>>,
  { status: httpStatus, message }: Words,
  event = "attempt_failed",
): void {
  const { answer, access, log, breaker, attempts, traced } = told;
  const line = log.find((each) => each["event"] === event)!;
  assert.ok(line, JSON.stringify(log));
  const { provider_status, provider_path, provider_message } = line;
  assert.deepEqual([provider_status, provider_path, provider_message], [httpStatus, PATH, message]);
  const lastAnswer = JSON.parse(JSON.stringify({ status: httpStatus, path: PATH, message }));
  assert.deepEqual(breaker["last_answer"], lastAnswer);
  const [attempt] = attempts;
  assert.deepEqual([attempt!["status"], attempt!["path"]], [httpStatus, PATH]);
  assert.deepEqual(traced, attempts);
  if (message !== undefined) {
    assert.equal(attempt!["detail"], message);
    assert.ok(!(answer + access).includes(message.slice(0, 10)), `a client was told: ${answer}`);
  }
  assert.doesNotMatch(JSON.stringify(told), /CANARY/);
}

describe("what a provider says", () => {
  const said = { error: { message: SAID } };
  const within200 = { error: { message: SAID, code: 503 } };
  const cut = [chunk({ content: "Once" }), { error: { message: `${SAID} ${SECRET}` } }];
  const many = "ab ".repeat(5_000);
  const FINISH = `finish_reason error: [redacted] ${many}`.slice(0, 300);

  for (const [what, m, expected, stream = false, event] of [
    ["of a request that it refuses", status(400, said), { status: 400, message: SAID }],
    ...(
      [
        ["an error that is a text", { error: SAID }, SAID],
        ["a flat error", { object: "error", message: SAID }, SAID],
        ["details", { detail: [{ loc: ["x"], msg: "bad" }] }, '[{"loc":["x"],"msg":"bad"}]'],
        ["JSON of another kind", { fault: { reason: SAID } }, `{"fault":{"reason":"${SAID}"}}`],
        ["a page", "<html>\n502 Bad Gateway</html>", "<html> 502 Bad Gateway</html>"],
        ["a list", [said], SAID],
        ["a text with its key", { error: `key ${SECRET} is wrong` }, "key [redacted] is wrong"],
        ["a very long message", { error: { message: many } }, many.slice(0, 300)],
      ] as const
    ).map(([name, body, message]) => [`in ${name}`, status(502, body), { status: 502, message }]),
    ["in an error inside a 200", status(200, within200), { status: 200, message: SAID }],
    ["in one that is streamed", events([within200]), { status: 200, message: SAID }, true],
    [
      "in an error after the first text, which cuts the reply",
      events(cut),
      { status: 200, message: `${SAID} [redacted]` },
      true,
      "reply_cut",
    ],
    [
      "in a finish reason that means a failure",
      events([chunk({}, `error: ${SECRET} ${many}`)]),
      { status: 200, message: FINISH },
    ],
  ] as readonly (readonly [string, Behaviour, Words, boolean?, string?])[])
    it(`${what} is told with its status and path`, async (t) => {
      assertTold(await asked(t, { m }, { stream }), expected, event);
    });

  it("of a refused request is no fault of the provider", async (t) => {
    const { breaker } = await asked(t, { m: status(400, said) });
    assert.equal(breaker["last_fault"], null);
  });

  it("of its own failure is told with the attempt that another candidate made good", async (t) => {
    const behaviours = { m: status(500, said), fine: speak("Fine.") };
    const told = await asked(t, behaviours, { model: "both" });
    assertTold(told, { status: 500, message: SAID });
    const { model, outcome, ...rest } = told.attempts[1]!;
    assert.deepEqual([model, outcome], ["fine", "completed"]);
    assert.deepEqual(Object.keys(rest), ["provider", "duration_ms"], "nothing of one that worked");
  });

  it("is nothing where a reply is unusable: no part of it is told", async (t) => {
    const told = await asked(t, { m: status(200, { choices: [{ text: "the reply itself" }] }) });
    assertTold(told, { status: 200 });
    assert.equal(told.attempts[0]!["detail"], "the answer is no reply");
    assert.doesNotMatch(JSON.stringify([told.log, told.attempts, told.breaker]), /itself/);
  });

  it("is told to nobody with logs.provider_messages: false: the status remains", async (t) => {
    const prompt = "a very private prompt";
    const logs = { provider_messages: false };
    const error = { error: { message: `cannot parse: ${prompt}`, code: 503 } };
    for (const [m, code, stream] of [
      [status(502, error), 502, false],
      [events([chunk({ content: "Once" }), error]), 200, true],
    ] as const) {
      const seen = await asked(t, { m }, { stream, messages: user(prompt) }, { logs });
      assert.deepEqual(seen.breaker["last_answer"], { status: code });
      assert.ok(!JSON.stringify(seen).includes(prompt), JSON.stringify(seen));
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
    const over = { providers: { google }, models: { g: { provider: "google" } } };
    const gw = await startGateway(t, configFor(url, [], over));
    await (await gw.chat({ model: "g", stream: true, messages: user("hi") })).text();
    const [line] = gw.diagnostics;
    assert.deepEqual(
      [line?.["provider_status"], line?.["provider_path"], line?.["provider_message"]],
      [403, "/v1beta/models/g:streamGenerateContent", SAID],
    );
  });
});
