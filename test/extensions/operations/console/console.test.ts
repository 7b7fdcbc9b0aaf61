// The console's server side, on the admin listener: the page, what is so at the moment, trying it,
// what it cost, and who may ask. The page itself is driven by a browser in clients/console.test.ts.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http, { type IncomingHttpHeaders } from "node:http";
import https from "node:https";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { page } from "../../../../src/extensions/operations/console/page.ts";
import { statement } from "../../../../src/extensions/money/billing/statement.ts";
import { createDays } from "../../../../src/extensions/money/days/days.ts";
import { createFileStore } from "../../../../src/extensions/money/file-store/file-store.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { copySettled, openBooks } from "../../../../src/extensions/money/usage/index.ts";
import { installed, checkConfig } from "../../../support/config.ts";
import type { ValidationError } from "../../../../src/core/schema/checker.ts";
import {
  handMade,
  openLine,
  priced,
  settled,
  settleLine,
  spendLines,
  sum,
  textOf,
  usageCount,
  usageRecords,
  type Line,
} from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { folder } from "../../../support/folder.ts";
import {
  configFor,
  demo,
  KEY,
  startGateway,
  user,
  type RunningGateway,
} from "../../../support/gateway.ts";
import { bundled, launch } from "../../../support/program.ts";
import { held, silent, status } from "../../../support/provider.ts";
import { writeSpend } from "../../../support/spend.ts";
import { until, waitFor, within } from "../../../support/wait.ts";
import { now, thisMonth } from "../../../support/today.ts";

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}
/** Any headers, also a Host and an Origin of one's own. */
async function ask(
  address: string,
  path: string,
  headers: Record<string, string> = {},
  { method = "GET", body = "" } = {},
): Promise<Answer> {
  const req = (address.startsWith("https") ? https : http).request(`${address}${path}`, {
    method,
    headers,
    rejectUnauthorized: false,
    agent: false,
  });
  req.end(body);
  const [res] = await within(once(req, "response"), `the answer to ${method} ${path}`);
  let text = "";
  for await (const piece of res.setEncoding("utf8")) text += piece;
  return {
    status: res.statusCode,
    headers: res.headers,
    text,
    body: /json/.test(res.headers["content-type"]) ? JSON.parse(text) : undefined,
  };
}
const adminOf = (gw: RunningGateway): string => gw.gateway.adminAddress()!;
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`,
});
const assertRefused = ({ status, body }: Answer, expected: number, code: string) =>
  assert.deepEqual([status, body.error.code], [expected, code]);

/** A script of the page, by its name. Its functions have no types. */
const moduleOf = async (name: string): Promise<any> =>
  await import(`../../../../src/extensions/operations/console/page/${name}.js`);

describe("the page", () => {
  const source = page.text;
  const folderOfPage = "src/extensions/operations/console/page";
  const files = readdirSync(folderOfPage).map((name) => ({
    name,
    text: readFileSync(join(folderOfPage, name), "utf8"),
  }));

  it("is made of files of at most 300 lines, each of which says what it is for", () => {
    for (const { name, text } of files) {
      assert.ok(text.split("\n").length <= 300, name);
      const head = { js: /^\/\/ [A-Z]/, css: /^\/\* [A-Z]/, html: /^<!doctype html>/ };
      assert.match(text, head[name.split(".").at(-1) as keyof typeof head], name);
    }
  });

  it("has every script and style of its folder, each after those that it imports", () => {
    const starts = new Map(
      [...source.matchAll(/^modules\["([\w-]+)"\] = /gm)].map(({ 1: name, index }) => [
        name,
        index,
      ]),
    );
    const scripts = files.filter(({ name }) => name.endsWith(".js"));
    assert.equal(starts.size, scripts.length);
    for (const { name, text } of scripts) {
      const own = starts.get(name.replace(".js", "")) ?? assert.fail(name);
      for (const [, imported] of text.matchAll(/from "\.\/([\w-]+)\.js"/g))
        assert.ok((starts.get(imported!) ?? Infinity) < own, `${name} imports ${imported}`);
    }
    assert.doesNotMatch(source, /^(import|export) /m);
    for (const { name, text } of files.filter((file) => file.name.endsWith(".css")))
      assert.ok(source.includes(text), name);
  });

  it("says which configuration is in force, and what could not be read again", async () => {
    const { configurationText, reloadFaults } = await moduleOf("words");
    const time = "2026-11-22T12:00:00.000Z";
    const at = (ms: number) => Date.parse(time) + ms;
    const inForce = { config_file: "/etc/gateway.json", config_loaded_at: time };
    assert.equal(configurationText(inForce, at(30_000)), "/etc/gateway.json, loaded 30 s ago.");
    assert.equal(
      configurationText({ ...inForce, config_file: null }, at(0)),
      "The built-in configuration, loaded just now.",
    );
    const fault = { time, path: "limits.rpm", message: "expected an integer", count: 2 };
    const faulty = { config_fault: fault, keys: { fault: "it is empty" } };
    const [configuration, keys] = reloadFaults(faulty);
    assert.match(
      configuration,
      /^A changed configuration was refused at .*: limits\.rpm: expected an integer \(2 faults/,
    );
    assert.match(keys, /^keys\.json cannot be read.*: it is empty$/);
    assert.deepEqual(reloadFaults({ config_fault: null, keys: { fault: null } }), []);
    assert.deepEqual(reloadFaults({}), [], "without these extensions");
  });

  it("is one file that asks no other host for anything", async (t) => {
    const { status, headers, text } = await ask(adminOf(await startGateway(t, demo())), "/");
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    assert.equal(text, source);
    assert.deepEqual(
      source
        .match(/\b(?:https?:)?\/\/[a-z][^\s"'`]*/gi)
        ?.filter((url) => !url.startsWith("http://www.w3.org/2000/svg")) ?? [],
      [],
    );
    assert.doesNotMatch(
      source,
      /innerHTML|insertAdjacent|document\.write|\beval\b|localStorage|sessionStorage|cookie/,
    );
  });

  it("its policy lets its own script and style run, and nothing else", async (t) => {
    const { headers } = await ask(adminOf(await startGateway(t, demo())), "/");
    const digest = (tag: string) =>
      createHash("sha256")
        .update(new RegExp(`<${tag}>(.*)</${tag}>`, "s").exec(source)![1]!)
        .digest("base64");
    const policy = new Map(
      String(headers["content-security-policy"])
        .split("; ")
        .map((part) => [part.split(" ")[0]!, part.split(" ").slice(1).join(" ")]),
    );
    assert.deepEqual(Object.fromEntries(policy), {
      "default-src": "'none'",
      "script-src": `'sha256-${digest("script")}'`,
      "style-src": `'sha256-${digest("style")}'`,
      "connect-src": "'self'",
      "img-src": "data:",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
    });
    assert.doesNotMatch(source, / (?:style|on[a-z]+)="/, "neither of which it would let in");
  });

  it("is in the one file that is built, wherever that is put", async (t) => {
    const place = folder();
    const built = bundled(place);
    writeFileSync(join(place, "some.json"), JSON.stringify(demo()));
    const gw = launch(built, ["serve", "--port", "0", "--config", "some.json"]);
    t.after(() => gw.child.kill("SIGKILL"));
    await within(gw.address, "the built file to listen");
    assert.equal((await ask(gw.admin(), "/")).text, source);
  });
});

