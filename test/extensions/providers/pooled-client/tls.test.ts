// Providers over TLS: whom the client trusts, what it says of the server's name, and how it makes
// the next handshake shorter.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, it, type TestContext } from "node:test";
import tls, { type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { certificate } from "../../../support/certificate.ts";
import { listening } from "../../../support/listening.ts";
import { fromModules } from "../../../support/program.ts";
import { reply } from "../../../support/raw-provider.ts";
import { within } from "../../../support/wait.ts";

/** What the server knows of a connection. */
interface Handshake {
  readonly name: string | false;
  readonly resumed: boolean;
}

async function startServer(t: TestContext, answer = reply(), host = "127.0.0.1") {
  const { cert_file, key_file } = certificate();
  const handshakes: Handshake[] = [];
  const pair = { cert: readFileSync(cert_file), key: readFileSync(key_file) };
  const server = tls.createServer(pair, (socket: TLSSocket) => {
    // `servername` is false if the client has named none; the types do not say so.
    const name = socket.servername as unknown as string | false;
    handshakes.push({ name, resumed: socket.isSessionReused() });
    socket.on("error", () => undefined);
    socket.on("data", () => {
      if (answer.includes("close")) socket.end(answer);
      else socket.write(answer);
    });
  });
  server.on("tlsClientError", () => undefined);
  const { port } = new URL(await listening(t, server, host));
  return { port, handshakes, cert_file };
}

/** What came of each call, in a process that trusts the authorities of this file. */
async function callsTo(urls: readonly string[], trusted: string): Promise<string[]> {
  const { args, cwd } = fromModules(process.cwd(), "test/support/tls-client.ts");
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: trusted };
  const run = promisify(execFile)(process.execPath, [...args, ...urls], { cwd, env });
  const { stdout } = await within(run, "the calls to end");
  return stdout.trim().split("\n");
}

describe("a provider over TLS", () => {
  it("is trusted by NODE_EXTRA_CA_CERTS; its name is sent once a connection, and no address as a name", async (t) => {
    const { port, handshakes, cert_file } = await startServer(t);
    const byName = `https://localhost:${port}`;
    const urls = [byName, byName, `https://127.0.0.1:${port}`];
    assert.deepEqual(await callsTo(urls, cert_file), ["200 ok", "200 ok", "200 ok"]);
    assert.deepEqual(
      handshakes.map(({ name }) => name),
      ["localhost", false],
    );
  });

  it("whose certificate is for another name gets no request", async (t) => {
    const { port, cert_file } = await startServer(t, reply(), "127.0.0.2");
    const calls = await callsTo([`https://127.0.0.2:${port}`], cert_file);
    assert.deepEqual(calls, ["ERR_TLS_CERT_ALTNAME_INVALID"]);
  });

  it("that closes after each reply is met again with the session of before", async (t) => {
    const { port, handshakes, cert_file } = await startServer(t, reply("ok", "Connection: close"));
    const url = `https://localhost:${port}`;
    assert.deepEqual(await callsTo([url, url, url], cert_file), ["200 ok", "200 ok", "200 ok"]);
    assert.deepEqual(
      handshakes.map(({ resumed }) => resumed),
      [false, true, true],
    );
  });
});
