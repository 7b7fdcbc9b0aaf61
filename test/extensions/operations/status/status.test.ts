// `status` and `top`: what they print about a running gateway, how they find it, and whom they
// trust; and a terminal's full screen.

import assert from "node:assert/strict";
import http from "node:http";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { VERSION } from "../../../../src/core/version.ts";
import { openScreen } from "../../../../src/extensions/operations/status/screen.ts";
import { reloadStatus, startRecord } from "../../../../src/reload.ts";
import { configFile } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { allExtensions, type GatewayDeps } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { freePort } from "../../../support/port.ts";
import { completion, startProvider, status as answers } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import type { Scope } from "../../../support/scope.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { outputOf } from "../../../support/command.ts";

/** A gateway with the models `good` and `bad`, and its configuration file. */
async function running(t: Scope, over: object = {}, deps: GatewayDeps = {}, env = {}) {
  const { url } = await startProvider(t, {
    good: answers(200, completion({ content: "Hello." })),
    bad: answers(500, { error: { message: "the model's machine is on fire" } }),
    busy: answers(429, {}, { "retry-after": "30" }),
  });
  const port = await freePort();
  const breaker = { failures: 1, cooldown_ms: 60_000 };
  const base = { admin: { port }, limits: { rpm: 100 }, breaker, data_dir: folder() };
  const config = configFor(url, ["good", "bad"], merge(base, over) as object);
  const file = configFile(config);
  const extensions = [...allExtensions, reloadStatus(startRecord(undefined))];
  const gateway = await startGateway(t, config, { extensions, ...deps }, env);
  const ask = async (model: string) => (await gateway.chat({ model, messages: user("hi") })).text();
  return { ...gateway, file, port, ask };
}

const status = (file: string, ...more: string[]) => runHere(["status", "--config", file, ...more]);

/** The file of a configuration whose admin listener would be at this port. */
const fileFor = (port: number, over: object = {}): string =>
  configFile({ providers: {}, models: {}, admin: { port, ...over } });

