// Providers behind a proxy, with an authority of one's own, and with certificates of the client: real
// proxies, real TLS.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { describe, it, type TestContext } from "node:test";
import { certificate } from "../../../support/certificate.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { completion, speak, startProvider } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import { issueLines } from "../../../support/token-service.ts";

interface TestProxy {
  readonly url: string;
  /** What it was asked to connect to, with the authorization. */
  readonly asked: string[];
}

/** A proxy that connects to wherever it is asked, or answers by `answer`. */
async function startProxy(
  t: TestContext,
  answer?: (socket: net.Socket) => unknown,
): Promise<TestProxy> {
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

describe("a provider behind a proxy", () => {
  it("is called through it, on connections that are kept, streams too", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const proxy = await startProxy(t);
    const { chat } = await startGateway(t, reach(provider.url, {}, { proxy: proxy.url }));
    for (let i = 0; i < 2; i += 1) assert.equal((await chat(ask)).status, 200);
    const streamed = await chat({ ...ask, stream: true });
    assert.match(await streamed.text(), /data: \[DONE\]/);
    assert.deepEqual(proxy.asked, [`${provider.url.replace("http://", "")} none`]);
    assert.equal(provider.connections(), 1);
  });

  it("has upstream.max_connections at most, as without a proxy", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const proxy = await startProxy(t);
    const upstream = { proxy: proxy.url, max_connections: 1 };
    const { chat } = await startGateway(t, reach(provider.url, {}, upstream));
    await Promise.all([chat(ask), chat(ask)]);
    assert.equal(proxy.asked.length, 1);
  });

  it("is looked after by TCP while it thinks, as without a proxy", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const proxy = await startProxy(t);
    const connect = t.mock.method(net, "connect");
    const { chat } = await startGateway(t, reach(provider.url, {}, { proxy: proxy.url }));
    assert.equal((await chat(ask)).status, 200);
    const asked: unknown[] = connect.mock.calls.map((call) => call.arguments[0]);
    const port = Number(new URL(proxy.url).port);
    const toProxy = asked.find((options) => (options as net.TcpNetConnectOpts).port === port);
    const { keepAlive, keepAliveInitialDelay } = toProxy as net.TcpNetConnectOpts;
    assert.deepEqual([keepAlive, keepAliveInitialDelay], [true, 15_000]);
  });

  it("has a proxy of its own, with a name and a password, or none", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const [general, own] = [await startProxy(t), await startProxy(t)];
    const withUser = own.url.replace("//", "//us%40er:p%3Ass@");
    const through = reach(provider.url, { proxy: "$PROXY" }, { proxy: general.url });
    const { chat, diagnostics } = await startGateway(t, through, {}, { PROXY: withUser });
    assert.equal((await chat(ask)).status, 200);
    const basic = Buffer.from("us@er:p:ss").toString("base64");
    assert.deepEqual(own.asked, [`${provider.url.replace("http://", "")} Basic ${basic}`]);
    assert.ok(!JSON.stringify(diagnostics).includes("p:ss"));
    const around = reach(provider.url, { proxy: null }, { proxy: general.url });
    assert.equal((await (await startGateway(t, around)).chat(ask)).status, 200);
    assert.deepEqual(general.asked, []);
  });

  for (const [name, answer, detail] of [
    [
      "refuses the connection",
      "HTTP/1.1 407 Who are you\r\n\r\n",
      /the proxy 127\.0\.0\.1:\d+ answered with status 407/,
    ],
    [
      "cuts the connection",
      "",
      /the proxy 127\.0\.0\.1:\d+ closed the connection without an answer/,
    ],
    ["speaks something else", "SSH-2.0-x\r\n\r\n", /did not answer by HTTP/],
    [
      "never ends its answer",
      `HTTP/1.1 200 OK\r\nX: ${"x".repeat(17_000)}`,
      /did not answer by HTTP/,
    ],
  ] as const) {
    it(`is unavailable if the proxy ${name}`, async (t) => {
      const provider = await startProvider(t, speak("Hi."));
      const proxy = await startProxy(t, (socket) =>
        answer === "" ? socket.end() : socket.write(answer),
      );
      const withUser = proxy.url.replace("//", "//user:pass-word@");
      const { chat, diagnostics } = await startGateway(t, reach(provider.url, { proxy: withUser }));
      const answered = await chat(ask);
      assert.equal(answered.status, 503);
      const { error } = await json(answered);
      assert.ok(!error.message.includes("proxy"));
      const told = JSON.stringify(diagnostics);
      assert.match(told, detail);
      assert.ok(!told.includes("pass-word"));
      assert.equal(provider.asked.length, 0);
    });
  }

  it("is unavailable if nothing listens where the proxy should be", async (t) => {
    const provider = await startProvider(t, speak("Hi."));
    const proxy = "http://127.0.0.1:1";
    const { chat, diagnostics } = await startGateway(t, reach(provider.url, { proxy }));
    assert.equal((await chat(ask)).status, 503);
    assert.match(
      JSON.stringify(diagnostics),
      /the proxy 127\.0\.0\.1:1 cannot be reached: ECONNREFUSED/,
    );
  });
});

