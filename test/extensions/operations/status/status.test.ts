// `status` and `top`: what they say of a running gateway, how they find it, and whom they trust.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, it } from "node:test";
import { certificate } from "../../../support/certificate.ts";
import { lines } from "../../../support/command.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import { freePort } from "../../../support/port.ts";
import { completion, startProvider, status as answers } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import type { Scope } from "../../../support/scope.ts";
import { waitFor, within } from "../../../support/wait.ts";

/** A gateway with the models `good` and `bad`, and the file of its configuration. */
async function running(t: Scope, over: object = {}, env: Record<string, string> = {}) {
  const provider = await startProvider(t, {
    good: answers(200, completion({ content: "Hello." })),
    bad: answers(500, { error: { message: "the model's machine is on fire" } }),
  });
  const port = await freePort();
  const more = merge(
    {
      admin: { port },
      limits: { rpm: 100 },
      breaker: { failures: 1, cooldown_ms: 60_000 },
      data_dir: folder(),
    },
    over,
  );
  const config = configFor(provider.url, ["good", "bad"], more as object);
  const file = join(folder(), "gateway.json");
  writeFileSync(file, JSON.stringify(config));
  const gateway = await startGateway(t, config, {}, env);
  const ask = async (model: string) => (await gateway.chat({ model, messages: user("hi") })).text();
  return { ...gateway, file, port, ask };
}

const status = (file: string, ...more: string[]) => runHere(["status", "--config", file, ...more]);

describe("status", () => {
  it("of a healthy gateway: a sentence, models and accounts, exit 0", async (t) => {
    const { file, ask } = await running(t);
    await ask("good");
    const { code, stdout, stderr } = await status(file);
    assert.deepEqual([code, stderr], [0, ""]);
    const [sentence, facts, refused, head, good, bad, accounts, acme] = lines(stdout);
    assert.equal(sentence, "healthy: 2 models can serve, 0 requests in flight");
    assert.match(
      facts!,
      /^requests in flight: 0; processes: 1; limits in memory; configuration of 20\d\d-.*Z$/,
    );
    assert.equal(refused, "refused or failed since the start: none");
    assert.match(head!, /^ {2}model +provider +state +failures +last fault$/);
    assert.match(good!, /^ {2}good +lab +is healthy +0 +-$/);
    assert.match(bad!, /^ {2}bad +lab +is healthy +0 +-$/);
    assert.match(accounts!, /^ {2}account +requests a minute +of at most$/);
    assert.match(acme!, /^ {2}acme +1 +100$/);
  });

  it("of one with a failing model: which, until when, in the provider's words, exit 1", async (t) => {
    const { file, ask } = await running(t);
    await ask("bad");
    const { code, stdout } = await status(file);
    assert.equal(code, 1);
    const [sentence] = lines(stdout);
    assert.match(sentence!, /^not healthy: bad fails: next try in (60|59) s$/);
    assert.match(
      stdout,
      /^ {2}bad +lab +fails: next .* 1 .*status 500: the model's machine is on/m,
    );
  });

  it("of one that refuses an account: whose requests, how many, why", async (t) => {
    const { file, ask } = await running(t, { accounts: { acme: { rpm: 1 } } });
    for (const model of ["good", "good", "good"]) await ask(model);
    const refusals = [{ account: "acme", code: "rate_limit_exceeded", count: 2 }];
    const { stdout } = await status(file);
    assert.match(stdout, /^refused or failed since the start: acme 2 \(rate_limit_exceeded\)$/m);
    assert.deepEqual(JSON.parse((await status(file, "--json")).stdout).refusals, refusals);
    const { stdout: top } = await runHere(["top", "--once", "--config", file]);
    assert.match(top, /^refused or failed since the start: acme 2 \(rate_limit_exceeded\)$/m);
  });

  it("for programs: one line of JSON with all that the listener says", async (t) => {
    const { file, port } = await running(t);
    const { code, stdout } = await status(file, "--json");
    assert.equal(code, 0);
    const said = JSON.parse(stdout);
    assert.deepEqual(
      [said.healthy, said.address, said.status, said.models.length],
      [true, `http://127.0.0.1:${port}`, "serving", 2],
    );
  });

  it("where no gateway runs: says so, exit 1, also for programs", async () => {
    const file = join(folder(), "gateway.json");
    const port = await freePort();
    writeFileSync(file, JSON.stringify({ providers: {}, models: {}, admin: { port } }));
    const sentence = `not healthy: no gateway answers at http://127.0.0.1:${port}: ECONNREFUSED`;
    assert.deepEqual(await status(file), {
      code: 1,
      signal: null,
      stdout: `${sentence}\n`,
      stderr: "",
    });
    const { stdout } = await status(file, "--json");
    const address = `http://127.0.0.1:${port}`;
    assert.deepEqual(JSON.parse(stdout), { healthy: false, sentence, address });
  });

  it("with admin.port 0 cannot find a gateway, and says why", async () => {
    const file = join(folder(), "gateway.json");
    writeFileSync(file, JSON.stringify({ providers: {}, models: {}, admin: { port: 0 } }));
    const { code, stderr } = await status(file);
    assert.equal(code, 1);
    assert.match(stderr, /^chat-gateway: admin\.port is 0, any that is free: state one/);
  });

  it("of something else on the port: says that it is no gateway", async (t) => {
    const server = http.createServer((_, res) => res.end("hello")).listen(0, "127.0.0.1");
    await waitFor(() => server.listening, "the server to listen");
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const file = join(folder(), "gateway.json");
    writeFileSync(file, JSON.stringify({ providers: {}, models: {}, admin: { port } }));
    const { code, stdout } = await status(file);
    assert.deepEqual([code, /is no chat-gateway$/m.test(stdout)], [1, true]);
  });
});