describe("status", () => {
  it("of a healthy gateway: a sentence, figures, models and accounts, exit 0; for programs everything", async (t) => {
    const { file, ask, port } = await running(t);
    await ask("good");
    const stdout = outputOf(await status(file));
    const expected = [
      /^healthy: 2 models can serve, 0 requests in flight$/,
      /^$/,
      /^requests in the last 15 minutes: 1; ok 1, 429 0, other 4xx 0, 5xx 0; in the last minute [\d.]+\/s$/,
      /^tokens in 20, out 7; first token: half [\d.]+ s, 95 % [\d.]+ s$/,
      /^refused or failed: none$/,
      /^version \d+\.\d+\.\d+; requests in flight: 0; processes: 1; event loop late by \d+ ms; limits in memory; configuration of 20\d\d-.*Z$/,
      /^$/,
      /^ {2}model +provider +state +asked +failed +tokens out +last fault$/,
      /^ {2}good +lab +is healthy +1 +0 +7 +-$/,
      /^ {2}bad +lab +is healthy +0 +0 +0 +-$/,
      /^$/,
      /^ {2}account +requests a minute +of at most$/,
      /^ {2}acme +1 +100$/,
    ];
    const printed = stdout.trimEnd().split("\n");
    assert.equal(printed.length, expected.length, stdout);
    for (const [at, line] of expected.entries()) assert.match(printed[at]!, line);
    const { models, ...said } = JSON.parse((await status(file, "--json")).stdout);
    assert.deepEqual([said.healthy, said.status, said.version], [true, "serving", VERSION]);
    assert.deepEqual([said.address, models.length], [`http://127.0.0.1:${port}`, 2]);
  });

  it("of a gateway with a failing model: which one, until when, the provider's message, exit 1; healthy once it may be tried again", async (t) => {
    const clock = { now: 0 };
    const { file, ask, gateway } = await running(t, {}, { monotonic: () => clock.now });
    const assertState = async (bad: number) => {
      const text = await (await fetch(`${gateway.adminAddress()}/metrics`)).text();
      const states = /(^chat_gateway_breaker_state.*\n)+/m.exec(text)![0];
      assert.equal(states.match(/good"} 0\n.*bad"} (\d)\n$/)?.[1], String(bad));
    };
    await assertState(0);
    await ask("bad");
    await assertState(2);
    const failing = await status(file);
    assert.equal(failing.code, 1);
    assert.match(failing.stdout, /^not healthy: bad fails: next try in (60|59) s$/m);
    const words = "status 500: the model's machine is on";
    assert.match(failing.stdout, new RegExp(`^ {2}bad +lab +fails: .* 1 +1 +0 +.*${words}`, "m"));
    clock.now = 60_000;
    const stdout = outputOf(await status(file));
    assert.match(stdout, /^ {2}bad +lab +failed, and is tried again with the next request/m);
    await assertState(1);
  });

  it("of a gateway with an overloaded provider: until when, exit 1", async (t) => {
    const models = { bad: { upstream_model: "busy" } };
    const { file, ask } = await running(t, { models }, { monotonic: () => 0 });
    await ask("bad");
    const { code, stdout } = await status(file);
    assert.equal(code, 1);
    assert.match(stdout, /^not healthy: bad is overloaded: next try in 30 s$/m);
    assert.match(stdout, /^ {2}bad +lab +is overloaded: next try in 30 s /m);
  });

  it("of a gateway that rejects an account: which one, how many requests over all keys, why", async (t) => {
    const { file, chat } = await running(t, {
      accounts: { acme: { rpm: 0 } },
      keys: [KEY, "sk-of-the-same-account"].map((key) => ({ account: "acme", key })),
    });
    for (const key of [KEY, KEY, "sk-of-the-same-account"]) {
      const headers = { authorization: `Bearer ${key}` };
      await (await chat({ model: "good", messages: user("hi") }, headers)).text();
    }
    const line = /^refused or failed: acme 3 \(rate_limit_exceeded\)$/m;
    assert.match((await status(file)).stdout, line);
    assert.match((await runHere(["top", "--once", "--config", file])).stdout, line);
    const refusals = [{ account: "acme", code: "rate_limit_exceeded", count: 3 }];
    assert.deepEqual(JSON.parse((await status(file, "--json")).stdout).refusals, refusals);
  });

  it("without a running gateway: says so, exit 1, for programs too", async () => {
    const port = await freePort();
    const file = fileFor(port);
    const address = `http://127.0.0.1:${port}`;
    const sentence = `not healthy: no gateway answers at ${address}: ECONNREFUSED`;
    const { code, stdout, stderr } = await status(file);
    assert.deepEqual([code, stdout, stderr], [1, `${sentence}\n`, ""]);
    const forPrograms = JSON.parse((await status(file, "--json")).stdout);
    assert.deepEqual(forPrograms, { healthy: false, sentence, address });
  });

  it("with admin.port 0: cannot find a gateway, and says why", async () => {
    const { code, stderr } = await status(fileFor(0));
    assert.equal(code, 1);
    assert.match(stderr, /^chat-gateway: admin\.port is 0, any free port: set one, or the gateway/);
  });

  it("of another program on the port: says that it is not a gateway", async (t) => {
    for (const answer of ["hello", '{"models":[],"limits":{"accounts":[]}}']) {
      const server = http.createServer((_, res) => res.end(answer));
      const { port } = new URL(await listening(t, server));
      const { code, stdout } = await status(fileFor(Number(port)));
      assert.deepEqual([code, /is not a chat-gateway$/m.test(stdout)], [1, true]);
    }
  });
});

describe("the admin listener with a password", () => {
  it("is read with admin.password, and gets no other secret", async (t) => {
    const env = { ADMIN_PASSWORD: "secret-of-the-test" };
    const { file } = await running(t, { admin: { password: "$ADMIN_PASSWORD" } }, {}, env);
    const right = await runHere(["status", "--config", file], { env });
    assert.equal(right.code, 0);
    const unset = await status(file);
    assert.equal(unset.code, 1);
    const hint =
      /wants another password .* is its environment variable set, or was it changed since the gateway's start\?$/m;
    assert.match(unset.stdout, hint);
  });

  it("over TLS is read if it has the configured certificate, and otherwise gets no password", async (t) => {
    const own = certificate();
    const admin = { password: "secret-of-the-test", tls: own };
    const { file, port } = await running(t, { admin });
    const right = await status(file);
    assert.deepEqual([right.code, right.stderr], [0, ""]);
    const wrong = await status(fileFor(port, { ...admin, tls: certificate() }));
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^not healthy: https:\S+ has a certificate other than /);
  });
});