/** A provider that speaks TLS, and demands a certificate of its clients if `asksClients`. */
async function startSecure(t: TestContext, asksClients = false) {
  const files = certificate();
  const [cert, key] = [readFileSync(files.cert_file), readFileSync(files.key_file)];
  const options = {
    cert,
    key,
    ...(asksClients && { ca: cert, requestCert: true, rejectUnauthorized: false }),
  };
  const clients: unknown[] = [];
  const server = https.createServer(options, (req, res) => {
    clients.push((req.socket as import("node:tls").TLSSocket).authorized);
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(completion({ content: "Hi." })));
  });
  const url = (await listening(t, server)).replace("http://127.0.0.1", "https://localhost");
  return { url, files, clients };
}

describe("TLS towards a provider", () => {
  it("is refused without its authority, and works with it, through a proxy too", async (t) => {
    const { url, files } = await startSecure(t);
    const plain = await startGateway(t, reach(url, { proxy: null }));
    assert.equal((await plain.chat(ask)).status, 503);
    const ca_file = files.cert_file;
    const own = await startGateway(t, reach(url, { ca_file }));
    assert.equal((await own.chat(ask)).status, 200);
    const general = await startGateway(t, reach(url, {}, { ca_file }));
    assert.equal((await general.chat(ask)).status, 200);
    const proxy = await startProxy(t);
    const through = await startGateway(t, reach(url, { proxy: proxy.url, ca_file }));
    for (let i = 0; i < 2; i += 1) assert.equal((await through.chat(ask)).status, 200);
    assert.deepEqual(proxy.asked, [`${url.replace("https://", "")} none`]);
    const untrusted = await startGateway(t, reach(url, { proxy: proxy.url }));
    assert.equal((await untrusted.chat(ask)).status, 503);
  });

  it("reads the authorities once, and not for each connection, which would block", async (t) => {
    const { url, files } = await startSecure(t);
    const { chat } = await startGateway(t, reach(url, { ca_file: files.cert_file }));
    const read = t.mock.method(tls, "createSecureContext");
    const answers = await Promise.all([chat(ask), chat(ask), chat(ask)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal(read.mock.callCount(), 0);
  });

  it("with a key of another certificate: refused by the start, a reload and check", async (t) => {
    const [{ cert_file }, { key_file }] = [certificate(), certificate()];
    const config = reach("https://far.example", { cert_file, key_file });
    const kinds = { cert_file, key_file: certificate("rsa:2048").key_file };
    await assert.rejects(startGateway(t, reach("https://far.example", kinds)), {
      message: /^providers\.far: TLS cannot use its .*key type mismatch/,
    });
    const refused = /^(chat-gateway: )?providers\.far: TLS cannot use its .*key values mismatch/;
    await assert.rejects(startGateway(t, config), { message: refused });
    const { gateway } = await startGateway(t, reach("https://far.example", {}));
    const data_dir = folder();
    assert.throws(() => gateway.reload(checkConfig({ ...config, data_dir })), { message: refused });
    const file = join(data_dir, "gateway.json");
    writeFileSync(file, JSON.stringify({ ...config, data_dir }));
    const { code, stderr } = await runHere(["check", "--config", file]);
    assert.equal(code, 1);
    assert.match(stderr, refused);
  });

  it("shows a certificate of the client, and another one after a reload", async (t) => {
    const { url, files, clients } = await startSecure(t, true);
    const ca_file = files.cert_file;
    const { cert_file, key_file } = files;
    const without = reach(url, { ca_file });
    const { chat, gateway } = await startGateway(t, { ...without, data_dir: folder() });
    assert.equal((await chat(ask)).status, 200);
    gateway.reload(
      checkConfig({ ...reach(url, { ca_file, cert_file, key_file }), data_dir: folder() }),
    );
    assert.equal((await chat(ask)).status, 200);
    assert.deepEqual(clients, [false, true]);
  });
});

describe("the settings of the network", () => {
  const issues = (network: object) =>
    issueLines(() => checkConfig(reach("https://far.example", network)));

  it("are refused with their place", () => {
    for (const proxy of ["https://proxy:1", "proxy:1", "http://proxy/path", "http://proxy?x=1"])
      assert.deepEqual(issues({ proxy }), [
        "providers.far.proxy: expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT",
      ]);
    const file = join(folder(), "a.pem");
    writeFileSync(file, "no certificate");
    assert.deepEqual(issues({ ca_file: file }), [
      "providers.far.ca_file: expected a certificate in PEM",
    ]);
    const { cert_file: one } = certificate();
    const bundle = (bytes: number) => {
      writeFileSync(file, readFileSync(one, "utf8").padEnd(bytes));
      return issues({ ca_file: file });
    };
    assert.deepEqual(bundle(1024 ** 2), []);
    const pem = readFileSync(one, "utf8");
    for (const [text, damaged] of [
      [pem + pem.slice(0, 300), 2],
      [pem.trimEnd() + pem, 1],
      [pem.replace(/^/gm, "# ") + pem, undefined],
    ] as const) {
      writeFileSync(file, text);
      const issue = `providers.far.ca_file: certificate number ${damaged} of the file is damaged`;
      assert.deepEqual(issues({ ca_file: file }), damaged ? [issue] : []);
    }
    assert.match(bundle(1024 ** 2 + 1).join(), /ca_file: .*: it has more than 1048576 bytes/);
    assert.match(
      issues({ ca_file: "/nowhere.pem" }).join(),
      /ca_file: cannot read the file \/nowhere.pem: ENOENT/,
    );
    const { cert_file } = certificate();
    for (const network of [{ cert_file }, { cert_file, key_file: null }])
      assert.deepEqual(issues(network), [
        "providers.far.key_file: is required beside the other of the pair",
      ]);
    assert.deepEqual(issues({ cert_file: null }), []);
  });
});
