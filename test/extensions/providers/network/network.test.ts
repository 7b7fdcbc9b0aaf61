// Providers behind a proxy, with a private certificate authority, and with client certificates:
// real proxies, real TLS.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls, { type TLSSocket } from "node:tls";
import { describe, it, type TestContext } from "node:test";
import { tcpOptions } from "../../../../src/extensions/providers/pooled-client/index.ts";
import { certificate } from "../../../support/certificate.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { completion, speak, startProvider } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import { issueLines } from "../../../support/token-service.ts";

/**
 * A proxy that connects to any requested address, or answers with `answer`. `asked`: the requested
 * addresses, with the authorization.
 */
async function startProxy(t: TestContext, answer?: (socket: net.Socket) => unknown) {
  const asked: string[] = [];
  const server = http.createServer((_req, res) => res.writeHead(405).end());
  server.on("connect", (req, socket: net.Socket) => {
    asked.push(`${req.url} ${req.headers["proxy-authorization"] ?? "none"}`);
    socket.on("error", () => undefined);
    if (answer) {
      answer(socket);
      return;
    }
    const { hostname, port } = new URL(`http://${req.url}`);
    const outward = net.connect(Number(port), hostname, () => {
      socket.write("HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n");
      outward.pipe(socket).pipe(outward);
    });
    outward.on("error", () => socket.destroy());
    socket.on("close", () => outward.destroy());
  });
  return { url: await listening(t, server), asked };
}

const reach = (base_url: string, network: object, upstream: object = {}) =>
  configFor("http://lab.invalid", [], {
    upstream,
    providers: { far: { dialect: "openai", base_url, ...network } },
    models: { m: { provider: "far", reasoning: false } },
  });

const ask = { model: "m", messages: user("hi") };
/** The status of a request to a gateway with this configuration. */
const statusWith = async (t: TestContext, config: object): Promise<number> =>
  (await (await startGateway(t, config)).chat(ask)).status;

