// What is redacted from a provider's message before operators read it, and what stays. The message
// of a failure reaches the diagnostics log, /status, the spend log and the trace, and never the
// client.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { secretsIn } from "../../../../src/extensions/bounds/redaction/index.ts";
import { createRedact } from "../../../../src/extensions/bounds/redaction/redact.ts";
import { priced, settles } from "../../../support/books.ts";
import { installed, checkConfig } from "../../../support/config.ts";
import { heldNow, startEffort } from "../../../support/effort.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import {
  chunk,
  reset,
  speak,
  startProvider,
  status,
  stream as events,
  type Behaviour,
} from "../../../support/provider.ts";

const redact = createRedact([], new Set());

describe("what looks like a key", () => {
  const HIDDEN: [name: string, text: string, shown: string][] = [
    ["an OpenAI key", "Wrong API key provided: sk-CANARY-1.", "Wrong API key provided: [redacted]"],
    ["a masked one", "bad sk-CANAR****e2c9 here", "bad [redacted] here"],
    ["one in quotes", '{"key":"sk-CANARY","code":1}', '{"key":"[redacted]","code":1}'],
    ["a Groq key", "gsk_CANARYCANARY was revoked", "[redacted] was revoked"],
    ["an xAI key", "xai-CANARYCANARY", "[redacted]"],
    ["a Google key", "key AIzaSyCANARY_CANARY-1 is not valid", "key [redacted] is not valid"],
    ["a bearer token", "Authorization was Bearer CANARY-1", "Authorization was Bearer [redacted]"],
    ["an authorization header", "Authorization: Basic CANARY", "Authorization: [redacted]"],
    ["a separate header", "x-api-key: CANARY", "x-api-key: [redacted]"],
    ["a parameter of a URL", "GET /v1?key=CANARY&x=1", "GET /v1?key=[redacted]&x=1"],
    ["a member of JSON", '{"access_token": "CANARY"}', '{"access_token": "[redacted]"}'],
    ["a password", "password: CANARY", "password: [redacted]"],
    ["a password by its short name", "pass=CANARY", "pass=[redacted]"],
    ["a Slack token", "xoxb-12-CANARY", "[redacted]"],
    ["a JSON web token with a short end", "eyJhbGciOi.eyJDQU5B.CA-NA_RY", "[redacted]"],
    ["user and password of a URL", "redis://me:CAN/ARY@host:1/0", "redis://[redacted]@host:1/0"],
    ["base64", "dGhpcyBpcyBhIENBTkFSWQ==", "[redacted]"],
    ["letters alone, 20 of them", "abcdefghijklmnopqrst", "[redacted]"],
    ["an AWS key", "AKIACANARY0EXAMPLE00", "[redacted]"],
    ["a UUID", "0b5d8b4e-1f3c-4a56-9d2e-3c5a7f9b1d2e", "[redacted]"],
    ["a key that a control character divides", "sk-CAN\u0000ARY", "[redacted]"],
    ["a key that an invisible character divides", "sk-\u200bCANARY", "[redacted]"],
  ];
  it("is redacted", () => {
    for (const [name, text, shown] of HIDDEN) assert.equal(redact(text), shown, name);
  });

  const KEPT = [
    "The model `claude-sonnet-4-5-20250929` does not exist",
    "Qwen/Qwen3-235B-A22B-Instruct-2507 is overloaded",
    "This model's maximum context length is 8192 tokens: you asked for 9000",
    "max_tokens: 100000 is above the limit",
    "generate_content_free_tier_requests, limit: 50",
    "Missing bearer token",
    "InvalidParameterException: GenerateContentRequestsPerMinute was exceeded",
    "模型不存在,请检查模型代码。",
    "no 123456789012345 but characteristically",
    "AUTHENTICATION_REQUIRED in batch_of_123456789012345",
    "A task-based risk-free plan 🙂",
    "",
  ];
  it("is all that is redacted: other texts stay unchanged", () => {
    for (const text of KEPT) assert.equal(redact(text), text);
  });
});

