// The command line as a real process: its arguments, output, exit codes and signals.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import http from "node:http";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { configFile as written } from "../../../support/books.ts";
import { assertFails, ended, lines, run, outputOf } from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { demo } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { fromSources } from "../../../support/program.ts";
import { until, waitFor, within } from "../../../support/wait.ts";
import * as clients from "../../scale/cluster/bench.ts";

const configFile = (over: object = {}): string => written(demo(over));

const OWN = { account: "own", key: "sk-own" };

/** Sends a request to the demo model. Resolves with the response headers. */
const ask = (address: string, body: object = {}, key = "sk-demo") =>
  clients.ask(address, { model: "demo-chat", ...body }, key);
const { whole } = clients;

it("the program prints the same from the sources, natively or under tsx, and from the one file", async (t) => {
  const sources = await ended(t, ["help"], { program: fromSources(process.cwd()) });
  assert.deepEqual(sources, await ended(t, ["help"]));
  assert.equal(sources.code, 0);
});

describe("a process", () => {
  it("that has nothing left to wait for before its end exits with 1", async (t) => {
    const silenced = encodeURIComponent("process.stdout.write = () => true;");
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${silenced}` };
    assert.equal((await ended(t, ["--version"], { env })).code, 1);
  });

  for (const [runtime, change, found] of [
    ["an older Node", "delete process.getBuiltinModule;", `Node ${process.versions.node}`],
    [
      "Bun",
      "Object.defineProperty(process, 'versions', { value: { node: '26.3.0', bun: '1.4.5' } });",
      "Bun 1.4.5",
    ],
  ] as const)
    it(`of ${runtime} ends and says which Node the program needs`, async (t) => {
      const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(change)}` };
      const { code, stdout, stderr } = await ended(t, ["--version"], { env });
      const words = `chat-gateway needs Node 20.19, 22.3 or later: this is ${found}\n`;
      assert.deepEqual([code, stdout, stderr], [1, "", words]);
    });

  it("uses ./gateway.json with secrets from the environment, or the demo without that file", async (t) => {
    const cwd = folder();
    const keys = [{ account: "a", key: "$A_KEY" }];
    const valid = "is valid: 2 models, 2 aliases, 1 key\n";
    const missing = "chat-gateway: keys[0].key: the environment variable A_KEY is not set\n";
    const assertCheck = async (env: NodeJS.ProcessEnv, ...expected: unknown[]) => {
      const { code, stdout, stderr } = await ended(t, ["check"], { cwd, env });
      assert.deepEqual([code, stdout, stderr], expected);
    };
    await assertCheck({}, 0, `the demo configuration ${valid}`, "");
    writeFileSync(join(cwd, "gateway.json"), JSON.stringify(demo({ keys })));
    await assertCheck({}, 1, "", missing);
    await assertCheck({ A_KEY: "CANARY" }, 0, `gateway.json ${valid}`, "");
  });
});

describe("serve with a fault: one line per fault, exit 1", { concurrency: 4 }, () => {
  const tls = { cert_file: "nowhere.pem", key_file: "nowhere.pem" };
  const foreign = { server: { host: "192.0.2.1" }, keys: [{ account: "a", key: "k" }] };
  for (const [situation, args, ...words] of [
    ["the demo on an open address", ["--host", "0.0.0.0"], /server\.host: must be a loopback/],
    [
      "certificate and key that are missing",
      ["--config", configFile({ server: { tls } })],
      /server\.tls\.cert_file: nowhere.pem cannot be read: ENOENT$/,
      /server\.tls\.key_file: nowhere.pem cannot be read: ENOENT$/,
    ],
    [
      "a host that is not its own",
      ["--config", configFile(foreign)],
      /EADDRNOTAVAIL.*192\.0\.2\.1; choose another host: --host, server\.host, /,
    ],
    [
      "an IPv6 address that this machine cannot listen on",
      ["--config", configFile({ ...foreign, server: { host: "fe80::1" } })],
      /listen E(INVAL|AFNOSUPPORT).* fe80::1.*; choose another host: --host, server\.host, /,
    ],
    [
      "a host that nobody knows",
      ["--config", configFile({ ...foreign, server: { host: "nowhere.invalid" } })],
      /getaddrinfo \w+ nowhere\.invalid; choose another host: --host, server\.host, /,
    ],
  ] as readonly (readonly [string, readonly string[], ...RegExp[]])[])
    it(situation, async (t) => {
      const { code, stdout, stderr } = await ended(t, args);
      assert.deepEqual([code, stdout, lines(stderr).length], [1, "", words.length]);
      for (const [at, word] of words.entries()) assert.match(lines(stderr)[at]!, word);
    });

  it("a port in use", async (t) => {
    const { port } = new URL(await listening(t, createServer()));
    const end = await ended(t, ["serve", `--port=${port}`]);
    assertFails(end, 1, new RegExp(`EADDRINUSE.*${port}; choose another port: --port`));
  });
});