/** `top` on a terminal, and its output so far. */
function onTerminal(file: string) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
  let screen = "";
  const printed = (text: string) => (screen = text);
  const end = runHere(["top", "--config", file], { isTerminal: true, stdin, printed });
  return { stdin, end, screen: () => screen };
}

describe("top", () => {
  it("piped, or with --once: prints the output of status once, as plain text", async (t) => {
    const { file, ask } = await running(t);
    await ask("good");
    await ask("bad");
    for (const [isTerminal, more] of [
      [false, []],
      [false, ["--once"]],
      [true, ["--once"]],
    ] as const) {
      const stdout = outputOf(await runHere(["top", ...more, "--config", file], { isTerminal }));
      assert.match(stdout, /^chat-gateway at http:\/\/127\.0\.0\.1:\d+\nnot healthy: bad fails/);
      assert.match(stdout, /15 minutes: 2; ok 1, 429 0, other 4xx 0, 5xx 1;/);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test asserts their absence
      assert.doesNotMatch(stdout, /\u001b/);
    }
  });

  it("on a terminal: takes the screen, refreshes itself, ends with q and restores the screen", async (t) => {
    const { file, ask } = await running(t);
    const { stdin, end, screen } = onTerminal(file);
    await waitFor(() => screen().includes("healthy: 2 models"), "the first view");
    assert.match(screen(), /last 15 minutes: 0;/);
    await ask("good");
    await waitFor(() => screen().includes("last 15 minutes: 1;"), "the second view");
    stdin.write("x"); // not a key of `top`
    stdin.write("q");
    assert.equal((await within(end, "the end after q")).code, 0);
    assert.ok(screen().startsWith("\u001b[?1049h\u001b[?25l\u001b[?7l"), "without wrapping");
    assert.ok(screen().endsWith("\u001b[?7h\u001b[?25h\u001b[?1049l"));
  });

  it("continues while no gateway responds, and says so", async () => {
    const file = fileFor(await freePort());
    const { stdin, end, screen } = onTerminal(file);
    await waitFor(() => screen().includes("no gateway answers at"), "the fault");
    stdin.write("\u0003");
    assert.equal((await within(end, "the end after control and C")).code, 0);
    const piped = await runHere(["top", "--config", file]);
    assert.equal(piped.code, 1);
    assert.match(piped.stderr, /no gateway answers at .*ECONNREFUSED$/m);
  });
});

/** A terminal of this size, whose keyboard reports whether it is in raw mode. */
function bench(size: object) {
  const stdout = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, ...size });
  const heard: string[] = [];
  let isRaw = false;
  const setRawMode = (mode: boolean) => {
    isRaw = mode;
  };
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode });
  const screen = openScreen(stdout, stdin, (key) => heard.push(key));
  const written = () => String(stdout.read() ?? "");
  written();
  return { screen, stdout, stdin, heard, written, isRaw: () => isRaw };
}

describe("a screen", () => {
  it("shows no more than fits, and redraws after a resize", () => {
    const { screen, stdout, written } = bench({ columns: 5, rows: 2 });
    screen.show(["one two", "three", "four"]);
    assert.equal(written(), "\u001b[Hone t\u001b[K\r\nthree\u001b[K\u001b[J");
    Object.assign(stdout, { columns: 3 }).emit("resize");
    assert.equal(written(), "\u001b[Hone\u001b[K\r\nthr\u001b[K\u001b[J");
  });

  it("has a default size if the terminal reports none", () => {
    const { screen, written } = bench({ columns: 0, rows: 0 });
    screen.show(Array(30).fill("x".repeat(100)));
    assert.deepEqual([written().split("\r\n").length, written().length], [24, 0]);
  });

  it("reads keys while it is open, and not afterwards", () => {
    const { screen, stdout, stdin, heard, written, isRaw } = bench({ columns: 80, rows: 24 });
    assert.ok(isRaw());
    stdin.emit("data", Buffer.from("aé"));
    screen.close();
    assert.ok(!isRaw());
    assert.equal(written(), "\u001b[?7h\u001b[?25h\u001b[?1049l");
    stdin.emit("data", Buffer.from("b"));
    stdout.emit("resize");
    assert.deepEqual([heard, written()], [["a", "é"], ""]);
  });
});