describe("a provider behind a proxy", () => {
  /** The gateway reaches a provider through a proxy. */
  async function startBehind(t: TestContext, upstream: object = {}) {
    const provider = await startProvider(t, speak("Hi."));
    const proxy = await startProxy(t);
    const config = reach(provider.url, {}, { proxy: proxy.url, ...upstream });
    return { provider, proxy, ...(await startGateway(t, config)) };
  }

  it("is called through it, on kept-alive connections, streams too", async (t) => {
    const { provider, proxy, chat, gateway } = await startBehind(t);
    const streamed = await chat({ ...ask, stream: true });
    assert.match(await streamed.text(), /data: \[DONE\]/);
    assert.deepEqual(proxy.asked, [`${provider.url.replace("http://", "")} none`]);
    for (const user of ["", "a@", "b@", ""]) {
      const changed = { proxy: proxy.url.replace("//", `//${user}`) };
      gateway.reload(checkConfig(reach(provider.url, {}, changed)));
      assert.equal((await chat(ask)).status, 200);
    }
    assert.equal(provider.connections(), 4, "clients unused for two reloads are closed");
  });

  it("gets at most upstream.max_connections, as without a proxy", async (t) => {
    const { proxy, chat } = await startBehind(t, { max_connections: 1 });
    await Promise.all([chat(ask), chat(ask)]);
    assert.equal(proxy.asked.length, 1);
  });

  it("is probed by TCP keep-alive while it is silent, as without a proxy", async (t) => {
    const connect = t.mock.method(net, "connect");
    const { proxy, chat } = await startBehind(t);
    assert.equal((await chat(ask)).status, 200);
    const asked: unknown[] = connect.mock.calls.map((call) => call.arguments[0]);
    const options = asked as net.TcpNetConnectOpts[];
    const toProxy = options.find(({ port }) => port === Number(new URL(proxy.url).port))!;
    assert.deepEqual([toProxy.keepAlive, toProxy.keepAliveInitialDelay], [true, 15_000]);
    assert.equal(toProxy.autoSelectFamilyAttemptTimeout, 2_000, "time for each address");
    assert.equal(
      tcpOptions(999).autoSelectFamilyAttemptTimeout,
      500,
      "half of connect_ms, if that is less",
    );
  });

  it("has its own proxy, with user name and password, or none", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const [general, own] = [await startProxy(t), await startProxy(t)];
    const PROXY = own.url.replace("//", "//us%40er:p%3Ass@");
    const through = reach(provider.url, { proxy: "$PROXY" }, { proxy: general.url });
    const { chat, diagnostics } = await startGateway(t, through, {}, { PROXY });
    assert.equal((await chat(ask)).status, 200);
    const basic = Buffer.from("us@er:p:ss").toString("base64");
    assert.deepEqual(own.asked, [`${provider.url.replace("http://", "")} Basic ${basic}`]);
    assert.ok(!JSON.stringify(diagnostics).includes("p:ss"));
    const around = reach(provider.url, { proxy: null }, { proxy: general.url });
    assert.equal(await statusWith(t, around), 200);
    assert.deepEqual(general.asked, []);
  });

  const AT = "the proxy 127\\.0\\.0\\.1:\\d+";
  for (const [name, answer, detail] of [
    ["refuses the connection", "HTTP/1.1 407 Who?\r\n\r\n<p>", `${AT} answered with status 407`],
    ["cuts the connection", "", `${AT} closed the connection without an answer`],
    ["speaks something else", "SSH-2.0-x\r\n\r\n", "did not answer by HTTP"],
    [
      "never ends its answer",
      `HTTP/1.1 200 OK\r\nX: ${"x".repeat(17_000)}`,
      "did not answer by HTTP",
    ],
    ["is not there", undefined, `${AT} cannot be reached: ECONNREFUSED`],
  ] as const) {
    it(`is unavailable if the proxy ${name}`, async (t) => {
      const provider = await startProvider(t, speak("Hi."));
      const { url } = await startProxy(t, (socket) =>
        answer ? socket.write(answer) : socket.end(),
      );
      const at = answer === undefined ? "http://127.0.0.1:1" : url;
      const proxy = at.replace("//", "//user:pass-word@");
      const { chat, diagnostics } = await startGateway(t, reach(provider.url, { proxy }));
      const answered = await chat(ask);
      assert.equal(answered.status, 503);
      const { error } = await json(answered);
      assert.ok(!error.message.includes("proxy"));
      const told = JSON.stringify(diagnostics);
      assert.match(told, new RegExp(detail));
      assert.ok(!told.includes("pass-word"));
      assert.equal(provider.asked.length, 0);
    });
  }
});

/** A provider with TLS, which requires client certificates if `asksClients`. */
async function startSecure(t: TestContext, asksClients = false, host = "127.0.0.1") {
  const files = certificate();
  const [cert, key] = [readFileSync(files.cert_file), readFileSync(files.key_file)];
  const demands = asksClients && { ca: cert, requestCert: true, rejectUnauthorized: false };
  const clients: unknown[] = [];
  const server = https.createServer({ cert, key, ...demands }, ({ socket }, res) => {
    clients.push((socket as TLSSocket).authorized);
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(completion({ content: "Hi." })));
  });
  const address = (await listening(t, server, host)).replace("http:", "https:");
  const url = address.replace("127.0.0.1", "localhost");
  return { url, ca_file: files.cert_file, files, clients };
}

