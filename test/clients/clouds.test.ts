// The clouds' own Python libraries beside this gateway: the same signature from botocore, the same
// events from its reader of frames, and tokens for google-auth and azure-identity from the servers
// that the suite's tests believe.

import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { signedHeaders } from "../../src/extensions/providers/credentials/aws/signature.ts";
import { eventStream } from "../../src/extensions/providers/converse/event-stream.ts";
import { eventFrame } from "../support/event-stream.ts";
import { folder } from "../support/folder.ts";
import { certificate } from "../support/certificate.ts";
import { asksFor, startTokenService } from "../support/token-service.ts";
import { noPython, runPython, scriptAt } from "./lab.ts";

/** google-auth states Google's own address as the audience, whatever the key file says. */
const AUDIENCE = "https://oauth2.googleapis.com/token";

async function ask(what: string, given: object): Promise<unknown> {
  const args = [scriptAt("clouds.py"), what, JSON.stringify(given)];
  const { code, output } = await runPython(`the cloud's own ${what}`, args);
  assert.equal(code, 0, output);
  return JSON.parse(output);
}

describe("the clouds' own libraries", { skip: noPython() }, () => {
  it("botocore signs each request as the gateway does", async () => {
    const host = "https://bedrock-runtime.us-east-1.amazonaws.com";
    for (const [path, service, token] of [
      [
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0/converse",
        "bedrock",
        "a/b==",
      ],
      ["/v1/chat/completions", "bedrock-mantle", undefined],
      ["/v1/chat?b=2&a=1%202", "bedrock", undefined],
    ] as const) {
      const given = {
        url: host + path,
        body: '{"text":"Grüße, 世界"}',
        service,
        region: "us-east-1",
        now: Date.parse("2026-07-01T12:30:00Z"),
      };
      const keys = { accessKeyId: "AKID", secretAccessKey: "s3cret/Key+", sessionToken: token };
      const own = signedHeaders(
        { ...given, headers: { "Content-Type": "application/json" } },
        keys,
        given,
      );
      const theirs = await ask("signature", { ...given, id: "AKID", secret: "s3cret/Key+", token });
      const { "X-Amz-Date": date, Authorization } = own;
      assert.deepEqual(theirs, { "X-Amz-Date": date, Authorization }, path);
    }
  });

  it("botocore reads the same events from the same frames", async () => {
    const bytes = Buffer.concat([
      eventFrame("messageStart", { role: "assistant" }),
      eventFrame("contentBlockDelta", { delta: { text: "Grüße" } }),
    ]);
    const theirs = (await ask("frames", { hex: bytes.toString("hex") })) as [string, string][];
    const own = eventStream.createReader().push(bytes);
    const expected = theirs.map(([type, payload]) => `{"${type}":${payload}}`);
    assert.deepEqual(own, expected);
  });

  it("azure-identity is let in by the servers that let the gateway in", async (t) => {
    const scope = "https://ai.azure.com/.default";
    const client = { client_id: "an app" };
    const query = (version: string) => ({
      "api-version": version,
      resource: "https://ai.azure.com",
      ...client,
    });
    const appService = await startTokenService(
      t,
      (req) =>
        asksFor(req, "/msi", query("2019-08-01")) && req.headers["x-identity-header"] === "secret",
    );
    const env = { IDENTITY_ENDPOINT: `${appService.url}/msi`, IDENTITY_HEADER: "secret" };
    assert.equal(await ask("identity", { scope, ...client, env }), "token-1");
    const metadata = await startTokenService(
      t,
      (req) =>
        asksFor(req, "/metadata/identity/oauth2/token", query("2018-02-01")) &&
        req.headers["metadata"] === "true",
    );
    const machine = { AZURE_POD_IDENTITY_AUTHORITY_HOST: metadata.url };
    assert.equal(await ask("identity", { scope, ...client, env: machine }), "token-1");
    const { cert_file, key_file } = certificate();
    const tls = { cert: readFileSync(cert_file), key: readFileSync(key_file) };
    const entra = await startTokenService(
      t,
      (req, form) =>
        req.url === "/a-tenant/oauth2/v2.0/token" &&
        form.get("grant_type") === "client_credentials" &&
        form.get("client_id") === "an app" &&
        form.get("client_secret") === "a~secret" &&
        form.get("scope") === scope,
      { tls },
    );
    const application = { authority: entra.url, ca: cert_file, tenant: "a-tenant" };
    const secret = "a~secret";
    const given = String(await ask("application", { scope, ...client, ...application, secret }));
    assert.match(given, /^token-/);
  });

  it("google-auth is let in by the server that lets the gateway in", async (t) => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const private_key = privateKey.export({ type: "pkcs8", format: "pem" });
    const publicKey = createPublicKey(createPrivateKey(private_key));
    const tokens = await startTokenService(t, (_req, form) => {
      const [head = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
      const { aud, scope, iss } = JSON.parse(Buffer.from(claims, "base64url").toString());
      const isSigned = verify(
        "sha256",
        Buffer.from(`${head}.${claims}`),
        publicKey,
        Buffer.from(signature, "base64url"),
      );
      const expected = [AUDIENCE, "https://www.googleapis.com/auth/cloud-platform", "a@p"];
      return isSigned && [aud, scope, iss].join() === expected.join();
    });
    const file = join(folder(), "sa.json");
    const account = {
      type: "service_account",
      client_email: "a@p",
      private_key_id: "k1",
      private_key,
    };
    writeFileSync(file, JSON.stringify({ ...account, token_uri: `${tokens.url}/token` }));
    assert.equal(await ask("token", { file }), "token-1");
  });
});
