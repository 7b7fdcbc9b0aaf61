// The console's server side on the admin listener: the page, live data, and the playground.
// clients/console.test.ts drives the page in a browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { Script } from "node:vm";
import { page } from "../../../../src/extensions/operations/console/page.ts";
import { adminOf, ask, assertRefused } from "../../../support/admin.ts";
import { priced, settled } from "../../../support/books.ts";
import { certificate } from "../../../support/certificate.ts";
import { folder } from "../../../support/folder.ts";
import { demo, KEY, startGateway, user } from "../../../support/gateway.ts";
import { bundled, launch } from "../../../support/program.ts";
import { held, silent, speak, status } from "../../../support/provider.ts";
import { thisMonth } from "../../../support/today.ts";
import { until, waitFor, within } from "../../../support/wait.ts";

/** A script module of the page. Its functions have no types. */
const moduleOf = async (name: string): Promise<any> =>
  await import(`../../../../src/extensions/operations/console/page/${name}.js`);

describe("the page", () => {
  const source = page.text;
  const folderOfPage = "src/extensions/operations/console/page";
  const files = readdirSync(folderOfPage).map((name) => ({
    name,
    text: readFileSync(join(folderOfPage, name), "utf8"),
  }));

  it("has all scripts and styles of its folder, each of at most 300 lines that begin with its purpose", () => {
    const scripts = files.filter(({ name }) => name.endsWith(".js"));
    for (const { name, text } of files) {
      assert.ok(text.split("\n").length <= 300, name);
      assert.match(text, /^(\/\/ [A-Z]|\/\* [A-Z]|<!doctype html>)/, name);
      if (name.endsWith(".css")) assert.ok(source.includes(text));
    }
    const places = new Map(
      scripts.map(({ name, text }) => [name, source.indexOf(text.slice(0, text.indexOf("\n")))]),
    );
    for (const { name, text } of scripts)
      for (const [, imported] of text.matchAll(/from "\.\/([\w-]+\.js)"/g))
        assert.ok(places.get(imported!)! < places.get(name)! && places.get(imported!)! > 0, name);
  });

  it("is one script, in which no two modules define the same name", () => {
    const [, script = ""] = /<script>(.*)<\/script>/s.exec(source) ?? [];
    assert.doesNotMatch(script, /^(import|export) /m);
    new Script(script); // throws SyntaxError if the script is invalid
    const defined = /^(?:async )?(?:const|let|function\*?) ([\w$]+)/gm;
    const names = [...script.matchAll(defined)].map(([, name]) => name);
    assert.deepEqual(names, [...new Set(names)]);
  });

  it("shows which configuration is in force, and what could not be reloaded", async () => {
    const { configurationText, reloadFaults } = await moduleOf("words");
    const time = "2026-11-22T12:00:00.000Z";
    const at = Date.parse(time) + 30_000;
    const textOf = (file: string | null) =>
      configurationText({ config_file: file, config_loaded_at: time }, at);
    assert.equal(textOf("/etc/gateway.json"), "/etc/gateway.json, loaded 30 s ago.");
    assert.equal(textOf(null), "The built-in configuration, loaded 30 s ago.");
    const fault = { time, path: "limits.rpm", message: "expected an integer", count: 2 };
    const faults = reloadFaults({ config_fault: fault, keys: { fault: "it is empty" } });
    assert.equal(faults.length, 2);
    assert.match(
      faults[0],
      /^The gateway rejected a changed configuration at .*: limits\.rpm: expected an integer \(2 in all\)$/,
    );
    assert.match(faults[1], /^The gateway cannot read keys\.json.*: it is empty$/);
    assert.deepEqual(reloadFaults({ config_fault: null, keys: { fault: null } }), []);
    assert.deepEqual(reloadFaults({}), [], "without these extensions");
  });

  it("shows when a model with an overloaded provider is tried again", async () => {
    const { modelState } = await moduleOf("words");
    const stateOf = (state: string, retryMs: number) =>
      modelState({ breaker: { state, failures: 0, retry_ms: retryMs } });
    const overloaded = { tone: "warn", text: "overloaded: next try in 30 s" };
    assert.deepEqual(stateOf("closed", 29_500), overloaded);
    assert.deepEqual(stateOf("closed", 0), { tone: "ok", text: "healthy" });
    assert.equal(stateOf("open", 0).text, "failing: next try now");
  });

  it("is one file that loads nothing from other hosts, with a policy that blocks everything else", async (t) => {
    const { headers, text } = await ask(adminOf(await startGateway(t, demo())), "/");
    assert.equal(headers["content-type"], "text/html; charset=utf-8");
    assert.equal(text, source);
    const addresses = source.match(/\b(?:https?:)?\/\/[a-z][^\s"'`]*/gi) ?? [];
    assert.deepEqual(new Set(addresses), new Set(["http://www.w3.org/2000/svg"]));
    const unsafe =
      /innerHTML|insertAdjacent|document\.write|\beval\b|localStorage|sessionStorage|cookie/;
    assert.doesNotMatch(source, unsafe);
    assert.doesNotMatch(source, / (?:style|on[a-z]+)="/, "inline code breaks the policy");
    const hashOf = (tag: string) => {
      const [, text = ""] = new RegExp(`<${tag}>(.*)</${tag}>`, "s").exec(source) ?? [];
      return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
    };
    assert.equal(
      headers["content-security-policy"],
      `default-src 'none'; script-src ${hashOf("script")}; style-src ${hashOf("style")}; ` +
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
  });
});

/** The events of an open page. */
async function openEvents(t: TestContext, admin: string) {
  const req = http.get(`${admin}/events`, { agent: false });
  t.after(() => req.destroy());
  const [res] = await within(once(req, "response"), "the events");
  assert.equal(res.headers["content-type"], "text/event-stream; charset=utf-8");
  let text = "";
  res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  const ended = new Promise((resolve) => res.on("close", resolve).on("error", () => undefined));
  const whole = () => text.split("\n\n").slice(0, -1);
  const events = (): any[] => whole().map((block) => JSON.parse(block.replace(/^data: /, "")));
  return { req, events, ended, nth: (n: number) => waitFor(() => events()[n], `event ${n}`) };
}

const request = (body: object) => ({
  method: "POST",
  body: JSON.stringify({ messages: user("Say something."), ...body }),
});

const tryAt = (admin: string, body: object, headers: object = {}) =>
  ask(admin, "/try", { origin: admin, "x-api-key": "sk-demo", ...headers }, request(body));

describe("live data", () => {
  it("is sent to each page that opens, and again: models, aliases, requests in flight", async (t) => {
    const aliases = { "auto/x": { models: ["bad", "fine"] } };
    const over = { breaker: { failures: 1 }, aliases };
    const { gw, ask: send } = await priced(t, { fine: speak("Hi."), bad: status(500) }, over);
    const opening = Date.now();
    const opened = await openEvents(t, adminOf(gw));
    const first = await opened.nth(0);
    assert.ok(first.time >= opening && first.time <= Date.now());
    assert.deepEqual([first.address, first.currency], [gw.url, "USD"]);
    const states = (event: any) =>
      event.status.aliases[0].candidates.map(({ breaker }: any) => breaker);
    assert.deepEqual(states(first), ["closed", "closed"]);
    assert.equal(first.status.limits.accounts, undefined, "accounts are left out");
    assert.deepEqual([first.status.demo_key, first.status.in_flight], [false, 0]);
    await send({ model: "bad" });
    const isTold = (event: any) => states(event)[0] === "open";
    const changed = await waitFor(() => opened.events().find(isTold), "the model that fails");
    assert.match(changed.status.models[1].breaker.last_fault, /500/);
    const later = await openEvents(t, adminOf(gw));
    assert.deepEqual(states(await later.nth(0)), ["open", "closed"], "a late client gets all");
  });

  it("is not sent to closed pages, and open pages do not delay shutdown", async (t) => {
    const gw = await startGateway(t, demo());
    const [gone, open] = [await openEvents(t, adminOf(gw)), await openEvents(t, adminOf(gw))];
    assert.equal((await ask(adminOf(gw), "/events", {}, { method: "HEAD" })).text, "");
    gone.req.destroy();
    await open.nth(1);
    await within(gw.gateway.close(0), "the gateway to close");
    await within(open.ended, "the events to end");
  });

  it("includes all processes", async (t) => {
    const place = folder();
    const config = demo({ server: { workers: 2 }, usage: { sync_ms: 100 } });
    writeFileSync(join(place, "gateway.json"), JSON.stringify(config));
    const gw = launch(bundled(place), []);
    t.after(() => gw.child.kill("SIGKILL"));
    const url = await within(gw.address, "both processes to listen");
    assert.equal((await ask(gw.admin(), "/")).text, page.text, "it is in the one file");
    const opened = await openEvents(t, gw.admin());
    // A read omits a process that is too busy to respond in time.
    let looks = 0;
    while ((await opened.nth(looks)).status.workers < 2) looks += 1;
    assert.equal((await opened.nth(0)).address, url);
    const tried = Array.from({ length: 8 }, () => tryAt(gw.admin(), { model: "demo-chat" }));
    const codes = (await Promise.all(tried)).map((answer) => answer.status);
    assert.deepEqual(codes, Array(8).fill(200));
    const answers = async (path: string) => (await ask(gw.admin(), path)).body;
    await until(async () => (await answers("/history")).total.ok === 8, "the history of both");
    const costs = `/costs?month=${thisMonth()}`;
    await until(async () => (await answers(costs)).rows[0]?.requests === 8, "the sums of both");
  });
});

describe("the playground", () => {
  it("gets the public listener's response: a stream or an error, with the page's request id", async (t) => {
    const gw = await startGateway(t, demo());
    const admin = adminOf(gw);
    const id = { "x-request-id": "tried once" };
    t.mock.method(http.globalAgent as any, "addRequest", () => assert.fail("may use a proxy"));
    const { headers, text } = await tryAt(admin, { model: "auto/chat", stream: true }, id);
    assert.match(text, /\ndata: \[DONE\]\n\n$/);
    assert.equal(headers["x-request-id"], "tried once");
    assert.equal(headers["content-type"], "text/event-stream; charset=utf-8");
    const { path, account, status: code } = await gw.accessOf("tried once");
    assert.deepEqual([path, account, code], ["/v1/chat/completions", "demo", 200]);
    const wrongKey = { "x-api-key": "sk-other" };
    assertRefused(await tryAt(admin, { model: "m" }, wrongKey), 401, "invalid_api_key");
    const noKey = await ask(admin, "/try", { origin: admin }, request({ model: "m" }));
    assertRefused(noKey, 401, "invalid_api_key");
    assertRefused(await tryAt(admin, { model: "nobody" }), 404, "model_not_found");
    const noJson = { method: "POST", body: "{" };
    const from = { origin: admin, "x-api-key": "sk-demo" };
    assertRefused(await ask(admin, "/try", from, noJson), 400, "invalid_json");
    assertRefused(await ask(admin, "/try"), 405, "method_not_allowed");
  });

  it("stops the provider when it is stopped, and pays for what was generated", async (t) => {
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
    const statuses = (await settled(dir, 2)).map((line) => line["status"]);
    assert.deepEqual(statuses, ["cancelled", "cancelled"]);
    assert.ok(!gw.diagnostics.some(({ event }) => event === "internal_error"));
  });

  it("also works if the public listener has its own certificate", async (t) => {
    const gw = await startGateway(t, demo({ server: { tls: certificate() } }));
    assert.match(gw.url, /^https:/);
    const { status: code, body } = await tryAt(adminOf(gw), { model: "demo-chat" });
    assert.deepEqual([code, body.model], [200, "demo-chat"]);
  });
});

it("the OpenAPI document covers all paths of the admin listener, and their responses match it", async (t) => {
  const gw = await startGateway(t, demo());
  const { paths } = (await ask(gw.url, "/openapi.json")).body;
  const admin = Object.entries<any>(paths).filter(([, { servers }]) => servers !== undefined);
  const expected =
    "/ /costs /events /history /keys /keys/{id} /manual /manual/{topic} /metrics /requests /status /trace /try /usage /usage.csv";
  assert.deepEqual(admin.map(([path]) => path).sort(), expected.split(" "));
  for (const [path, methods] of admin) {
    const put = await ask(adminOf(gw), path, { origin: adminOf(gw) }, { method: "PUT" });
    const texts = { get: "GET, HEAD", post: "POST", delete: "DELETE" };
    const allowed = Object.entries(texts).filter(([method]) => method in methods);
    assert.equal(put.headers.allow, allowed.map(([, text]) => text).join(", "), path);
  }
  for (const path of ["/history", "/keys", "/requests"]) {
    const { schema } = paths[path].get.responses["200"].content["application/json"];
    const { body } = await ask(adminOf(gw), path);
    assert.deepEqual(Object.keys(body).sort(), [...schema.required].sort(), path);
  }
});