describe("who may use the admin listener", () => {
  it("is asked for by an address, localhost or its own name: a name that is made to point here is another site's", async (t) => {
    const admin = adminOf(await startGateway(t, demo({ admin: { host: "localhost", port: 0 } })));
    const { port } = new URL(admin);
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      `[::1]:${port}`,
      "10.1.2.3",
      "localhost",
    ]) {
      for (const path of ["/", "/status", "/metrics"])
        assert.equal((await ask(admin, path, { host })).status, 200, `${host} ${path}`);
    }
    for (const host of [
      `evil.example:${port}`,
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "1.2.3",
    ]) {
      for (const path of ["/", "/status", "/metrics", "/events", "/costs", "/trace", "/nothing"])
        assertRefused(await ask(admin, path, { host }), 403, "host_not_allowed");
    }
  });

  it("what changes something, and what another site's page asks for, must come from its own page", async (t) => {
    const gw = await startGateway(t, demo());
    const admin = adminOf(gw);
    const host = new URL(admin).host;
    const request = {
      method: "POST",
      body: JSON.stringify({ model: "demo-chat", messages: user("hi") }),
    };
    const key = { "x-api-key": "sk-demo" };
    assert.equal((await ask(admin, "/try", { ...key, origin: admin }, request)).status, 200);
    for (const origin of [
      undefined,
      "null",
      "http://evil.example",
      `http://evil.example/${host}`,
      admin.replace(/\d+$/, "1"),
    ]) {
      assertRefused(
        await ask(admin, "/try", { ...key, ...(origin !== undefined && { origin }) }, request),
        403,
        "origin_not_allowed",
      );
    }
    assert.equal(gw.access.length, 1, "the others never reached the public listener");
    const foreign = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    assertRefused(await ask(admin, "/usage.csv?month=2026-01", foreign), 403, "origin_not_allowed");
    assert.equal(
      (await ask(admin, "/", { ...foreign, "sec-fetch-mode": "navigate" })).status,
      200,
      "a link to it is no harm",
    );
    assertRefused(
      await ask(admin, "/trace?request_id=x", { ...foreign, "sec-fetch-mode": "navigate" }),
      403,
      "origin_not_allowed",
    );
  });

  it("with a password it wants that, from everybody, and tells nobody what it is", async (t) => {
    const gw = await startGateway(
      t,
      demo({ admin: { port: 0, password: "$ADMIN_PASSWORD" } }),
      {},
      { ADMIN_PASSWORD: "correct:horse" },
    );
    const admin = adminOf(gw);
    for (const path of [
      "/",
      "/status",
      "/metrics",
      "/events",
      "/costs",
      "/usage",
      "/usage.csv",
      "/trace",
      "/nothing",
    ]) {
      const answer = await ask(admin, path);
      assertRefused(answer, 401, "invalid_password");
      assert.match(answer.headers["www-authenticate"]!, /^Basic realm=/);
    }
    for (const [headers, status] of [
      [basic("correct:horse"), 200],
      [basic("correct"), 401],
      [basic(""), 401],
      [{ authorization: "Bearer correct:horse" }, 401],
    ] as const) {
      assert.equal((await ask(admin, "/status", headers)).status, status);
    }
    assertRefused(
      await ask(admin, "/status", { ...basic("correct:horse"), host: "gateway.internal" }),
      403,
      "host_not_allowed",
    );
    assert.equal((await fetch(`${gw.url}/healthz`)).status, 200, "it is the admin's only");
    const told = JSON.stringify([
      gw.access,
      gw.diagnostics,
      (await ask(admin, "/status", basic("correct:horse"))).text,
    ]);
    assert.doesNotMatch(told, /correct/);
  });

  it("after ten wrong passwords an address has to wait, even with the right one", async (t) => {
    const admin = adminOf(await startGateway(t, demo({ admin: { port: 0, password: "right" } })));
    for (let n = 0; n < 5; n += 1)
      assertRefused(await ask(admin, "/status"), 401, "invalid_password"); // a browser's first question has none
    for (let n = 0; n < 10; n += 1)
      assertRefused(await ask(admin, "/status", basic(`wrong ${n}`)), 401, "invalid_password");
    for (const headers of [basic("right"), basic("wrong"), {}]) {
      const answer = await ask(admin, "/status", headers);
      assertRefused(answer, 429, "rate_limit_exceeded");
      assert.equal(answer.headers["retry-after"], "60");
    }
  });

  it("an address that others reach wants a password and a certificate, and has them", async (t) => {
    const tls = certificate();
    const faultsOf = (admin: object) => {
      try {
        checkConfig(demo({ admin }), {});
        return [];
      } catch (error) {
        return (error as ValidationError).issues.map(
          ({ path, message }) => `${path.join(".")}: ${message}`,
        );
      }
    };
    const fault = [
      "admin.host: must be a loopback address, unless there are admin.password and admin.tls; admin.plain: true allows the password without TLS",
    ];
    for (const admin of [
      { host: "0.0.0.0" },
      { host: "0.0.0.0", password: "secret" },
      { host: "::", tls },
      { host: "gateway.internal" },
    ])
      assert.deepEqual(faultsOf(admin), fault);
    assert.deepEqual(faultsOf({ host: "0.0.0.0", password: "secret", tls }), []);
    assert.match(
      faultsOf({ password: "$NOT_SET" }).join(),
      /admin\.password: the environment variable NOT_SET is not set/,
    );
    const admin = adminOf(
      await startGateway(t, demo({ admin: { host: "0.0.0.0", port: 0, password: "secret", tls } })),
    );
    assert.match(admin, /^https:/);
    const local = admin.replace("0.0.0.0", "127.0.0.1");
    assert.deepEqual(
      [(await ask(local, "/status")).status, (await ask(local, "/status", basic("secret"))).status],
      [401, 200],
    );
    assert.equal(
      (await ask(local, "/status", { ...basic("secret"), host: "gateway.internal" })).status,
      200,
      "by whatever name it is reached",
    );
    await assert.rejects(
      startGateway(t, demo({ admin: { tls: { ...tls, cert_file: join(folder(), "none.pem") } } })),
      /admin\.tls\.cert_file: cannot be read: ENOENT/,
    );
  });
});

