// CORS: the headers of every response and of preflight responses, with cors and without it; which
// origins a configuration may name; and reload.

import assert from "node:assert/strict";
import { it } from "node:test";
import { checkConfig } from "../../../support/config.ts";
import { demo, startGateway, startWith, user } from "../../../support/gateway.ts";
import { chunk, silent, status, stream } from "../../../support/provider.ts";
import { rawRequest, type RawAnswer } from "../../../support/raw.ts";
import { issueLines } from "../../../support/token-service.ts";

const PAGE = "https://app.example.com";
const OTHER = "https://other.example.com";
const CHAT = "/v1/chat/completions";

const cors = (origins: unknown) => ({ server: { cors: { origins } } });

/** The CORS headers of a response. */
const corsOf = ({ headers }: Response | RawAnswer): Record<string, string> => {
  const all = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(all.filter(([name]) => /^(access-control-|vary$)/.test(name)));
};

/** The CORS headers of each response to the allowed page. */
const ALLOWED = {
  "access-control-allow-origin": PAGE,
  "access-control-expose-headers": "X-Request-Id, *",
  vary: "Origin",
};

/** Options of a request from a page with this origin. */
const from = (origin: string) => ({ headers: { origin } });

const preflight = (url: string, headers: Record<string, string>) =>
  fetch(url, {
    method: "OPTIONS",
    headers: { "access-control-request-method": "POST", ...headers },
  });

it("a response to an allowed origin has the headers, even if it is a broken stream or an error", async (t) => {
  const cut = stream([chunk({ content: "Once" })], "cut");
  const over = { ...cors([OTHER, PAGE]), accounts: { acme: { rpm: 4 } } };
  const gw = await startWith(t, { broken: status(500), cut, silent }, over);
  const ask = (model: string, more: object = {}) =>
    gw.chat({ model, messages: user("hi"), ...more }, { origin: PAGE });
  const stopped = ask("silent");
  await gw.provider.nth(0);
  const responses: Record<string, Response> = {
    200: await ask("cut", { stream: true }),
    503: await ask("broken"),
    400: await gw.chat("{", { origin: PAGE }),
    429: await ask("broken"),
    401: await gw.chat("{}", { origin: PAGE, authorization: "Bearer sk-nobody" }),
    404: await fetch(`${gw.url}/chat/completions`, { method: "POST", ...from(PAGE) }),
    405: await fetch(gw.url + CHAT, from(PAGE)),
  };
  await gw.gateway.close(0);
  const before = await stopped;
  assert.deepEqual([before.status, corsOf(before)], [503, ALLOWED], "the gateway stopped");
  for (const [expected, response] of Object.entries(responses))
    assert.deepEqual([String(response.status), corsOf(response)], [expected, ALLOWED]);
});

it("a response to another origin has only Vary", async (t) => {
  const gw = await startGateway(t, demo(cors([PAGE])));
  // Another origin, "null", another port, a longer host with an allowed prefix, no origin.
  for (const origin of [OTHER, "null", `${PAGE}:8443`, `${PAGE}.evil.example`, undefined]) {
    const response = await fetch(`${gw.url}/healthz`, origin ? from(origin) : {});
    assert.deepEqual([response.status, corsOf(response)], [200, { vary: "Origin" }], origin);
  }
  const twice = `Origin: ${PAGE}\r\n`.repeat(2);
  const head = `GET /healthz HTTP/1.1\r\nHost: x\r\n${twice}Connection: close\r\n\r\n`;
  assert.deepEqual(corsOf(await rawRequest(gw.url, head)), { vary: "Origin" });
});

it('with "*" every origin is allowed, without Vary; the admin listener sends no CORS headers', async (t) => {
  const gw = await startGateway(t, demo(cors("*")));
  const { vary: _, ...allowed } = { ...ALLOWED, "access-control-allow-origin": "*" };
  for (const origin of [from(OTHER), from("null"), {}])
    assert.deepEqual(corsOf(await fetch(`${gw.url}/healthz`, origin)), allowed);
  const admin = `${gw.gateway.adminAddress()!}/status`;
  const response = await preflight(admin, { origin: PAGE });
  assert.ok(response.status >= 400);
  for (const answer of [response, await fetch(admin)]) assert.deepEqual(corsOf(answer), {});
});

const ANSWER = {
  "access-control-allow-headers": "*, Authorization",
  "access-control-allow-methods": "GET, HEAD, POST",
  "access-control-allow-origin": PAGE,
  "access-control-max-age": "7200",
  vary: "Origin",
};

