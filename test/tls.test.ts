// HTTPS served directly, with a certificate that openssl makes for the test.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createFetch } from "../src/http/fetch.ts";
import { CheckError } from "../src/protocol/checker.ts";
import { configFor, demo, startGateway, user } from "./support/gateway.ts";
import { within } from "./support/wait.ts";

function certificate(t: TestContext): { cert_file: string; key_file: string } {
  const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const files = { cert_file: join(folder, "cert.pem"), key_file: join(folder, "key.pem") };
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", ...subject, "-keyout", files.key_file, "-out", files.cert_file], { stdio: "ignore" });
  return files;
}

describe("TLS", () => {
  it("serves over HTTPS; a provider whose certificate nobody vouches for is unavailable", async (t) => {
    const tls = certificate(t);
    const gateway = await startGateway(t, demo({ server: { tls } }));
    assert.match(gateway.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    const answer = new Promise<{ status: number; id: string }>((resolve, reject) => {
      const req = https.get(`${gateway.url}/healthz`, { ca: readFileSync(tls.cert_file), agent: false }, (res) => {
        res.resume();
        resolve({ status: res.statusCode!, id: String(res.headers["x-request-id"]) });
      });
      req.on("error", reject);
    });
    const { status, id } = await within(answer, "the answer over TLS");
    assert.equal(status, 200);
    assert.match(id, /^req_/);

    const trusting = createFetch();
    t.after(() => trusting.close());
    const client = await startGateway(t, configFor(`${gateway.url}/v1`, ["demo-chat"]), { fetch: trusting });
    const refused = await client.chat({ model: "demo-chat", messages: user("hi") });
    assert.equal(refused.status, 503);
    assert.match(await refused.text(), /model_unavailable/);
  });

  it("stops though somebody has connected and not shaken hands", async (t) => {
    const gateway = await startGateway(t, demo({ server: { tls: certificate(t) } }));
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    t.after(() => socket.destroy());
    await within(new Promise((resolve) => socket.once("connect", resolve)), "the connection");
    await within(gateway.gateway.close(0), "the gateway to close", 3_000);
  });

  it("files that cannot be read, or are no certificate, are faults with a path", async (t) => {
    const tls = certificate(t);
    await assert.rejects(
      startGateway(t, demo({ server: { tls: { ...tls, key_file: "/nowhere/key.pem" } } })),
      (error) => error instanceof CheckError && error.message === "server.tls.key_file: cannot be read: ENOENT",
    );
    writeFileSync(tls.cert_file, "nonsense");
    await assert.rejects(startGateway(t, demo({ server: { tls } })), (error) => error instanceof CheckError && error.message.startsWith("server.tls: not a certificate"));
  });
});