/** The events of a page that is open. */
async function openEvents(t: TestContext, admin: string) {
  const req = http.get(`${admin}/events`, { agent: false });
  t.after(() => req.destroy());
  const [res] = await within(once(req, "response"), "the events");
  assert.equal(res.headers["content-type"], "text/event-stream; charset=utf-8");
  const events: any[] = [];
  let rest = "";
  let ended = false;
  res.setEncoding("utf8").on("data", (piece: string) => {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop()!;
    for (const block of blocks) events.push(JSON.parse(block.replace(/^data: /, "")));
  });
  res.on("close", () => (ended = true)).on("error", () => undefined);
  return {
    req,
    events,
    ended: () => ended,
    nth: (n: number) => waitFor(() => events[n], `event ${n}`),
  };
}

describe("what is so at the moment", () => {
  it("the first event has models and aliases, and a later one has them if they have changed", async (t) => {
    const { gw, ask: send } = await priced(
      t,
      {
        fine: status(200, { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] }),
        bad: status(500),
      },
      {
        breaker: { failures: 1 },
        aliases: { "auto/x": { models: ["bad", "fine"] } },
      },
    );
    const opening = now();
    const opened = await openEvents(t, adminOf(gw));
    const first = await opened.nth(0);
    assert.ok(first.time >= opening && first.time <= now());
    assert.deepEqual([first.address, first.currency], [gw.url, "USD"]);
    const states = ({ status: { models } }: any) =>
      models.map(({ model, breaker }: any) => [model, breaker.state]);
    assert.deepEqual(states(first), [
      ["fine", "closed"],
      ["bad", "closed"],
    ]);
    assert.equal(first.status.limits.accounts, undefined, "of which there may be many");
    assert.equal(first.status.demo_key, false);
    await send({ model: "bad" });
    const changed = await waitFor(
      () => opened.events.find(({ status: now }) => now?.models[1].breaker.state === "open"),
      "the model that fails to be told",
    );
    assert.match(changed.status.models[1].breaker.last_fault, /500/);
    assert.deepEqual(
      changed.status.aliases[0].candidates.map(({ model, breaker }: any) => [model, breaker]),
      [
        ["bad", "open"],
        ["fine", "closed"],
      ],
    );
    const later = await openEvents(t, adminOf(gw));
    assert.deepEqual(states(await later.nth(0)), states(changed), "who comes later gets all");
  });

  it("an event without news is short", async (t) => {
    const opened = await openEvents(t, adminOf(await startGateway(t, demo())));
    await opened.nth(2);
    assert.deepEqual(Object.keys(opened.events.at(-1)).sort(), [
      "address",
      "currency",
      "event_loop_delay",
      "in_flight",
      "time",
    ]);
  });

  it("a page that goes is forgotten, and one that is open does not hold up the end", async (t) => {
    const gw = await startGateway(t, demo());
    const [gone, open] = [await openEvents(t, adminOf(gw)), await openEvents(t, adminOf(gw))];
    assert.equal(
      (await ask(adminOf(gw), "/events", {}, { method: "HEAD" })).text,
      "",
      "and has no end to wait for",
    );
    gone.req.destroy();
    await open.nth(1);
    await within(gw.gateway.close(0), "the gateway to close");
    await waitFor(open.ended, "the events to end");
  });

  it("several processes are told of as one", async (t) => {
    const place = folder();
    writeFileSync(join(place, "gateway.json"), JSON.stringify(demo({ server: { workers: 2 } })));
    const gw = launch(bundled(place), []);
    t.after(() => gw.child.kill("SIGKILL"));
    const url = await within(gw.address, "both processes to listen");
    const opened = await openEvents(t, gw.admin());
    // A look leaves out a process that is too busy to answer in time.
    let looks = 0;
    while ((await opened.nth(looks)).status.workers < 2) looks += 1;
    assert.equal((await opened.nth(0)).address, url);
    const body = JSON.stringify({ model: "demo-chat", messages: user("hi") });
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        ask(
          gw.admin(),
          "/try",
          { origin: gw.admin(), "x-api-key": "sk-demo" },
          { method: "POST", body },
        ),
      ),
    );
    assert.deepEqual(
      answers.map((answer) => answer.status),
      Array(8).fill(200),
    );
    await until(async () => {
      const { body: history } = await ask(gw.admin(), "/history");
      return history.total.ok === 8;
    }, "all eight to be in the history");
    const spend = await until(async () => {
      const { rows } = (
        await ask(gw.admin(), `/costs?month=${new Date().toISOString().slice(0, 7)}&by=model`)
      ).body;
      return rows[0]?.requests === 8 && rows;
    }, "the sums of both");
    assert.equal(spend[0].model, "demo-chat");
  });
});

