// Calls from pages of other origins: the headers of every response and the answers to preflights,
// with cors and without it; which origins a configuration may name; and reload.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { ValidationError, pathText } from "../../../../src/core/schema/checker.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor, demo, KEY, startGateway, user } from "../../../support/gateway.ts";
import { chunk, silent, speak, startProvider, status, stream } from "../../../support/provider.ts";
import { rawRequest, type RawAnswer } from "../../../support/raw.ts";

const PAGE = "https://app.example.com";
const OTHER = "https://other.example.com";
const CHAT = "/v1/chat/completions";

const cors = (origins: unknown) => ({ server: { cors: { origins } } });

/** The headers of a response that CORS has to do with. */
const corsOf = ({ headers }: Response | RawAnswer): Record<string, string> => {
  const all = headers instanceof Headers ? [...headers] : Object.entries(headers);
  return Object.fromEntries(all.filter(([name]) => /^(access-control-|vary$)/.test(name)));
};

/** What each response to the page has. */
const ALLOWED = {
  "access-control-allow-origin": PAGE,
  "access-control-expose-headers": "X-Request-Id, *",
  vary: "Origin",
};

/** A request with the origin of a page. */
const from = (origin: string, more: Record<string, string> = {}) => ({
  headers: { origin, ...more },
});

const preflight = (url: string, headers: Record<string, string>) =>
  fetch(url, {
    method: "OPTIONS",
    headers: { "access-control-request-method": "POST", ...headers },
  });

async function withProvider(t: TestContext, over: object) {
  const provider = await startProvider(t, {
    fine: speak("Fine."),
    broken: status(500),
    cut: stream([chunk({ content: "Once" })], "cut"),
  });
  const config = configFor(provider.url, ["fine", "broken", "cut"], over);
  return startGateway(t, config);
}

describe("a response to a page of an allowed origin", () => {
  it("has the headers, whole or streamed, also if the stream is cut", async (t) => {
    const gw = await withProvider(t, cors([OTHER, PAGE]));
    for (const request of [
      { model: "fine" },
      { model: "fine", stream: true },
      { model: "cut", stream: true },
    ]) {
      const response = await gw.chat({ ...request, messages: user("hi") }, { origin: PAGE });
      assert.equal(response.status, 200);
      assert.deepEqual(corsOf(response), ALLOWED);
      await response.text();
    }
  });

  it("has the headers if it is an error, whatever went wrong", async (t) => {
    const over = { ...cors([PAGE]), accounts: { acme: { rpm: 2 } } };
    const gw = await withProvider(t, over);
    const ask = (body: unknown, headers = {}) => gw.chat(body, { origin: PAGE, ...headers });
    const request = { model: "broken", messages: user("hi") };
    const responses = {
      500: await ask(request),
      400: await ask("{"),
      429: await ask(request),
      401: await ask(request, { authorization: "Bearer sk-nobody" }),
      404: await fetch(`${gw.url}/chat/completions`, { method: "POST", ...from(PAGE) }),
      405: await fetch(gw.url + CHAT, from(PAGE)),
    };
    for (const [expected, response] of Object.entries(responses)) {
      if (expected === "500") assert.ok(response.status >= 500);
      else assert.equal(String(response.status), expected);
      assert.deepEqual(corsOf(response), ALLOWED, expected);
    }
    assert.ok(responses[429].headers.get("retry-after"));
  });

  it("has the headers if the gateway stops before it could answer", async (t) => {
    const provider = await startProvider(t, silent);
    const gw = await startGateway(t, configFor(provider.url, ["m"], cors([PAGE])));
    const answer = gw.chat({ model: "m", messages: user("hi") }, { origin: PAGE });
    await provider.nth(0);
    await gw.gateway.close(0);
    const response = await answer;
    assert.deepEqual([response.status, corsOf(response)], [503, ALLOWED]);
  });
});

describe("a response to others", () => {
  it("has nothing but Vary", async (t) => {
    const gw = await startGateway(t, demo(cors([PAGE])));
    // Another origin, none of its own, another port, one that begins with an allowed one, no page.
    for (const origin of [OTHER, "null", `${PAGE}:8443`, `${PAGE}.evil.example`, undefined]) {
      const headers: Record<string, string> = origin === undefined ? {} : { origin };
      const response = await fetch(`${gw.url}/healthz`, { headers });
      assert.deepEqual([response.status, corsOf(response)], [200, { vary: "Origin" }], origin);
    }
    const twice = `Origin: ${PAGE}\r\n`.repeat(2);
    const head = `GET /healthz HTTP/1.1\r\nHost: x\r\n${twice}Connection: close\r\n\r\n`;
    assert.deepEqual(corsOf(await rawRequest(gw.url, head)), { vary: "Origin" });
  });

  it('with "*" every response is for all origins, and does not vary', async (t) => {
    const gw = await startGateway(t, demo(cors("*")));
    for (const headers of [{ origin: OTHER }, { origin: "null" }, {}]) {
      assert.deepEqual(corsOf(await fetch(`${gw.url}/healthz`, { headers })), {
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "X-Request-Id, *",
      });
    }
  });
});