describe("serve", { concurrency: 4 }, () => {
  it("is the default command, with the demo without a file; stdout has the address, then a JSON line per response", async (t) => {
    const gw = run(t, ["--port", "0"]);
    const address = await gw.address();
    for (const [id, path] of Object.entries({ one: "/healthz?deep=1", 'tw"o': "/nowhere" }))
      await (await fetch(address + path, { headers: { "x-request-id": id } })).text();
    const reply = await whole(ask(address));
    assert.match(reply.text(), /You said: “Hello\.”/);
    await waitFor(() => lines(gw.stdout()).length === 4, "three lines of access log");
    const [line, ...log] = lines(gw.stdout());
    // The admin listener is missing if another program, such as another test, uses its default
    // port.
    assert.equal(
      line!.replace("; console and admin on http://127.0.0.1:8081", ""),
      `chat-gateway listens on ${address} (the built-in demo configuration: models demo-chat and demo-reasoner, key sk-demo)`,
    );
    const records = log.map((text) => JSON.parse(text) as Record<string, unknown>);
    const members = ["request_id", "method", "path", "status", "account", "model"];
    const told = records.map((record) => members.map((name) => record[name]));
    assert.deepEqual(told, [
      ["one", "GET", "/healthz", 200, null, null],
      ['tw"o', "GET", "/nowhere", 404, null, null],
      [reply.headers["x-request-id"], "POST", "/v1/chat/completions", 200, "demo", "demo-chat"],
    ]);
    for (const { time, duration_ms, key_id } of records) {
      assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      assert.ok(typeof duration_ms === "number" && duration_ms >= 0);
      assert.ok(key_id === null || /^key_[0-9a-f]{16}$/.test(String(key_id)));
    }
    assert.doesNotMatch(log.join(), /sk-demo|Hello/, "the log has no keys and no content");
    assert.equal(gw.stderr(), "");
  });

  it("prefers host and port from the arguments to the file's, and prints the file's path", async (t) => {
    const cwd = folder();
    const config = demo({ server: { host: "127.0.0.9", port: 1 } });
    writeFileSync(join(cwd, "gateway.json"), JSON.stringify(config));
    const gw = run(t, ["serve", "--host", "127.0.0.2", "--port=0"], { cwd });
    const address = await gw.address();
    assert.match(
      gw.stdout(),
      /^chat-gateway listens on http:\/\/127\.0\.0\.2:[1-9]\d* \(gateway\.json; console and admin on http:\/\/127\.0\.0\.1:\d+\)\n$/,
    );
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
  });

  it("survives the end of its log's reader", async (t) => {
    const gw = run(t, ["--port", "0"]);
    const address = await gw.address();
    gw.child.stdout.destroy();
    gw.child.stderr.destroy();
    for (let i = 0; i < 5; i += 1) assert.equal((await fetch(`${address}/healthz`)).status, 200);
    gw.child.kill("SIGTERM");
    assert.deepEqual(await within(once(gw.child, "exit"), "its exit"), [0, null]);
  });

  it("reloads its file on SIGHUP; an invalid or missing file is reported by name and changes nothing", async (t) => {
    const cwd = folder();
    const file = join(cwd, "gateway.json");
    const config = (rpm: number) => JSON.stringify(demo({ limits: { rpm }, keys: [OWN] }));
    writeFileSync(file, config(10));
    const gw = run(t, ["--port", "0"], { cwd });
    const address = await gw.address();
    const ofReloads = () => lines(gw.stderr()).filter((line) => line.includes('"event":"reload'));
    async function change(make: () => void, told: RegExp, rpm: number): Promise<void> {
      make();
      gw.child.kill("SIGHUP");
      await waitFor(() => told.test(ofReloads().at(-1) ?? ""), `${told} on stderr`);
      const { status, headers } = await ask(address, {}, OWN.key);
      assert.deepEqual([status, headers["x-ratelimit-limit-requests"]], [200, String(rpm)]);
    }
    const put = (text: string) => () => replace(file, text);
    function putFifo(): void {
      rmSync(file);
      execFileSync("mkfifo", [file]);
    }
    function putLarge(): void {
      writeFileSync(`${file}.large`, "");
      truncateSync(`${file}.large`, 17 * 1024 ** 2);
      renameSync(`${file}.large`, file);
    }
    await change(put(config(20)), /"reloaded"/, 20);
    await change(put(config(-1)), /"reload_failed".*"path":"limits\.rpm"/, 20);
    for (const [make, why] of [
      [putFifo, "it is a FIFO, not a regular file"],
      [() => rmSync(file), "ENOENT"],
      [putLarge, "it has more than 16777216 bytes"],
    ] as const)
      await change(make, new RegExp(`"reload_failed".*"cannot read gateway\\.json: ${why}"`), 20);
    assert.equal((await ask(address)).status, 401);
    await change(put(config(30)), /"reloaded"/, 30);
  });
});