describe("trying it", () => {
  const request = (body: object) => ({
    method: "POST",
    body: JSON.stringify({ messages: user("Say something."), ...body }),
  });

  it("the answer is the public listener's: a stream, an error, with the request id of the page", async (t) => {
    const gw = await startGateway(t, demo());
    const from = { origin: adminOf(gw), "x-api-key": "sk-demo" };
    const streamed = await ask(
      adminOf(gw),
      "/try",
      { ...from, "x-request-id": "tried once" },
      request({ model: "auto/chat", stream: true }),
    );
    assert.match(streamed.text, /\ndata: \[DONE\]\n\n$/);
    assert.deepEqual(
      [streamed.status, streamed.headers["x-request-id"], streamed.headers["content-type"]],
      [200, "tried once", "text/event-stream; charset=utf-8"],
    );
    const line = await gw.accessOf("tried once");
    assert.deepEqual(
      [line["path"], line["account"], line["status"]],
      ["/v1/chat/completions", "demo", 200],
    );
    assertRefused(
      await ask(
        adminOf(gw),
        "/try",
        { ...from, "x-api-key": "sk-other" },
        request({ model: "auto/chat" }),
      ),
      401,
      "invalid_api_key",
    );
    assertRefused(
      await ask(adminOf(gw), "/try", { origin: adminOf(gw) }, request({ model: "auto/chat" })),
      401,
      "invalid_api_key",
    );
    assertRefused(
      await ask(adminOf(gw), "/try", from, request({ model: "nobody" })),
      404,
      "model_not_found",
    );
    assertRefused(
      await ask(adminOf(gw), "/try", from, { method: "POST", body: "{" }),
      400,
      "invalid_json",
    );
    assertRefused(await ask(adminOf(gw), "/try"), 405, "method_not_allowed");
  });

  it("whoever stops it stops the provider, and pays for what had come", async (t) => {
    const { behaviour } = held();
    const { dir, gw, provider } = await priced(t, { slow: behaviour, mute: silent });
    for (const model of ["slow", "mute"]) {
      const req = http.request(`${adminOf(gw)}/try`, {
        method: "POST",
        agent: false,
        headers: { origin: adminOf(gw), "x-api-key": KEY },
      });
      req.on("error", () => undefined).end(request({ model, stream: true }).body);
      const asked = await provider.nth(provider.asked.length);
      if (model === "slow") await within(once(req, "response"), "the stream to begin");
      req.destroy();
      await waitFor(asked.closed, "the provider's connection to be closed");
    }
    assert.deepEqual(
      (await settled(dir, 2)).map(({ status }) => status),
      ["cancelled", "cancelled"],
    );
    assert.deepEqual(
      gw.diagnostics.filter(({ event }) => event === "internal_error"),
      [],
    );
  });

  it("also where the public listener has a certificate of its own", async (t) => {
    const gw = await startGateway(t, demo({ server: { tls: certificate() } }));
    assert.match(gw.url, /^https:/);
    const { status, body } = await ask(
      adminOf(gw),
      "/try",
      { origin: adminOf(gw), "x-api-key": "sk-demo" },
      request({ model: "demo-chat" }),
    );
    assert.deepEqual([status, body.model], [200, "demo-chat"]);
  });
});