describe("secrets of the configuration", () => {
  const base_url = "http://127.0.0.1:1";
  const row = (api_key: string) => ({ dialect: "openai", base_url, api_key });
  const [other, longer, local] = [row('a"b/c+d'), row("horse-battery"), row("x")];
  const config = checkConfig(
    configFor(base_url, ["m"], {
      providers: { lab: { api_key: "horse" }, other, longer, local },
      keys: ["client-key", "a/client+key"].map((key) => ({ account: "acme", key })),
      usage: { store: "postgres://me:p%40ss@127.0.0.1/books" },
    }),
  );
  const digests = new Set(config.keys.map(({ digest }) => digest));
  const own = createRedact(secretsIn(config, installed), digests);
  const CASES: [name: string, text: string, shown: string][] = [
    ["a provider's key", "no horse here", "no [redacted] here"],
    ["inside a word", "seahorses", "sea[redacted]s"],
    ["the longer of two", "horse-battery", "[redacted]"],
    ["in a URL", `?k=${encodeURIComponent('a"b/c+d')}`, "?k=[redacted]"],
    ["in JSON", JSON.stringify({ k: 'a"b/c+d' }), '{"k":"[redacted]"}'],
    ["in base64", Buffer.from("horse-battery").toString("base64"), "[redacted]=="],
    ["a client's key", 'You said "client-key", client-key.', 'You said "[redacted]", [redacted]'],
    ["a client's key in a word", '\\"client-key\\" x:client-key', '\\"[redacted]\\" x:[redacted]'],
    ["one of several pieces", "You said a/client+key.", "You said [redacted]"],
    ["one in an address", "https://h/?k=client-key&b=1|z", "https://h/?k=[redacted]&b=1|z"],
    ["a database's password, as written and as meant", "p%40ss p@ss", "[redacted] [redacted]"],
    ["no placeholder", "x marks the text", "x marks the text"],
  ];
  it("are redacted", () => {
    for (const [name, text, shown] of CASES) assert.equal(own(text), shown, name);
  });
});

describe("a redacted message", () => {
  it("is one line without control characters", () => {
    const forged = 'a\r\n{"event":"x"}\u001b[31mred\u202e\u0000\u0085b\u2028c\ud800';
    assert.equal(redact(forged), 'a  {"event":"x"}[31mred b c');
  });

  it("ends after 300 characters, and never inside one", () => {
    assert.equal(redact("a b ".repeat(200)).length, 300);
    assert.equal(redact(`${"a ".repeat(149)}x🙂`), `${"a ".repeat(149)}x`);
  });

  it("retains no memory of the text that it was cut from", () => {
    const before = heldNow();
    const shown = Array.from({ length: 20 }, (_, at) => redact(at + "ab ".repeat(500_000)));
    assert.ok(heldNow() - before < 5_000_000, `${shown.length} texts`);
  });

  it("shows no half of a secret that was cut before it was searched", () => {
    const secret = "CANARY-secret";
    const own = createRedact([secret], new Set());
    // If a long run becomes a short mark, the end of the searched text comes into view.
    for (let before = 4_060; before < 4_100; before += 1)
      for (const sign of [" ", "."])
        assert.doesNotMatch(own(`${"a".repeat(before)}${sign}${secret}${secret}`), /CANA/);
  });

  it("takes linear time, whatever the text is", () => {
    const digests = new Set(["0".repeat(64)]);
    const busy = createRedact(["secret-of-ours"], digests);
    const words = "a,.,://,://a@,key=,token :,Bearer,sk-,a-,!,\u0000,a1".split(",");
    const hostile = [" ", ...words, ...words.map((word) => `${word} `)];
    const effort = startEffort();
    for (const piece of hostile) busy(piece.repeat(1_000_000));
    const took = effort();
    assert.ok(took < 1_600, `${hostile.length} texts of a million pieces took ${took} units`);
  });
});

type Json = Record<string, any>;

const SAID = "The tool schema is wrong at $.x";
const SECRET = "sk-CANARY-provider";
const PATH = "/chat/completions";

/** Sends one request to the model "m", and collects what each place shows of it. */
async function asked(t: TestContext, m: Behaviour, request: object = {}, more: object = {}) {
  const aliases = { both: { models: ["m", "fine"] } };
  const over = { providers: { lab: { api_key: SECRET } }, aliases, ...more };
  const { dir, gw, ask } = await priced(t, { m, fine: speak("Fine.") }, over);
  const { id, headers, text } = await ask(request);
  await gw.accessOf(id);
  const admin = gw.gateway.adminAddress();
  const { models } = await json(await fetch(`${admin}/status`));
  const trace = await json(await fetch(`${admin}/trace?request_id=${id}`));
  return {
    answer: JSON.stringify([...headers]) + text,
    access: JSON.stringify(gw.access),
    log: gw.diagnostics,
    breaker: models[0].breaker as Json,
    attempts: settles(dir)[0]!["attempts"] as Json[],
    traced: trace.spend[0].attempts as Json[],
  };
}

