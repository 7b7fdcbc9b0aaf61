// HTTPS served directly, with certificates that openssl makes for the test, and a changed
// certificate at run time.

import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ClientRequest, IncomingMessage } from "node:http";
import https from "node:https";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import tls, { type TLSSocket } from "node:tls";
import { checkConfig } from "../../../support/config.ts";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { ask as askOnce } from "../../../support/admin.ts";
import { certificate } from "../../../support/certificate.ts";
import { demo, startGateway } from "../../../support/gateway.ts";
import { within } from "../../../support/wait.ts";

/** A response whose body is discarded. */
async function responseTo(req: ClientRequest): Promise<IncomingMessage> {
  const [res] = (await within(once(req, "response"), "the answer over TLS")) as [IncomingMessage];
  return res.resume();
}

describe("TLS", () => {
  it("serves over HTTPS", async (t) => {
    const tls = certificate();
    const gateway = await startGateway(t, demo({ server: { tls } }));
    assert.match(gateway.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    const options = { ca: readFileSync(tls.cert_file), agent: false };
    const res = await responseTo(https.get(`${gateway.url}/healthz`, options));
    assert.equal(res.statusCode, 200);
    assert.match(String(res.headers["x-request-id"]), /^req_/);
  });

  it("waits for a handshake for receive_ms at most, and not at shutdown", async (t) => {
    const open = async (receive_ms: number) => {
      const server = { tls: certificate(), receive_ms };
      const { url, gateway } = await startGateway(t, demo({ server }));
      const socket = net.connect(Number(new URL(url).port), "127.0.0.1").resume();
      t.after(() => socket.destroy());
      await within(once(socket, "connect"), "the connection");
      return { socket, gateway };
    };
    await within(once((await open(200)).socket, "close"), "the connection to be closed");
    await within((await open(600_000)).gateway.close(0), "the gateway to close");
  });
});

describe("another certificate", () => {
  type Files = ReturnType<typeof certificate>;
  const fingerprint = ({ cert_file }: Files): string =>
    new X509Certificate(readFileSync(cert_file)).fingerprint256;

  /** The certificate that a new connection gets. */
  async function shown(url: string): Promise<string> {
    const socket = tls.connect({
      port: Number(new URL(url).port),
      host: "127.0.0.1",
      rejectUnauthorized: false,
    });
    try {
      await within(once(socket, "secureConnect"), "the handshake");
      return socket.getPeerCertificate().fingerprint256;
    } finally {
      socket.destroy();
    }
  }

  /**
   * Sends a request on this agent's one connection. Resolves with its status, the connection's
   * local port, and the certificate of the connection.
   */
  function kept(t: TestContext, url: string) {
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
    t.after(() => agent.destroy());
    return async () => {
      const res = await responseTo(https.get(`${url}/healthz`, { agent }));
      const socket = res.socket as TLSSocket;
      const seen = [res.statusCode, socket.localPort, socket.getPeerCertificate().fingerprint256];
      await within(once(res, "end"), "the answer's end");
      return seen;
    };
  }

  /** Replaces the files of one certificate by another's, as renewal programs do. */
  function exchange(from: Files, to: Files): void {
    copyFileSync(from.cert_file, to.cert_file);
    copyFileSync(from.key_file, to.key_file);
  }

  it("in the same files or in others is loaded by a reload for new connections, and open ones continue", async (t) => {
    const [files, next, third] = [certificate(), certificate(), certificate()];
    const [a, b, c] = [files, next, third].map(fingerprint);
    assert.equal(new Set([a, b, c]).size, 3);
    const config = (server: object) => checkConfig(demo({ server }), {});
    const { url, gateway } = await startGateway(t, demo({ server: { tls: files } }));
    const ask = kept(t, url);
    const first = await ask();
    assert.deepEqual([await shown(url), first[2]], [a, a]);
    exchange(next, files);
    assert.equal(await shown(url), a, "unchanged until the reload");
    gateway.reload(config({ tls: files }));
    assert.equal(await shown(url), b);
    assert.deepEqual(await ask(), first, "an open connection keeps its certificate");
    gateway.reload(config({ tls: third }));
    assert.equal(await shown(url), c);
    assert.deepEqual(await ask(), first);
    gateway.reload(config({}));
    assert.equal(await shown(url), c, "TLS cannot be switched off by a reload");
    assert.deepEqual(await ask(), first);
  });

  it("that is invalid, missing or has another key is rejected with the whole reload", async (t) => {
    const [files, next] = [certificate(), certificate()];
    const a = fingerprint(files);
    const keys = [{ account: "later", key: "sk-later" }];
    const config = checkConfig(demo({ server: { tls: files }, keys }));
    const gw = await startGateway(t, demo({ server: { tls: files } }));
    const ask = kept(t, gw.url);
    const first = await ask();
    const statusOf = async (key: string) =>
      (await askOnce(gw.url, "/v1/models", { authorization: `Bearer ${key}` })).status;
    const good = [readFileSync(files.cert_file), readFileSync(files.key_file)] as const;
    const spoilt: readonly (readonly [() => void, RegExp])[] = [
      [
        () => writeFileSync(files.cert_file, good[0].subarray(0, 300)),
        /^server\.tls: expected a certificate in PEM in .*: /,
      ],
      [
        () => writeFileSync(files.key_file, ""),
        /^server\.tls: expected a private key in PEM, without a passphrase, in .*: /,
      ],
      [
        () => copyFileSync(next.key_file, files.key_file),
        /^server\.tls: the key in .* is not that of .*: /,
      ],
      [
        () => copyFileSync(certificate("rsa:2048").key_file, files.key_file),
        /^server\.tls: the key in .* is not that of .*: key type mismatch$/,
      ],
      [() => rmSync(files.key_file), /^server\.tls\.key_file: \/.* cannot be read: ENOENT$/],
      [() => rmSync(files.cert_file), /^server\.tls\.cert_file: \/.* cannot be read: ENOENT$/],
    ];
    for (const [spoil, words] of spoilt) {
      writeFileSync(files.cert_file, good[0]);
      writeFileSync(files.key_file, good[1]);
      spoil();
      const isExpected = (error: unknown) =>
        error instanceof ValidationError && words.test(error.message);
      assert.throws(() => gw.gateway.reload(config), isExpected);
      assert.equal(await shown(gw.url), a);
      assert.deepEqual(await ask(), first);
      const statuses = [await statusOf("sk-demo"), await statusOf("sk-later")];
      assert.deepEqual(statuses, [200, 401], "nothing else of the new configuration is in force");
    }
    exchange(next, files);
    gw.gateway.reload(config);
    assert.equal(await shown(gw.url), fingerprint(next));
    assert.deepEqual([await statusOf("sk-demo"), await statusOf("sk-later")], [401, 200]);
  });
});