describe("a preflight", () => {
  const ANSWER = {
    "access-control-allow-headers": "*, Authorization",
    "access-control-allow-methods": "GET, HEAD, POST",
    "access-control-allow-origin": PAGE,
    "access-control-max-age": "7200",
    vary: "Origin",
  };

  it("is answered with all headers, and repeats nothing that was asked for", async (t) => {
    const gw = await startGateway(t, demo(cors([PAGE])));
    for (const asked of ["authorization,x-stainless-arch", "cookie, x-evil", "*", ""]) {
      const response = await preflight(gw.url + CHAT, {
        origin: PAGE,
        "access-control-request-headers": asked,
      });
      assert.equal(response.status, 204);
      assert.equal(await response.text(), "");
      assert.deepEqual(corsOf(response), ANSWER, asked);
      assert.match(response.headers.get("x-request-id")!, /^req_/);
      const line = await gw.accessOf(response.headers.get("x-request-id")!);
      assert.deepEqual([line["method"], line["path"], line["status"]], ["OPTIONS", CHAT, 204]);
    }
  });

  it("is answered without a key, without a place in the limits, and at wrong paths too", async (t) => {
    const gw = await startGateway(t, demo({ ...cors([PAGE]), limits: { rpm: 1 } }));
    for (const path of [CHAT, CHAT, "/v1/models", "/chat/completions"]) {
      const response = await preflight(gw.url + path, { origin: PAGE });
      assert.deepEqual([response.status, corsOf(response)], [204, ANSWER], path);
    }
    const body = { model: "demo-chat", messages: user("hi") };
    const served = await gw.chat(body, { origin: PAGE, authorization: "Bearer sk-demo" });
    const refused = await gw.chat(body, { origin: PAGE, authorization: `Bearer ${KEY}` });
    assert.deepEqual([served.status, refused.status], [200, 401]);
  });

  it("of another origin, and OPTIONS that is none, are answered as without cors", async (t) => {
    const gw = await startGateway(t, demo(cors([PAGE])));
    const other = await preflight(gw.url + CHAT, { origin: OTHER });
    assert.deepEqual([other.status, corsOf(other)], [405, { vary: "Origin" }]);
    assert.equal(other.headers.get("allow"), "POST");
    const plain = await fetch(gw.url + CHAT, { method: "OPTIONS", ...from(PAGE) });
    assert.deepEqual([plain.status, corsOf(plain)], [405, ALLOWED]);
  });

  it("is not answered by the admin listener", async (t) => {
    const gw = await startGateway(t, demo(cors("*")));
    const admin = gw.gateway.adminAddress()!;
    const response = await preflight(`${admin}/status`, { origin: PAGE });
    assert.ok(response.status >= 400);
    assert.deepEqual(corsOf(response), {});
    assert.deepEqual(corsOf(await fetch(`${admin}/status`)), {});
  });
});

describe("without server.cors", () => {
  it("no response differs by a byte for a page, and a preflight is a wrong method", async (t) => {
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

  it("a reload puts it in force, changes it, and takes it away", async (t) => {
    const settings = (over: object) => demo({ data_dir: gw.dir, ...over });
    const gw = { dir: "data", ...(await startGateway(t, demo())) };
    const seen = async () => {
      const response = await fetch(`${gw.url}/healthz`, from(PAGE));
      return corsOf(response)["access-control-allow-origin"];
    };
    const found = [await seen()];
    for (const over of [cors([PAGE]), cors("*"), cors([OTHER]), {}]) {
      gw.gateway.reload(checkConfig(settings(over)));
      found.push(await seen());
    }
    assert.deepEqual(found, [undefined, PAGE, "*", undefined, undefined]);
  });
});

describe("server.cors.origins", () => {
  const faultsOf = (origins: unknown): string[][] => {
    try {
      checkConfig(demo({ server: { cors: { origins } } }));
      return [];
    } catch (error) {
      assert.ok(error instanceof ValidationError);
      return error.issues.map(({ path, message }) => [pathText(path), message]);
    }
  };

  it("takes origins as browsers send them", () => {
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

  it("refuses all others, and says what is expected", () => {
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
      assert.deepEqual(faultsOf([PAGE, bad]), [["server.cors.origins[1]", expected]], bad);
    assert.match(faultsOf(PAGE).join(), /^server.cors.origins,expected a list of origins, or "\*"/);
    assert.match(faultsOf([]).join(), /^server.cors.origins,expected/);
    assert.match(faultsOf([PAGE, 1]).join(), /^server.cors.origins\[1\],expected a string/);
    assert.deepEqual(faultsOf([PAGE, OTHER, PAGE]), [
      ["server.cors.origins[2]", "stands in the list twice"],
    ]);
    assert.match(faultsOf(undefined).join(), /^server.cors.origins,is required/);
    const more = () => checkConfig(demo({ server: { cors: { origins: "*", headers: [] } } }));
    assert.throws(more, /server.cors.headers/);
    assert.ok(checkConfig(demo({ server: { cors: null } })));
  });

  it("reports each wrong one of a list", () =>
    assert.deepEqual(
      faultsOf(["a", PAGE, "b"]).map(([path]) => path),
      ["server.cors.origins[0]", "server.cors.origins[2]"],
    ));
});
