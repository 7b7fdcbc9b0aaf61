// Who may ask: the Authorization header.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, describe, it } from "node:test";
import {
  configFor,
  demo,
  KEY,
  startGateway,
  user,
  type RunningGateway,
} from "../../support/gateway.ts";
import { silent, startProvider } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { suiteScope } from "../../support/scope.ts";
import { waitFor } from "../../support/wait.ts";

describe("keys", () => {
  const scope = suiteScope();
  const digest = createHash("sha256").update("sk-by-digest").digest("hex");
  let gateway: RunningGateway;
  before(async () => {
    gateway = await startGateway(scope, demo({ keys: [{ account: "a", sha256: digest }] }));
  });
  const request = JSON.stringify({ model: "demo-chat", messages: user("hi") });
  for (const [name, authorization, status, code] of [
    ["none", undefined, 401, "missing_api_key"],
    ["another scheme", "Basic c2stZGVtbw==", 401, "missing_api_key"],
    ["an empty key", "Bearer ", 401, "missing_api_key"],
    ["an unknown key", "Bearer sk-demo2", 401, "invalid_api_key"],
    ["a key in other letters", "Bearer SK-BY-DIGEST", 401, "invalid_api_key"],
    ["bytes beyond ASCII", "Bearer sk-d\u00e9mo", 401, "invalid_api_key"],
    ["a digest of the configuration", `Bearer ${digest}`, 401, "invalid_api_key"],
    ["a key that the configuration knows by its digest", "bEaReR sk-by-digest", 200, undefined],
  ] as const) {
    it(`${name}: ${status} ${code ?? ""}`, async () => {
      const line = authorization === undefined ? "" : `Authorization: ${authorization}\r\n`;
      const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${line}Connection: close\r\n`;
      const bytes = `${head}Content-Length: ${request.length}\r\n\r\n${request}`;
      const answer = await rawRequest(gateway.url, Buffer.from(bytes, "latin1"));
      if (code) {
        assertError(answer, status, code);
        assert.match(answer.headers["www-authenticate"]!, /^Bearer/);
      } else assert.equal(answer.status, status);
    });
  }

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
