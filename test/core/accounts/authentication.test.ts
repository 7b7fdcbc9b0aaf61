// Who may ask: the Authorization header.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, describe, it } from "node:test";
import { demo, startGateway, user, type RunningGateway } from "../../support/gateway.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { suiteScope } from "../../support/scope.ts";

describe("keys", () => {
  const scope = suiteScope();
  const digest = createHash("sha256").update("sk-by-digest").digest("hex");
  let gateway: RunningGateway;
  before(async () => {
    gateway = await startGateway(scope, demo({ keys: [{ account: "a", sha256: digest }] }));
  });
  const request = JSON.stringify({ model: "demo-chat", messages: user("hi") });
  for (const [name, authorization, status, code] of [
    ["another scheme", "Basic c2stZGVtbw==", 401, "missing_api_key"],
    ["an empty key", "Bearer ", 401, "missing_api_key"],
    ["a key in other letters", "Bearer SK-BY-DIGEST", 401, "invalid_api_key"],
    ["bytes beyond ASCII", "Bearer sk-d\u00e9mo", 401, "invalid_api_key"],
    ["a digest of the configuration", `Bearer ${digest}`, 401, "invalid_api_key"],
    ["a key that the configuration knows by its digest", "bEaReR sk-by-digest", 200, undefined],
  ] as const) {
    it(`${name}: ${status} ${code ?? ""}`, async () => {
      const fields = `Host: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\n`;
      const head = `POST /v1/chat/completions HTTP/1.1\r\n${fields}`;
      const bytes = `${head}Content-Length: ${request.length}\r\n\r\n${request}`;
      const answer = await rawRequest(gateway.url, Buffer.from(bytes, "latin1"));
      if (code) {
        assertError(answer, status, code);
        assert.match(answer.headers["www-authenticate"]!, /^Bearer/);
      } else assert.equal(answer.status, status);
    });
  }
});
