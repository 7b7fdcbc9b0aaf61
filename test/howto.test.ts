// The page "How do I ...?": each task runs with its configuration and its lines, against the test's
// own provider. Only addresses, the program's name and the settings in the test differ.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { post } from "./extensions/apis/post.ts";
import { run as start } from "./support/command.ts";
import { folder } from "./support/folder.ts";
import { configFor, json, merge, startGateway, user } from "./support/gateway.ts";
import { freePort } from "./support/port.ts";
import { quickest } from "./support/program.ts";
import { completion, speak, startProvider, status, type Behaviours } from "./support/provider.ts";
import { blocksIn, pages, runShell } from "./support/readme.ts";
import { threeDays } from "./support/sealed-books.ts";
import { until } from "./support/wait.ts";

const PAGE = pages().find(({ name }) => name === "howto")!.text;
const CUSTOMER = "sk-of-the-customer";
const ENV = { DEEPSEEK_API_KEY: "sk-deepseek", ACME_KEY: CUSTOMER };
const program = [process.execPath, ...quickest(folder()).args].join(" ");

/** The only block in a language below a heading. */
function block(heading: string, language = "bash"): string {
  const [, after = ""] = PAGE.split(`\n## ${heading}\n`);
  const blocks = blocksIn(after.split("\n## ")[0]!).filter((each) => each.language === language);
  assert.equal(blocks.length, 1, `${heading} has one ${language} block`);
  return blocks[0]!.text;
}

/** The task's configuration, with its provider at `url`, any ports, and its own books. */
function configOf(heading: string, url: string, over: object = {}): any {
  const written = JSON.parse(block(heading, "json"));
  const base = {
    server: { host: "127.0.0.1", port: 0 },
    admin: { port: 0 },
    limits: { rpm: null },
    providers: { deepseek: { base_url: url } },
    retry: { max_retries: 0 },
  };
  return merge(merge(written, base), over);
}

function placeOf(config: object): string {
  const place = folder();
  writeFileSync(join(place, "gateway.json"), JSON.stringify(config));
  return place;
}

/** Runs lines of the page in this folder until they end. Rejects if they fail. */
const shell = (cwd: string, lines: string, env: object = ENV): Promise<string> =>
  runShell(lines.replaceAll("npm start --silent --", program), {
    cwd,
    env: { PATH: process.env["PATH"], ...env },
  });

/** A running gateway whose books are in `data` of its folder. */
async function running(t: TestContext, config: object) {
  const place = placeOf({ ...config, data_dir: "data" });
  const gateway = await startGateway(t, { ...config, data_dir: join(place, "data") }, {}, ENV);
  return { place, gateway };
}

/** The same with the task's configuration and its provider. */
async function scene(t: TestContext, heading: string, behaviours: Behaviours, over: object = {}) {
  const provider = await startProvider(t, behaviours);
  return { provider, ...(await running(t, configOf(heading, provider.url, over))) };
}

const asCustomer = { authorization: `Bearer ${CUSTOMER}` };