/**
 * A gateway with a slow demo model, and a stream whose first text has arrived; the model `far`
 * never answers.
 */
async function streaming(t: TestContext, drain_ms: number, pace_ms: number) {
  const silent = http.createServer(() => undefined);
  const far = { dialect: "openai", base_url: await listening(t, silent) };
  const providers = { demo: { pace_ms }, far };
  const models = { far: { provider: "far" } };
  const gw = run(t, ["--config", configFile({ server: { drain_ms }, providers, models })]);
  const address = await gw.address();
  const reply = await ask(address, { stream: true });
  await waitFor(() => /"content":"[^"]/.test(reply.text()), "the first text");
  return { gw, address, reply, silent };
}

function untilClosed(address: string): Promise<unknown> {
  const isRefused = () =>
    fetch(`${address}/healthz`).then(
      () => false,
      () => true,
    );
  return until(isRefused, "new connections to be refused");
}

describe("signals", { concurrency: 4 }, () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    it(`${signal} while idle: exit 0 at once, even with a kept-alive connection`, async (t) => {
      const gw = run(t, ["--config", configFile({ server: { drain_ms: 600_000 } })]);
      await (await fetch(`${await gw.address()}/healthz`)).text(); // its connection stays open
      gw.child.kill(signal);
      const stdout = outputOf(await within(gw.ended, `the end after ${signal}`));
      assert.equal(lines(stdout).length, 2, "the access log is complete");
    });

  it("SIGTERM: a running stream is completed, no new connection is accepted, then exit 0", async (t) => {
    const { gw, address, reply } = await streaming(t, 600_000, 10);
    gw.child.kill("SIGTERM");
    await untilClosed(address);
    assert.doesNotMatch(reply.text(), /\[DONE\]/, "the stream is still open");
    const text = (await whole(reply)).text();
    assert.match(text, /"finish_reason":"stop"\}\]\}\n\ndata: \[DONE\]\n\n$/);
    const { code, stdout } = await within(gw.ended, "the end");
    const record = JSON.parse(lines(stdout).at(-1)!);
    assert.deepEqual(
      [code, record.request_id, record.status],
      [0, reply.headers["x-request-id"], 200],
    );
  });

  it("SIGTERM: a log reader that is behind still gets the last lines", async (t) => {
    const gw = run(t, ["--port", "0"]);
    const { port } = new URL(await gw.address());
    gw.child.stdout.pause();
    const count = 2_000; // more than fits into a pipe
    const head = `GET /${"p".repeat(500)} HTTP/1.1\r\nHost: x\r\n`;
    const socket = connect(Number(port), "127.0.0.1").resume();
    socket.end(`${`${head}\r\n`.repeat(count - 1)}${head}Connection: close\r\n\r\n`);
    await within(once(socket, "close"), "the answers");
    gw.child.kill("SIGTERM");
    await untilClosed(`http://127.0.0.1:${port}`);
    gw.child.stdout.resume();
    const { code, stdout } = await within(gw.ended, "the end");
    assert.deepEqual([code, stdout.split('"status":404').length - 1], [0, count]);
  });

  it("SIGTERM: after drain_ms a stream gets an in-band error and no [DONE], a waiting request 503, then exit 0", async (t) => {
    const { gw, address, reply, silent } = await streaming(t, 100, 10_000);
    const asked = once(silent, "request");
    const unanswered = ask(address, { model: "far" });
    unanswered.catch(() => undefined);
    await within(asked, "the provider to be asked");
    gw.child.kill("SIGTERM");
    const text = (await whole(reply)).text();
    const last = lines(text).at(-1) ?? "";
    assert.ok(last.startsWith("data: {") && text.endsWith("\n\n"), last);
    assert.doesNotMatch(text, /\[DONE\]/);
    const refused = await whole(unanswered);
    assert.equal(refused.status, 503);
    const error = {
      message: "The gateway is shutting down.",
      ...{ type: "service_unavailable_error", code: "server_overloaded", param: null },
    };
    const bodies = [last.slice(6), refused.text()];
    for (const [at, { headers }] of [reply, refused].entries())
      assert.deepEqual(JSON.parse(bodies[at]!), {
        error: { ...error, request_id: headers["x-request-id"] },
      });
    assert.equal((await within(gw.ended, "the end")).code, 0);
  });

  it("a second signal: exit at once", async (t) => {
    const { gw, address } = await streaming(t, 600_000, 10_000);
    gw.child.kill("SIGTERM");
    await untilClosed(address);
    assert.equal(gw.child.exitCode, null, "it is draining");
    gw.child.kill("SIGINT");
    const { code, signal } = await within(gw.ended, "the end after the second signal");
    assert.deepEqual([code, signal], [1, null]);
  });
});