/** A gateway whose books hold this spend already. */
async function withSpend(t: TestContext, write: (dir: string) => void, over: object = {}) {
  const dir = folder();
  const config = configFor("http://127.0.0.1:1", ["m"], { data_dir: dir, ...over });
  mkdirSync(join(dir, "spend"));
  write(dir);
  const options = { clock: systemClock, diagnose: () => undefined, installed };
  await copySettled(openBooks(checkConfig(config, {}), options));
  const gw = await startGateway(t, config);
  return { dir, gw, get: (path: string) => ask(adminOf(gw), path) };
}

const groupOf = (record: Line, names: readonly string[]): string =>
  JSON.stringify(names.map((name) => record[name]));

/** The records that agree in these members, by their values of these. */
function groupBy(records: readonly Line[], names: readonly string[]): Map<string, Line[]> {
  const groups = new Map<string, Line[]>();
  for (const record of records) {
    const group = groupOf(record, names);
    const members = groups.get(group) ?? [];
    members.push(record);
    groups.set(group, members);
  }
  return groups;
}

/** A row of sums is that of these records. */
function assertSums(row: Line, records: readonly Line[]): void {
  assert.equal(row["requests"], records.length);
  assert.equal(row["cost"], sum(records.map(({ cost }) => cost)));
  for (const name of [
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "completion_tokens",
    "reasoning_tokens",
  ])
    assert.equal(
      row[name],
      records.reduce((all, record) => all + record[name], 0),
      name,
    );
}