describe("TLS towards a provider", () => {
  it("is rejected without its authority, and works with it, through a proxy too", async (t) => {
    const { url, ca_file } = await startSecure(t);
    assert.equal(await statusWith(t, reach(url, { proxy: null })), 503);
    assert.equal(await statusWith(t, reach(url, { ca_file })), 200);
    assert.equal(await statusWith(t, reach(url, {}, { ca_file })), 200);
    const proxy = await startProxy(t);
    const through = await startGateway(t, reach(url, { proxy: proxy.url, ca_file }));
    for (let i = 0; i < 2; i += 1) assert.equal((await through.chat(ask)).status, 200);
    assert.deepEqual(proxy.asked, [`${url.replace("https://", "")} none`]);
    assert.equal(await statusWith(t, reach(url, { proxy: proxy.url })), 503);
  });

  it("is rejected if the certificate is for another address, through a proxy too", async (t) => {
    const { url, ca_file } = await startSecure(t, false, "127.0.0.2");
    assert.equal(await statusWith(t, reach(url, { ca_file })), 503);
    const { url: proxy, asked } = await startProxy(t);
    assert.equal(await statusWith(t, reach(url, { ca_file, proxy })), 503);
    assert.equal(asked[0], `${url.replace("https://", "")} none`);
  });

  it("reads the authorities once, not for each connection, which would block", async (t) => {
    const { url, ca_file } = await startSecure(t);
    const { chat } = await startGateway(t, reach(url, { ca_file }));
    const read = t.mock.method(tls, "createSecureContext");
    for (const { status } of await Promise.all([chat(ask), chat(ask), chat(ask)]))
      assert.equal(status, 200);
    assert.equal(read.mock.callCount(), 0);
  });

  it("with a key of another certificate is rejected by the start, a reload and check", async (t) => {
    const [{ cert_file }, { key_file }] = [certificate(), certificate()];
    const far = (network: object) => reach("https://far.example", network);
    const kinds = far({ cert_file, key_file: certificate("rsa:2048").key_file });
    const message = /^providers\.far: TLS cannot use its .*key type mismatch/;
    await assert.rejects(startGateway(t, kinds), { message });
    const refused = /^(chat-gateway: )?providers\.far: TLS cannot use its .*key values mismatch/;
    const data_dir = folder();
    const config = { ...far({ cert_file, key_file }), data_dir };
    await assert.rejects(startGateway(t, config), { message: refused });
    const { gateway } = await startGateway(t, far({}));
    assert.throws(() => gateway.reload(checkConfig(config)), { message: refused });
    const file = join(data_dir, "gateway.json");
    writeFileSync(file, JSON.stringify(config));
    const { code, stderr } = await runHere(["check", "--config", file]);
    assert.equal(code, 1);
    assert.match(stderr, refused);
  });

  it("presents a client certificate, and another one after a reload", async (t) => {
    const { url, ca_file, files, clients } = await startSecure(t, true);
    const data_dir = folder();
    const { chat, gateway } = await startGateway(t, { ...reach(url, { ca_file }), data_dir });
    assert.equal((await chat(ask)).status, 200);
    gateway.reload(checkConfig({ ...reach(url, { ca_file, ...files }), data_dir }));
    assert.equal((await chat(ask)).status, 200);
    assert.deepEqual(clients, [false, true]);
  });
});

it("the settings of the network are rejected with their paths", () => {
  const issues = (network: object) =>
    issueLines(() => checkConfig(reach("https://far.example", network))).join("\n");
  for (const proxy of ["https://proxy:1", "proxy:1", "http://proxy/path", "http://proxy?x=1"])
    assert.equal(
      issues({ proxy }),
      "providers.far.proxy: expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT",
    );
  const { cert_file } = certificate();
  const pem = readFileSync(cert_file, "utf8");
  const ca_file = join(folder(), "a.pem");
  const damaged = (number: number) => `certificate number ${number} of the file is damaged`;
  for (const [text, fault] of [
    ["no certificate", "expected a certificate in PEM"],
    [pem.padEnd(1024 ** 2), undefined],
    [pem + pem.slice(0, 300), damaged(2)],
    [pem.trimEnd() + pem, damaged(1)],
    [pem.replace(/^/gm, "# ") + pem, undefined],
  ] as const) {
    writeFileSync(ca_file, text);
    assert.equal(issues({ ca_file }), fault ? `providers.far.ca_file: ${fault}` : "");
  }
  writeFileSync(ca_file, pem.padEnd(1024 ** 2 + 1));
  assert.match(issues({ ca_file }), /ca_file: .*: it has more than 1048576 bytes/);
  const absent = /ca_file: cannot read the file \/nowhere.pem: ENOENT/;
  assert.match(issues({ ca_file: "/nowhere.pem" }), absent);
  const alone = "providers.far.key_file: is required with the other one of the pair";
  for (const network of [{ cert_file }, { cert_file, key_file: null }])
    assert.equal(issues(network), alone);
  assert.equal(issues({ cert_file: null }), "");
});