describe("How do I ...?", () => {
  it("cap a customer at 50 dollars a month", async (t) => {
    const task = "Cap a customer at 50 dollars a month";
    const usage = { prompt_tokens: 0, completion_tokens: 40, total_tokens: 40 };
    const reply = status(200, { ...completion({ content: "Hello." }), usage });
    // A dollar a token: the budget has room for 40 dollars once.
    const price = { input_cache_hit: 0, input_cache_miss: 0, output: 1_000_000 };
    const { place, provider, gateway } = await scene(t, task, reply, {
      models: { "deepseek-flash": { price } },
    });
    const ask = () =>
      gateway.chat({ model: "deepseek-flash", max_tokens: 40, messages: user("hi") }, asCustomer);
    assert.equal((await ask()).status, 200);
    const refused = await ask();
    assert.equal(refused.status, 402);
    assert.equal((await json(refused)).error.code, "insufficient_balance");
    assert.equal(provider.asked.length, 1);
    const shown = await shell(place, block(task));
    for (const amount of ["50", "40", "10"]) assert.match(shown, new RegExp(`\\b${amount}\\b`));
  });

  it("rotate a provider's key without a pause", async (t) => {
    const task = "Rotate a provider's key without a pause";
    const provider = await startProvider(t, speak("Hello."));
    const place = placeOf(configOf(task, provider.url));
    await shell(place, block(task), { NEW_KEY: "sk-old" });
    const running = start(t, ["serve"], { cwd: place, env: ENV });
    const address = await running.address();
    const keys = () => provider.asked.map(({ headers }) => headers.authorization);
    const ask = async () => {
      const body = { model: "deepseek-flash", messages: user("hi") };
      const answer = await post(`${address}/v1/chat/completions`, body, asCustomer);
      assert.equal(answer.status, 200, await answer.text());
      return keys().at(-1);
    };
    assert.equal(await ask(), "Bearer sk-old");
    await shell(place, block(task), { NEW_KEY: "sk-new" });
    await until(async () => (await ask()) === "Bearer sk-new", "the new key at the provider");
    assert.deepEqual(new Set(keys()), new Set(["Bearer sk-old", "Bearer sk-new"]));
  });

  // test/extensions/scale/redis and test/extensions/money/postgres test that several gateways share
  // limits and books.
  it("run on three machines", () => {
    const task = "Run on three machines";
    const { limits, usage } = configOf(task, "http://127.0.0.1:9");
    assert.deepEqual([limits.store, usage.store], ["$REDIS_URL", "$POSTGRES_URL"]);
    const lines = block(task).split("\n");
    for (const line of [
      "npm install --save-optional redis pg",
      "npm start -- check",
      "npm start -- serve",
    ])
      assert.ok(lines.includes(line), line);
  });

  it("find out why a request fell back", async (t) => {
    const task = "Find out why a request fell back";
    const provider = await startProvider(t, {
      first: status(503, { error: { message: "overloaded" } }),
      second: speak("Hello."),
    });
    const price = { input_cache_miss: 1, output: 1 };
    const names = ["first", "second"];
    const config = configFor(provider.url, names, {
      models: { first: { price }, second: { price } },
      aliases: { team: { models: names } },
      keys: [{ account: "acme", key: "$ACME_KEY" }],
    });
    const { place, gateway } = await running(t, config);
    const headers = { ...asCustomer, "x-request-id": "my-request" };
    const answer = await gateway.chat({ model: "team", messages: user("hi") }, headers);
    assert.equal((await json(answer)).model, "second");
    const [text, data] = await Promise.all(
      block(task)
        .split("\n")
        .map((line) => shell(place, line)),
    );
    assert.match(text!, /second/);
    const found = JSON.stringify(JSON.parse(data!));
    assert.match(found, /"model":"first"[^}]*"outcome":"model_overloaded"/);
    assert.match(found, /"model":"second"[^}]*"outcome":"ok"/);
  });

  it("get an alert when a provider is down", async (t) => {
    const task = "Get an alert when a provider is down";
    const port = await freePort();
    const refuse = status(401, { error: { message: "no such key" } });
    const { place, gateway } = await scene(t, task, refuse, { admin: { metrics: { port } } });
    const lines = block(task).replaceAll("9464", String(port));
    assert.match(await shell(place, lines.split("\n")[0]!), /\{model="deepseek-flash"\} 0\n/);
    const ask = { model: "deepseek-flash", messages: user("hi") };
    assert.equal((await gateway.chat(ask, asCustomer)).status, 503);
    const shown = await shell(place, lines);
    assert.match(shown, /^chat_gateway_breaker_state\{model="deepseek-flash"\} 2$/m);
    assert.match(shown, /^chat_gateway_upstream_faults_total\{.*kind="refused"\} 1$/m);
  });

  const noPromtool = spawnSync("promtool", ["--version"]).status !== 0;
  it("have rules that Prometheus accepts", {
    skip: noPromtool && "there is no promtool here",
  }, () => {
    const file = join(folder(), "rules.yml");
    writeFileSync(file, block("Get an alert when a provider is down", "yaml"));
    const { status: code, stdout, stderr } = spawnSync("promtool", ["check", "rules", file]);
    assert.equal(code, 0, String(stdout) + String(stderr));
    assert.match(String(stdout), /2 rules found/);
  });

  it("let a team use Claude Code on DeepSeek", async (t) => {
    const task = "Let a team use Claude Code on DeepSeek";
    const { place, provider, gateway } = await scene(t, task, speak("Hello."));
    const made = await shell(place, block(task));
    const [ada, ben, ...others] = made.match(/\bsk-\S{20,}/g) ?? [];
    assert.ok(ada && ben && ada !== ben && others.length === 0, made);
    const ask = (key: string, model: string) => {
      const body = { model, max_tokens: 100, messages: user("hi") };
      return post(`${gateway.url}/v1/messages`, body, { authorization: `Bearer ${key}` });
    };
    // A running gateway notices a new key within a second.
    for (const key of [ada, ben])
      await until(async () => (await ask(key, "coder")).status === 200, "the new key");
    const answer = await json(await ask(ben, "coder-small"));
    assert.equal(answer.content.at(-1).text, "Hello.");
    assert.equal(provider.asked.at(-1)!.body["model"], "deepseek-flash");
    const records = gateway.access.filter(({ status: code }) => code === 200);
    assert.deepEqual(new Set(records.map(({ account }) => account)), new Set(["team"]));
  });

  it("prove a bill to a customer", async () => {
    const task = "Prove a bill to a customer";
    assert.equal(JSON.parse(block(task, "json")).seals.enabled, true);
    const books = await threeDays();
    const config = configOf(task, "http://127.0.0.1:9", { data_dir: books.dir });
    const place = placeOf(config);
    const printed = await shell(place, block(task).replace("2026-11", "2026-02"));
    const proved = /statement of acme for 2026-02: \d+ records: .*\n.*\nnothing was changed\n/;
    assert.match(printed, proved);
    const statement = readFileSync(join(place, "statement.json"), "utf8");
    assert.ok(statement.includes('"account":"acme"'));
  });

  it("hide prompts from every log", async (t) => {
    const task = "Hide prompts from every log";
    const prompt = "the text of a prompt";
    const quoting = status(400, { error: { message: `cannot read "${prompt}"` } });
    const { place, gateway } = await scene(t, task, quoting);
    const ask = { model: "deepseek-flash", messages: user(prompt) };
    const answer = await gateway.chat(ask, { ...asCustomer, "x-request-id": "asked" });
    assert.equal(answer.status, 400);
    await gateway.accessOf("asked");
    assert.equal(await shell(place, block(task)), "not found\n");
    const logged = JSON.stringify([gateway.access, gateway.diagnostics]);
    assert.ok(logged.includes("attempt_failed") && !logged.includes(prompt), logged);
    const admin = gateway.gateway.adminAddress();
    for (const path of ["status", "requests", "metrics", "trace?request_id=asked"])
      assert.ok(!(await (await fetch(`${admin}/${path}`)).text()).includes(prompt), path);
  });

  it("has a test for every task", () => {
    const tested = readFileSync("test/howto.test.ts", "utf8");
    const tasks = [...PAGE.matchAll(/^## (.*)$/gm)].map(([, task]) => task!);
    assert.equal(tasks.length, 8);
    for (const task of tasks) assert.ok(tested.includes(`"${task}"`), task);
  });
});
