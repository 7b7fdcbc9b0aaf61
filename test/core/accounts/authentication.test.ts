// Who may ask: the Authorization header.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFor, demo, KEY, startGateway, user } from "../../support/gateway.ts";
import { silent, startProvider } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { waitFor } from "../../support/wait.ts";

const close = "Connection: close\r\n";

describe("keys", () => {
  const cases: [name: string, authorization: string | undefined, status: number, code: string][] = [
    ["none", undefined, 401, "missing_api_key"],
    ["another scheme", "Basic c2stZGVtbw==", 401, "missing_api_key"],
    ["an empty key", "Bearer ", 401, "missing_api_key"],
    ["an unknown key", "Bearer sk-demo2", 401, "invalid_api_key"],
    ["a key in other letters", "Bearer SK-DEMO", 401, "invalid_api_key"],
    ["bytes beyond ASCII", "Bearer sk-d\u00e9mo", 401, "invalid_api_key"],
  ];
  for (const [name, authorization, status, code] of cases) {
    it(`${name}: ${status} ${code}`, async (t) => {
      const gateway = await startGateway(t, demo());
      const line = authorization === undefined ? "" : `Authorization: ${authorization}\r\n`;
      const answer = await rawRequest(
        gateway.url,
        Buffer.from(
          `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${line}${close}Content-Length: 2\r\n\r\n{}`,
          "latin1",
        ),
      );
      assertError(answer, status, code);
      assert.match(answer.headers["www-authenticate"]!, /^Bearer/);
    });
  }

  it("the scheme's case does not matter, and a sha256 in the configuration is as good as the key", async (t) => {
    const digest = "5e5b9ad3dd0e0a0ae4b3e1a5ba66bb7bbcd4a1e0dd5e6f25bfdd8f9a2c2b4a01";
    const { createHash } = await import("node:crypto");
    const real = createHash("sha256").update("sk-by-digest").digest("hex");
    const gateway = await startGateway(
      t,
      demo({
        keys: [
          { account: "a", sha256: real },
          { account: "b", sha256: digest },
        ],
      }),
    );
    const ask = (authorization: string) =>
      gateway
        .chat({ model: "demo-chat", messages: user("hi") }, { authorization })
        .then((response) => response.status);
    assert.equal(await ask("bEaReR sk-by-digest"), 200);
    assert.equal(await ask(`Bearer ${digest}`), 401);
  });

  it("no key, whole or in part, in any log or body", async (t) => {
    const provider = await startProvider(t, { m: silent });
    const config = configFor(provider.url, ["m"], { timeouts: { first_token_ms: 50 } });
    const gateway = await startGateway(t, config);
    const bodies: string[] = [];
    for (const key of [KEY, "sk-canary-unknown-key"]) {
      for (const body of [{ model: "m", messages: user("hi") }, { model: 1 }, "{"]) {
        const response = await gateway.chat(body, { authorization: `Bearer ${key}` });
        bodies.push(await response.text(), JSON.stringify([...response.headers]));
      }
    }
    await waitFor(() => gateway.access.length === 6, "six access log lines");
    const everything =
      bodies.join() + JSON.stringify(gateway.access) + JSON.stringify(gateway.diagnostics);
    assert.match(everything, /upstream_timeout/);
    for (const secret of [KEY, "sk-canary", "sk-provider", "provider-secret", "lab/", provider.url])
      assert.ok(!everything.includes(secret), secret);
  });
});