describe("what it cost", () => {
  const MADE = 3_000;
  const spendOf = (t: TestContext) =>
    withSpend(t, (dir) =>
      writeSpend(dir, {
        requests: MADE,
        seed: 7,
        from: Date.parse("2026-01-20"),
        to: Date.parse("2026-03-10"),
      }),
    );

  it("sums by day, account and model are those of the records, to the last digit, and the month's is the statement's", async (t) => {
    const { dir, get } = await spendOf(t);
    const records = usageRecords(dir);
    const month = records.filter(({ ended_at }) => ended_at.startsWith("2026-02"));
    const withDay = month.map(
      (record): Line => ({ ...record, day: record["ended_at"].slice(0, 10) }),
    );
    const [account, model, day] = [
      withDay[0]!["account"],
      withDay[1]!["model"],
      withDay[2]!["day"],
    ];
    for (const filter of [{}, { account }, { model }, { day }, { account, model, day }] as Line[]) {
      const fit = withDay.filter((record) =>
        Object.entries(filter).every(([name, value]) => record[name] === value),
      );
      for (const by of [
        ["model"],
        ["account"],
        ["day"],
        ["day", "model"],
        ["day", "account", "model"],
      ]) {
        const costs = async (more: Record<string, string>) => {
          const query = { month: "2026-02", by: by.join(), ...filter, ...more };
          return (await get(`/costs?${new URLSearchParams(query)}`)).body;
        };
        const { rows, count } = await costs({});
        const groups = groupBy(fit, [...by, "currency"]);
        assert.equal(count, groups.size);
        assert.equal(rows.length, Math.min(500, count));
        for (const row of rows)
          assertSums(row, groups.get(groupOf(row, [...by, "currency"])) ?? []);
        const amounts = rows.map(({ cost }: Line) => Number(cost));
        const descending = amounts.toSorted((a: number, b: number) => b - a);
        assert.deepEqual(amounts, descending, "the dearest first");
        if (count > 1) assert.deepEqual((await costs({ skip: "1" })).rows[0], rows[1]);
      }
    }
    const owed = await statement(
      createFileStore(join(dir, "usage"), createDays(join(dir, "days.jsonl"))),
      {
        account,
        month: "2026-02",
        currency: "USD",
      },
    );
    assert.equal(
      (await get(`/costs?${new URLSearchParams({ month: "2026-02", by: "account", account })}`))
        .body.rows[0].cost,
      owed.total.cost,
    );
    assert.deepEqual((await get("/costs?month=2025-02&by=model")).body, { rows: [], count: 0 });
  });

  it("sums of a span of days, also by key and provider, are those of its records", async (t) => {
    const { dir, get } = await spendOf(t);
    const [from, to] = ["2026-01-30", "2026-02-02"];
    const records = usageRecords(dir)
      .map(
        (record): Line => ({
          ...record,
          day: record["ended_at"].slice(0, 10),
          provider: record["provider"] ?? "",
        }),
      )
      .filter(({ day }) => day >= from && day <= to);
    assert.ok(records.length > 100 && new Set(records.map(({ day }) => day)).size === 4);
    const [{ key_id: key } = {}] = records;
    for (const [by, names] of [
      ["account", ["account"]],
      ["provider", ["provider"]],
      ["key", ["key_id"]],
      ["day,model", ["day", "model"]],
    ] as const) {
      for (const [filter, fit] of [
        [{}, records],
        [{ key }, records.filter((record) => record["key_id"] === key)],
      ] as const) {
        const query = new URLSearchParams({ from, to, by, ...filter });
        const { rows, count } = (await get(`/costs?${query}`)).body;
        const groups = groupBy(fit, [...names, "currency"]);
        assert.equal(count, groups.size, by);
        for (const row of rows) assertSums(row, groups.get(groupOf(row, [...names, "currency"]))!);
      }
    }
    const csv = await get(`/usage.csv?from=${from}&to=${to}`);
    assert.equal(csv.text.split("\r\n").length, records.length + 2);
    assert.equal(
      csv.headers["content-disposition"],
      `attachment; filename="usage-${from}-to-${to}.csv"`,
    );
    const first = (await get(`/usage?from=${from}&to=${to}&key=${key}`)).body.records;
    assert.deepEqual(
      first.map(({ usage_id }: Line) => usage_id),
      records.filter((record) => record["key_id"] === key).map(({ usage_id }) => usage_id),
    );
  });

  it("sums follow what comes later, whoever asks meanwhile", async (t) => {
    const {
      dir,
      gw,
      ask: send,
    } = await priced(
      t,
      {
        fine: status(200, {
          choices: [{ message: { content: "hi" }, finish_reason: "stop" }],
          usage: { prompt_tokens: 3, completion_tokens: 5 },
        }),
      },
      { usage: { sync_ms: 20 } },
    );
    const month = thisMonth();
    const requests = async () =>
      await Promise.all(
        [1, 2, 3].map(
          async () =>
            (await ask(adminOf(gw), `/costs?month=${month}&by=model`)).body.rows[0]?.requests ?? 0,
        ),
      );
    for (let n = 1; n <= 5; n += 1) {
      await send();
      await waitFor(() => usageCount(dir) === n, `record ${n}`);
      await until(async () => (await requests()).every((each) => each === n), `the sum of ${n}`);
    }
    assert.deepEqual(await requests(), [5, 5, 5]);
  });

  it("single requests come in pages, and as a file, which are the records", async (t) => {
    const { dir, get } = await spendOf(t);
    const month = usageRecords(dir)
      .filter((record) => record["day"].startsWith("2026-02"))
      .map(({ details: _, log: __, ...record }) => record);
    const { account, model } = month[0]!;
    const day = month[5]!["day"];
    for (const filter of [{}, { account }, { day }, { model, account, day }] as Line[]) {
      const fit = month.filter((record) =>
        Object.entries(filter).every(([name, value]) => record[name] === value),
      );
      const pages: Line[] = [];
      for (let skip = 0; ; skip += 100) {
        const { records } = (
          await get(
            `/usage?${new URLSearchParams({ month: "2026-02", skip: String(skip), ...filter })}`,
          )
        ).body;
        if (records.length === 0) break;
        assert.ok(records.length <= 100);
        pages.push(...records);
      }
      assert.deepEqual(pages, fit);
      const csv = await get(`/usage.csv?${new URLSearchParams({ month: "2026-02", ...filter })}`);
      assert.equal(csv.text.split("\r\n").length, fit.length + 2);
      assert.equal(
        csv.headers["content-disposition"],
        `attachment; filename="usage-${filter["day"] ?? "2026-02"}.csv"`,
      );
      assert.ok(fit.every(({ usage_id }) => csv.text.includes(usage_id)));
    }
  });

  it("a request id tells its whole story: when it has just ended, while it is on its way, and when there are several", async (t) => {
    const {
      dir,
      gw,
      ask: send,
      provider,
    } = await priced(
      t,
      {
        bad: status(500),
        fine: status(200, { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] }),
        mute: silent,
      },
      {
        usage: { sync_ms: 86_400_000 },
        aliases: { "auto/x": { models: ["bad", "fine"] } },
      },
    );
    const trace = async (id: string) =>
      (await ask(adminOf(gw), `/trace?request_id=${encodeURIComponent(id)}`)).body;
    const id = 'the "first" one: {"gateway_request_id":"x"}';
    await send({ model: "auto/x" }, { "x-request-id": id });
    const { gateway_request_id, records, spend } = await trace(id);
    assert.deepEqual([gateway_request_id, records.length], [id, 1]);
    assert.deepEqual(
      spend,
      spendLines(dir).filter((line) => line["type"] === "settle"),
    );
    assert.deepEqual(
      spend[0]!["attempts"].map(({ model, outcome }: Line) => [model, outcome]),
      [
        ["bad", "upstream_error"],
        ["fine", "completed"],
      ],
    );
    send({ model: "mute" }, { "x-request-id": "on its way" }).catch(() => undefined);
    await provider.nth(2);
    assert.deepEqual(
      (await trace("on its way")).spend.map(({ type }: Line) => type),
      ["open"],
    );
    await send({ model: "fine" }, { "x-request-id": id });
    assert.equal((await trace(id)).spend.length, 2);
    assert.deepEqual(await trace("nobody's"), {
      gateway_request_id: "nobody's",
      records: [],
      receipts: [],
      spend: [],
    });
    assert.deepEqual(
      (await trace("x")).spend,
      [],
      "an id that stands inside another's is not that",
    );
  });

  it("an old request's attempts are found by the day of its record", async (t) => {
    const { get } = await withSpend(t, (dir) => {
      // Begun before midnight, in the segment of the day before, and ended after.
      const about = { time: "2026-01-31T23:59:59.900Z", gateway_request_id: "late" };
      handMade(
        dir,
        "2026-01-30.0001.jsonl",
        textOf([
          openLine(1, about),
          settleLine(1, { ...about, time: "2026-02-01T00:00:03.000Z", duration_ms: 3_100 }),
        ]),
        "let go",
      );
      handMade(
        dir,
        "2026-01-31.0001.jsonl",
        textOf([
          openLine(2, { ...about, gateway_request_id: "in time" }),
          settleLine(2, { ...about, gateway_request_id: "in time" }),
        ]),
        "let go",
      );
    });
    for (const id of ["late", "in time"]) {
      const { records, spend } = (await get(`/trace?request_id=${encodeURIComponent(id)}`)).body;
      assert.deepEqual([records.length, spend.length, spend[0].attempts.length], [1, 1, 1], id);
    }
    assert.deepEqual(
      (await get("/costs?month=2026-02&by=day")).body.rows.map(({ day }: Line) => day),
      ["2026-02-01"],
      "it is billed when it ended",
    );
  });

  it("what is asked for wrongly is told, with the name of what is wrong", async (t) => {
    const { get } = await withSpend(t, () => undefined);
    const cases: [path: string, param: string | null, message: RegExp][] = [
      ["/costs?by=day", "month", /is required/],
      ["/costs?month=2026-13&by=model", "month", /expected a month such as 2026-11/],
      ["/costs?month=2026-1&by=model", "month", /a month/],
      ["/costs?month=2026-01&by=colour", "by", /a list of day, account, key, model and provider/],
      ["/costs?month=2026-01&by=", "by", /a list/],
      ["/costs?from=2026-01-01", "to", /is required with from/],
      ["/costs?from=2026-01-02&to=2026-01-01", "to", /is before from/],
      ["/costs?from=2020-01-01&to=2026-01-01", "to", /at most 800 days/],
      ["/costs?from=2026-01-01&to=2026-01-02&month=2026-01", "month", /not both/],
      ["/costs?month=2026-01&by=day&day=2026-02-30", "day", /a day such as/],
      ["/costs?month=2026-01&by=day&skip=-1", "skip", /a number/],
      ["/usage?month=2026-01&what=1", "what", /not a known field/],
      ["/usage", "month", /is required/],
      ["/usage.csv", "month", /is required/],
      ["/trace", "request_id", /is required/],
      ["/trace?request_id=", "request_id", /not empty/],
      ["/costs?month=2026-01&account=%00", "account", /a name/],
      ["/costs?month=0000-01", "month", /a month/],
    ];
    for (const [path, param, message] of cases) {
      const { status, body } = await get(path);
      assert.equal(status, 400, path);
      assert.equal(body.error.param, param, path);
      assert.match(body.error.message, message, path);
    }
  });

  it("many requests with one id: as many as there is room for, each as it ended", async (t) => {
    const { get } = await withSpend(t, (dir) => {
      const lines = Array.from({ length: 620 }, (_, n) => [
        openLine(n, { gateway_request_id: "same" }),
        ...(n > 0 ? [settleLine(n - 1, { gateway_request_id: "same" })] : []),
      ]);
      handMade(
        dir,
        "2026-01-31.0001.jsonl",
        textOf([...lines.flat(), settleLine(619, { gateway_request_id: "same" })]),
        "let go",
      );
    });
    const { records, spend } = (await get("/trace?request_id=same")).body;
    assert.deepEqual([records.length, spend.length], [620, 500]);
    assert.ok(spend.every(({ type }: Line) => type === "settle"));
  });

  it("books that cannot be read are no fault of who asks, and are told to the operator", async (t) => {
    const { dir, gw, get } = await withSpend(
      t,
      (dir) =>
        writeSpend(dir, {
          requests: 100,
          from: Date.parse("2026-02-01"),
          to: Date.parse("2026-02-27"),
        }),
      { usage: { sync_ms: 86_400_000 } },
    );
    await until(
      async () => (await get("/status")).body.usage.lag_seconds !== null,
      "the first sync to be over",
    );
    assert.equal((await get("/costs?month=2026-02&by=day")).body.rows.length, 26);
    rmSync(join(dir, "usage", "2026-02-03.jsonl"));
    for (const path of ["/costs?month=2026-02", "/usage?month=2026-02"]) {
      const answer = await get(path);
      assertRefused(answer, 500, "internal_error");
      assert.doesNotMatch(answer.text, /jsonl/);
    }
    assert.match(
      JSON.stringify(gw.diagnostics.filter(({ event }) => event === "internal_error")),
      /2026-02-03\.jsonl/,
    );
  });

  it("whoever leaves while a file is being sent is no fault of ours", async (t) => {
    const { gw, get } = await withSpend(t, (dir) =>
      writeSpend(dir, {
        requests: 60_000,
        from: Date.parse("2026-02-01"),
        to: Date.parse("2026-02-27"),
      }),
    );
    const req = http.get(`${adminOf(gw)}/usage.csv?month=2026-02`, { agent: false });
    const [res] = await within(once(req, "response"), "the file to begin");
    await within(once(res, "data"), "its first bytes");
    res.pause();
    req.destroy();
    assert.equal((await get("/status")).status, 200);
    await within(gw.gateway.close(0), "the gateway to close");
    assert.deepEqual(
      gw.diagnostics.filter(({ level }) => level === "error"),
      [],
    );
  });
});

describe("the OpenAPI document", () => {
  it("has all that the admin listener answers, and its answers are as it says", async (t) => {
    const gw = await startGateway(t, demo());
    const { paths } = (await ask(gw.url, "/openapi.json")).body;
    const admin = Object.entries<any>(paths).filter(([, { servers }]) => servers !== undefined);
    assert.deepEqual(admin.map(([path]) => path).sort(), [
      "/",
      "/costs",
      "/events",
      "/history",
      "/keys",
      "/keys/{id}",
      "/manual",
      "/manual/{topic}",
      "/metrics",
      "/requests",
      "/status",
      "/trace",
      "/try",
      "/usage",
      "/usage.csv",
    ]);
    for (const [path, methods] of admin) {
      const allow = (await ask(adminOf(gw), path, { origin: adminOf(gw) }, { method: "PUT" }))
        .headers.allow;
      const expected = [
        methods.get ? "GET, HEAD" : [],
        methods.post ? "POST" : [],
        methods.delete ? "DELETE" : [],
      ];
      assert.equal(allow, expected.flat().join(", "), path);
    }
  });
});
