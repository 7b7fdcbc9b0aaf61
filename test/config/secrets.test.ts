// Canary secrets (client keys in the configuration and created ones, a provider's key, a database
// password) in requests that succeed and fail in many ways. They must appear in no file under
// data_dir, no body, no header, no log, and in no command's output except where a new key is shown.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { configFile } from "../support/books.ts";
import type { Ended } from "../support/program.ts";
import { ended, run } from "../support/command.ts";
import { folder } from "../support/folder.ts";
import { configFor, demo, startGateway, user } from "../support/gateway.ts";
import {
  chunk,
  completion,
  reset,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../support/provider.ts";
import { rawRequest } from "../support/raw.ts";
import { until, waitFor, within } from "../support/wait.ts";
import { thisMonth } from "../support/today.ts";

const CLIENT = "sk-CANARY-client-5d1f";
const STRANGER = "sk-CANARY-stranger-77a0";
const PROVIDER = "sk-CANARY-provider-e2c9";
const PASSWORD = "CANARY-password-0b3e";

/** The names and texts of all files under a folder, joined. */
const everyFile = (dir: string): string =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .map(
      (entry) =>
        `${entry.name}\n${entry.isFile() ? readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8") : ""}`,
    )
    .join("\n");

/** Asserts that no text contains a secret or its identifying part, and that no text is empty. */
function assertClean(texts: Readonly<Record<string, string>>, secrets: readonly string[]): void {
  for (const [name, text] of Object.entries(texts)) {
    assert.notEqual(text, "", name);
    for (const secret of secrets)
      for (const form of [
        secret.replace(/^sk-/, ""),
        Buffer.from(secret).toString("base64").slice(0, 12),
        encodeURIComponent(secret),
      ])
        assert.ok(
          !text.includes(form),
          `${name} has ${form}: ${text.slice(Math.max(0, text.indexOf(form) - 100)).slice(0, 200)}`,
        );
  }
}

/** Repeats the key in the response, as providers may. */
const telling: Behaviour = (asked) =>
  status(
    401,
    { error: { message: `Incorrect API key provided: ${PROVIDER}`, code: PROVIDER } },
    { "content-type": "application/json", "x-echo": PROVIDER },
  )(asked);
const BEHAVIOURS: Record<string, Behaviour> = {
  fine: speak("Fine."),
  telling,
  broken: status(500, `<html>${PROVIDER}</html>`, { "content-type": "text/html" }),
  wrong: status(400, { error: { message: `bad ${PROVIDER}` } }),
  odd: status(
    200,
    completion({ content: "x" }, "insufficient_system_resource", {
      id: PROVIDER,
      system_fingerprint: PROVIDER,
    }),
  ),
  cut: stream([chunk({ content: "Once" }, null, { id: PROVIDER })], "cut"),
  inside: stream([chunk({ content: "Once" }), { error: { message: `no ${PROVIDER}` } }]),
  early: stream([{ error: { message: PROVIDER, type: PROVIDER } }]),
  reset,
  silent,
  elsewhere: status(307, {}, { location: `http://127.0.0.1:1/?key=${PROVIDER}` }),
  garbage: stream([`{"id": "${PROVIDER}`, chunk({ content: "Fine." }), chunk({}, "stop")]),
};

describe("secrets", () => {
  it("of clients and providers appear nowhere, whatever happens", async (t) => {
    const dir = folder();
    const provider = await startProvider(t, BEHAVIOURS);
    const config = configFor(provider.url, Object.keys(BEHAVIOURS), {
      data_dir: dir,
      providers: { lab: { api_key: "$LAB_KEY" } },
      keys: [{ account: "acme", key: "$CLIENT_KEY" }],
      usage: { sync_ms: 20 },
      aliases: { team: { models: ["broken", "silent", "fine"] } },
      timeouts: { first_token_ms: 60 },
    });
    const env = { LAB_KEY: PROVIDER, CLIENT_KEY: CLIENT };
    const gw = await startGateway(t, config, {}, env);
    const file = configFile(config);
    const made = await ended(t, ["keys", "create", "--account", "acme", "--config", file]);
    const key = made.stdout.trim();
    assert.match(key, /^sk-.{32}$/);
    const secrets = [CLIENT, STRANGER, PROVIDER, key];

    const seen: string[] = [];
    const note = async (response: Response) => {
      seen.push(JSON.stringify([...response.headers]), await response.text().catch(() => "cut"));
    };
    const as = (given: string) => ({ authorization: `Bearer ${given}` });
    await until(async () => {
      const response = await gw.chat({ model: "ghost", messages: user("hi") }, as(key));
      await note(response);
      return response.status !== 401;
    }, "the new key to be heard of");
    for (const model of [...Object.keys(BEHAVIOURS), "team", "ghost"]) {
      const request = { model, messages: user("hi") };
      await note(await gw.chat(request, as(CLIENT)));
      await note(await gw.chat({ ...request, stream: true }, as(key)));
    }
    const refused: [unknown, Record<string, string>][] = [
      [{ model: "fine", messages: user("hi") }, as(STRANGER)],
      [{ model: "fine", messages: user("hi") }, { authorization: STRANGER }],
      [{ model: "fine", messages: user("hi") }, { authorization: `Basic ${STRANGER}` }],
      ["{", as(CLIENT)],
      [{ model: 1 }, as(CLIENT)],
      [{ model: "fine", messages: [] }, as(key)],
      ["x".repeat(100), { ...as(CLIENT), "content-type": "text/plain" }],
    ];
    for (const [body, headers] of refused) await note(await gw.chat(body, headers));
    for (const path of [
      "/v1/models",
      "/nowhere",
      `/v1/models?api_key=${CLIENT}`,
      `/nowhere?key=${STRANGER}`,
      "/readyz",
    ])
      await note(await fetch(gw.url + path, { headers: as(CLIENT) }));
    for (const bytes of [
      `GET / HTTP/1.1\r\nAuthorization: Bearer ${CLIENT}\r\nbroken\r\n\r\n`,
      `GET / HTTP/1.1\r\nAuthorization: Bearer ${CLIENT}\r\nX-Filler: ${"x".repeat(70_000)}\r\n\r\n`,
    ])
      seen.push((await rawRequest(gw.url, bytes)).text);
    const admin = await Promise.all(
      ["status", "metrics"].map(async (path) =>
        (await fetch(`${gw.gateway.adminAddress()}/${path}`)).text(),
      ),
    );
    const commands = await Promise.all(
      [
        ["keys", "list"],
        ["audit"],
        ["billing", "statement", "--account", "acme", "--month", thisMonth(), "--format", "csv"],
      ].map((args) => ended(t, [...args, "--config", file], { env })),
    );
    await within(gw.gateway.close(0), "the gateway to close");

    assert.ok(
      provider.asked.every(({ headers }) => headers.authorization === `Bearer ${PROVIDER}`) &&
        provider.asked.length > 20,
      "the provider got its own key, each time",
    );
    const outputs = Object.fromEntries(
      commands.map(({ stdout, stderr }, at) => [`command ${at}`, stdout + stderr]),
    );
    assertClean(
      {
        "bodies and headers": seen.join("\n"),
        "access log": JSON.stringify(gw.access),
        diagnostics: JSON.stringify(gw.diagnostics),
        "admin listener": admin.join("\n"),
        "files under data_dir": everyFile(dir),
        "what keys create said beside the key": made.stderr,
        "what the provider got": JSON.stringify(provider.asked.map(({ body }) => body)),
        ...outputs,
      },
      secrets,
    );
  });

  it("in the address of an unreachable database appear in no log, response or file", async (t) => {
    // A stand-in for the package `pg` whose error reveals everything but the password.
    const cwd = folder();
    const pg = join(cwd, "node_modules", "pg");
    mkdirSync(pg, { recursive: true });
    writeFileSync(
      join(pg, "package.json"),
      JSON.stringify({ name: "pg", version: "8.0.0", main: "index.js" }),
    );
    writeFileSync(
      join(pg, "index.js"),
      `
      const refuse = async () => { throw Object.assign(new Error('password authentication failed for user "books"'), { code: "28P01" }); };
      class Connection { on() { return this; } connect() { return refuse(); } query() { return refuse(); } async end() {} release() {} }
      module.exports = { Client: Connection, Pool: Connection };`,
    );
    const config = configFile(demo({ data_dir: "data", usage: { store: "$BOOKS", sync_ms: 20 } }));
    const env = { BOOKS: `postgres://books:${PASSWORD}@127.0.0.1:1/books` };
    const gw = run(t, ["--config", config], { cwd, env });
    await gw.address();
    const admin = /admin on (http:\S+?)\)/.exec(gw.stdout())?.[1];
    await waitFor(() => gw.stderr().includes("usage_sync_failed"), "the failure to be told");
    const answers = await Promise.all(
      ["status", "metrics"].map(async (path) => (await fetch(`${admin}/${path}`)).text()),
    );
    const { usage } = JSON.parse(answers[0]!);
    assert.deepEqual([usage.store, /authentication failed/.test(usage.fault)], ["postgres", true]);
    const outputs: Ended[] = await Promise.all(
      [["usage", "sync", "--once"], ["audit"], ["check"]].map((args) =>
        ended(t, [...args, "--config", config], { cwd, env }),
      ),
    );
    assert.deepEqual(
      outputs.map(({ code }) => code),
      [1, 1, 0],
    );
    gw.child.kill("SIGTERM");
    const { code, stdout, stderr } = await within(gw.ended, "the end");
    assert.equal(code, 0);
    assertClean(
      {
        stdout,
        stderr,
        answers: answers.join("\n"),
        "files under data_dir": everyFile(join(cwd, "data")),
        commands: outputs.map((each) => each.stdout + each.stderr).join("\n"),
      },
      [PASSWORD],
    );
  });
});