type Words = Readonly<{ status?: number; message?: string }>;

/** What all these places must show of one failed attempt. */
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
  const inside = { error: { message: SAID, code: 503 } };
  const many = "ab ".repeat(5_000);
  const failed = chunk({}, `error: ${SECRET} ${many}`);
  const FINISH = `finish_reason error: [redacted] ${many}`.slice(0, 300);

  const bad = (body: unknown) => status(502, body);

  for (const [where, code, message, m, stream = false] of [
    ["a refusal", 400, SAID, status(400, said)],
    ["an error that is a string", 502, SAID, bad({ error: SAID })],
    ["a flat error", 502, SAID, bad({ object: "error", message: SAID })],
    ["details", 502, '[{"loc":["x"],"msg":"bad"}]', bad({ detail: [{ loc: ["x"], msg: "bad" }] })],
    ["JSON of another kind", 502, `{"fault":{"it":"${SAID}"}}`, bad({ fault: { it: SAID } })],
    ["a page", 502, "<html> 502 Bad Gateway</html>", bad("<html>\n502 Bad Gateway</html>")],
    ["a list", 502, SAID, bad([said])],
    ["a very long message", 502, many.slice(0, 300), bad({ error: { message: many } })],
    ["an error inside a 200", 200, SAID, status(200, inside)],
    ["one that is streamed", 200, SAID, events([inside]), true],
    ["a finish reason that means a failure", 200, FINISH, events([failed])],
  ] as readonly (readonly [string, number, string, Behaviour, boolean?])[])
    it(`in ${where} is shown with its status and path`, async (t) => {
      assertTold(await asked(t, m, { stream }), { status: code, message });
    });

  it("in an error after the first text is shown with the reply that was cut", async (t) => {
    const m = events([chunk({ content: "Once" }), { error: { message: `${SAID} ${SECRET}` } }]);
    const told = await asked(t, m, { stream: true });
    assertTold(told, { status: 200, message: `${SAID} [redacted]` }, "reply_cut");
  });

  it("of a failed attempt is shown with that attempt, even if another candidate then served", async (t) => {
    const told = await asked(t, status(500, said), { model: "both" });
    assertTold(told, { status: 500, message: SAID });
    const { model, outcome, ...rest } = told.attempts[1]!;
    assert.deepEqual([model, outcome], ["fine", "completed"]);
    assert.deepEqual(Object.keys(rest), ["provider", "duration_ms"], "a success has no details");
  });

  it("is empty if a reply is unusable, and no part of that reply is shown", async (t) => {
    const told = await asked(t, status(200, { choices: [{ text: "the reply itself" }] }));
    assertTold(told, { status: 200 });
    assert.equal(told.attempts[0]!["detail"], "the response is not a completion");
    assert.doesNotMatch(JSON.stringify([told.log, told.attempts, told.breaker]), /itself/);
  });

  it("is shown nowhere with logs.provider_messages: false, only its status", async (t) => {
    const prompt = "a very private prompt";
    const logs = { provider_messages: false };
    const error = { error: { message: `cannot parse: ${prompt}`, code: 503 } };
    for (const [m, code, stream] of [
      [status(502, error), 502, false],
      [events([chunk({ content: "Once" }), error]), 200, true],
    ] as const) {
      const seen = await asked(t, m, { stream, messages: user(prompt) }, { logs });
      assert.deepEqual(seen.breaker["last_answer"], { status: code });
      assert.ok(!JSON.stringify(seen).includes(prompt), JSON.stringify(seen));
      assert.ok(seen.attempts[0]!["detail"].length > 0);
    }
  });

  it("is empty if the connection fails, and the path and the cause are shown", async (t) => {
    const told = await asked(t, reset);
    assertTold(told, {});
    assert.match(told.attempts[0]!["detail"], /^the connection failed: E/);
  });

  it("is shown with the path of the dialect, without its query", async (t) => {
    const { url } = await startProvider(t, status(403, { error: { message: SAID } }));
    const google = { vendor: "gemini", base_url: url, api_key: "g-secret" };
    const models = { g: { provider: "google" } };
    const gw = await startGateway(t, configFor(url, [], { providers: { google }, models }));
    await (await gw.chat({ model: "g", stream: true, messages: user("hi") })).text();
    const { provider_status, provider_path, provider_message } = gw.diagnostics[0]!;
    assert.deepEqual([provider_status, provider_message], [403, SAID]);
    assert.equal(provider_path, "/v1beta/models/g:streamGenerateContent");
  });
});