it("a preflight gets all headers, without a key, a concurrency slot or a known path", async (t) => {
  const gw = await startGateway(t, demo({ ...cors([PAGE]), limits: { rpm: 1 } }));
  for (const [path, asked] of [
    [CHAT, "authorization,x-stainless-arch"],
    [CHAT, "cookie, x-evil"],
    ["/v1/models", "*"],
    ["/chat/completions", ""],
  ] as const) {
    const headers = { origin: PAGE, "access-control-request-headers": asked };
    const response = await preflight(gw.url + path, headers);
    assert.deepEqual([response.status, await response.text()], [204, ""]);
    assert.deepEqual(corsOf(response), ANSWER, asked);
    const line = await gw.accessOf(response.headers.get("x-request-id")!);
    assert.deepEqual([line["method"], line["path"], line["status"]], ["OPTIONS", path, 204]);
  }
  const body = { model: "demo-chat", messages: user("hi") };
  const served = await gw.chat(body, { origin: PAGE, authorization: "Bearer sk-demo" });
  assert.equal(served.status, 200);
});

it("another origin's preflight, and an OPTIONS request that is no preflight, are answered as without cors", async (t) => {
  const gw = await startGateway(t, demo(cors([PAGE])));
  const other = await preflight(gw.url + CHAT, { origin: OTHER });
  assert.deepEqual([other.status, corsOf(other)], [405, { vary: "Origin" }]);
  assert.equal(other.headers.get("allow"), "POST");
  const plain = await fetch(gw.url + CHAT, { method: "OPTIONS", ...from(PAGE) });
  assert.deepEqual([plain.status, corsOf(plain)], [405, ALLOWED]);
});

it("without server.cors an Origin header changes no byte, and a preflight gets 405", async (t) => {
  const gw = await startGateway(t, demo());
  const bytes = async (more: string) => {
    const head = "Host: x\r\nX-Request-Id: req-same\r\nConnection: close\r\n";
    const { text } = await rawRequest(gw.url, `GET /v1/models HTTP/1.1\r\n${head}${more}\r\n`);
    return text.replace(/Date: [^\r]+/, "");
  };
  const without = await bytes("");
  assert.equal(await bytes(`Origin: ${PAGE}\r\n`), without);
  assert.doesNotMatch(without, /vary|access-control/i);
  const response = await preflight(gw.url + CHAT, { origin: PAGE });
  assert.deepEqual([response.status, corsOf(response)], [405, {}]);
});

it("a reload enables, changes and disables server.cors", async (t) => {
  const gw = await startGateway(t, demo());
  const found: unknown[] = [];
  for (const over of [{}, cors([PAGE]), cors("*"), cors([OTHER]), {}]) {
    gw.gateway.reload(checkConfig(demo({ data_dir: "data", ...over })));
    const response = await fetch(`${gw.url}/healthz`, from(PAGE));
    found.push(corsOf(response)["access-control-allow-origin"]);
  }
  assert.deepEqual(found, [undefined, PAGE, "*", undefined, undefined]);
});

const faultsOf = (origins: unknown): string[] =>
  issueLines(() => checkConfig(demo(cors(origins)))).map((line) =>
    line.replace("server.cors.origins", ""),
  );

it("server.cors.origins accepts origins as browsers send them", () => {
  for (const good of [
    PAGE,
    "http://localhost:3000",
    "http://127.0.0.1:8080",
    "http://[::1]:3000",
    "https://xn--bcher-kva.example",
    "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
    "tauri://localhost",
  ])
    assert.deepEqual(faultsOf([good]), [], good);
});

it("server.cors.origins rejects all others, and says what is expected", () => {
  const expected = `expected an origin exactly as browsers send it: scheme, host and port, such as ${PAGE}`;
  for (const bad of [
    ...["/", "/chat", "?x=1", "#x", ":443"].map((more) => PAGE + more),
    "https://App.Example.com",
    "HTTPS://app.example.com",
    "http://app.example.com:80",
    "https://user:CANARY@app.example.com",
    "https://b\u00fccher.example",
    ` ${PAGE}`,
    "tauri://localhost/",
    "app.example.com",
    "localhost:3000",
    "null",
    "file:///srv/page.html",
    "https://",
    "data:text/html,x",
    "https://*.example.com",
    "*",
    "https://app.example.com:99999",
    "tauri://localhost:99999",
    "tauri://local*host",
    "tauri://Localhost:",
  ])
    assert.deepEqual(faultsOf([PAGE, bad]), [`[1]: ${expected}`], bad);
  for (const [origins, faults] of [
    [PAGE, /^: expected a list of origins, or "\*"/],
    [[], /^: expected/],
    [[PAGE, 1], /^\[1\]: expected a string/],
    [undefined, /^: is required/],
  ] as const)
    assert.match(faultsOf(origins).join(), faults);
  assert.deepEqual(faultsOf(["a", PAGE, "b"]), [`[0]: ${expected}`, `[2]: ${expected}`]);
  assert.deepEqual(faultsOf([PAGE, OTHER, PAGE]), ["[2]: is in the list twice"]);
  const more = () => checkConfig(demo({ server: { cors: { origins: "*", headers: [] } } }));
  assert.throws(more, /server.cors.headers/);
  assert.ok(checkConfig(demo({ server: { cors: null } })));
});