describe("the admin listener with a password", () => {
  it("is asked with admin.password, and not told of another secret", async (t) => {
    const env = { ADMIN_PASSWORD: "secret-of-the-test" };
    const { file } = await running(t, { admin: { password: "$ADMIN_PASSWORD" } }, env);
    const right = await runHere(["status", "--config", file], { env });
    assert.equal(right.code, 0);
    const unset = await status(file);
    assert.equal(unset.code, 1);
    assert.match(
      unset.stdout,
      /wants another password .* is its environment variable set, or was it changed since the gateway's start\?$/m,
    );
  });

  it("over TLS is asked, if it has the configured certificate, and else gets no password", async (t) => {
    const own = certificate();
    const admin = { password: "secret-of-the-test", tls: own };
    const { file, port } = await running(t, { admin });
    const right = await status(file);
    assert.deepEqual([right.code, right.stderr], [0, ""]);
    const other = join(folder(), "gateway.json");
    const config = { admin: { ...admin, port, tls: certificate() }, providers: {}, models: {} };
    writeFileSync(other, JSON.stringify(config));
    const wrong = await status(other);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^not healthy: https:\S+ has another certificate than /);
  });
});

describe("top", () => {
  it("that is piped, or with --once: plain text once, the sums since the start", async (t) => {
    const { file, ask } = await running(t);
    await ask("good");
    await ask("good");
    await ask("bad");
    for (const isTerminal of [false, true]) {
      const { code, stdout } = await runHere(["top", "--once", "--config", file], { isTerminal });
      assert.equal(code, 0);
      assert.match(stdout, /^chat-gateway at http:\/\/127\.0\.0\.1:\d+\nnot healthy: bad fails/);
      assert.match(stdout, /since the start: 3; ok 2, 429 0, other 4xx 0, 5xx 1$/m);
      assert.match(stdout, /^tokens in 40, out 14; first token: half within [\d.]+ s/m);
      assert.match(stdout, /^ {2}good +lab +is healthy +2 +0 +14 +-$/m);
      assert.match(stdout, /^ {2}bad +lab +fails: .* 1 +1 +0 +.*on fire$/m);
      assert.match(stdout, /^ {2}acme +3 +100$/m);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that there is none is the point
      assert.doesNotMatch(stdout, /\u001b/);
    }
    const piped = await runHere(["top", "--config", file]);
    assert.match(piped.stdout, /since the start: 3/);
  });

  it("on a terminal: takes the screen, goes on by itself, ends with q and gives the screen back", async (t) => {
    const { file, chat } = await running(t);
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
    let screen = "";
    const end = runHere(["top", "--config", file], {
      isTerminal: true,
      stdin,
      printed: (text) => {
        screen = text;
      },
    });
    await waitFor(() => screen.includes("healthy: 2 models"), "the first view");
    assert.match(screen, /chat requests since the start: 0;/);
    await (
      await chat({ model: "good", messages: user("hi") }, { authorization: `Bearer ${KEY}` })
    ).text();
    await waitFor(() => /in the last \d s: [\d.]+\/s/.test(screen), "the second view, with rates");
    stdin.write("x"); // which is no key of it
    stdin.write("q");
    const { code } = await within(end, "the end after q");
    assert.equal(code, 0);
    assert.ok(screen.startsWith("\u001b[?1049h\u001b[?25l"));
    assert.ok(screen.endsWith("\u001b[?25h\u001b[?1049l"));
  });

  it("goes on while no gateway answers, and says so", async () => {
    const file = join(folder(), "gateway.json");
    const port = await freePort();
    writeFileSync(file, JSON.stringify({ providers: {}, models: {}, admin: { port } }));
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin });
    let screen = "";
    const end = runHere(["top", "--config", file], {
      isTerminal: true,
      stdin,
      printed: (text) => {
        screen = text;
      },
    });
    await waitFor(() => screen.includes("no gateway answers at"), "the fault");
    stdin.write("\u0003");
    assert.equal((await within(end, "the end after control and C")).code, 0);
    const piped = await runHere(["top", "--config", file]);
    assert.equal(piped.code, 1);
    assert.match(piped.stderr, /no gateway answers at .*ECONNREFUSED$/m);
  });
});
