// The console in a real browser (Debian's Chromium, driven by playwright-core): the built gateway,
// started as a new user would, looked at and used.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { VERSION } from "../../src/core/version.ts";
import { manual } from "../../src/extensions/operations/manual/index.ts";
import { post } from "../extensions/apis/post.ts";
import { only, settled, usageCount } from "../support/books.ts";
import { folder } from "../support/folder.ts";
import { demo, merge, user } from "../support/gateway.ts";
import { freePort } from "../support/port.ts";
import { bundled, launch, runToEnd } from "../support/program.ts";
import * as provided from "../support/provider.ts";
import { until, waitFor, within } from "../support/wait.ts";
import { noBrowser, openPage, startBrowser } from "./browser.ts";

const month = () => new Date().toISOString().slice(0, 7);

describe("the console in a browser", { skip: noBrowser() }, async () => {
  const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  const { browser } = await startBrowser();

  /** The built file on the demo configuration, but for its ports and what is said otherwise. */
  async function serve(t: TestContext, over: object = {}) {
    const dir = folder();
    const config = merge(demo({ providers: { demo: { pace_ms: 20 } } }), {
      usage: { sync_ms: 100 },
      ...over,
    });
    writeFileSync(join(dir, "gateway.json"), JSON.stringify(config));
    const start = async () => {
      const gw = launch(bundled(dir), []);
      t.after(() => gw.child.kill("SIGKILL"));
      await within(gw.address, "the gateway to listen");
      return gw;
    };
    const gw = await start();
    return { dir, books: join(dir, "data"), url: await gw.address, admin: gw.admin(), gw, start };
  }
  /** A page that must ask nobody but the admin listener, and have no error. */
  async function open(
    t: TestContext,
    admin: string,
    options: BrowserContextOptions = {},
    { part = "", expected = /net::ERR_|status of 4/ } = {},
  ) {
    const { page, wrong } = await openPage(t, browser, options);
    page.on(
      "console",
      (message) =>
        message.type() === "error" && !expected.test(message.text()) && wrong.push(message.text()),
    );
    page.on(
      "request",
      (request) =>
        new URL(request.url()).origin !== admin &&
        !request.url().startsWith("data:") &&
        wrong.push(`asked ${request.url()}`),
    );
    await page.goto(`${admin}/${part}`);
    await page.locator("#state", { hasText: /^serving/ }).waitFor();
    return page;
  }
  /** A chat request of the demo's key; the status of its answer. */
  async function chat(url: string, model = "demo-chat", more: object = {}): Promise<number> {
    const headers = { authorization: "Bearer sk-demo", ...more };
    const body = { model, messages: user("hi") };
    const response = await post(`${url}/v1/chat/completions`, body, headers);
    await response.text();
    return response.status;
  }
  /** What the story of a request says of this, as soon as it says anything. */
  const figure = (page: Page, name: string) =>
    page.locator(`[data-figure="${name}"]:visible`).textContent();
  const outcome = (page: Page, text: RegExp) =>
    page.locator("#outcome", { hasText: text }).waitFor();
  /** No finding of axe in what is to be seen, in either scheme. */
  async function assertAccessible(page: Page, what: string): Promise<void> {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(axe);
      const { violations } = (await page.evaluate(() => (globalThis as any).axe.run())) as {
        violations: { id: string; nodes: { html: string }[] }[];
      };
      const findings = violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`,
      );
      assert.deepEqual(findings, [], `${what}, ${colorScheme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
  }

  it("a new user gets a streamed reply by one click, and finds what it cost", async (t) => {
    const { admin, books } = await serve(t);
    const page = await open(t, admin);
    const focused = () => page.evaluate(() => document.activeElement?.id);
    assert.equal(await focused(), "send", "nothing is left to do but to send");
    await page.keyboard.press("Enter");
    const lengths = new Set<number>();
    await until(async () => {
      lengths.add((await page.locator("#reply").textContent())!.length);
      return /^Finished: stop$/.test((await page.locator("#outcome").textContent())!);
    }, "the end of the reply");
    assert.ok(lengths.size >= 3, "it came piece by piece");
    const { settle } = await waitFor(() => only(books), "the books");
    const { prompt_tokens: prompt, prompt_cache_hit_tokens: cached } = settle["usage"];
    for (const [name, text] of [
      ["cost", `US$${settle["cost"]}`],
      ["id", settle["gateway_request_id"]],
      ["model", settle["model_served"]],
      ["prompt_tokens", String(prompt)],
      ["cached_tokens", String(cached)],
    ])
      assert.equal(await figure(page, name), text);
    await assertAccessible(page, "try");
    const kept = () => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie;
    assert.equal(await page.evaluate(kept), "{}", "the key is in memory only");
  });

  it("thinking is folded apart, tools are called, JSON mode is JSON; nothing jumps while it streams", async (t) => {
    const { admin, books } = await serve(t);
    const page = await open(t, admin);
    const send = () => page.getByRole("button", { name: "Send" }).click();
    await page.getByLabel("Model or alias").selectOption("auto/reasoning");
    await page.getByLabel("Thinking").check();
    const placeOf = () =>
      page.evaluate(() =>
        ["ask", "send", "outcome"].map((id) => document.getElementById(id)!.offsetTop),
      );
    const places = await placeOf();
    await send();
    await outcome(page, /^Streaming/);
    assert.deepEqual(await placeOf(), places);
    await outcome(page, /^Finished: stop$/);
    await figure(page, "cost");
    assert.deepEqual(await placeOf(), places);
    assert.equal(await page.locator("#thoughts").isVisible(), false);
    await page.getByText("Reasoning", { exact: true }).click();
    assert.ok((await page.locator("#thoughts").textContent())!.length > 10);
    await page.getByText("More request fields").click();
    const more = page.getByLabel(/^A JSON object/);
    await more.fill(
      '{"tool_choice":"required","tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]}',
    );
    await page.locator("#message").fill("And what is the time in Oslo?");
    await send();
    await outcome(page, /^Finished: tool_calls$/);
    assert.match((await page.locator("#reply").textContent())!, /→ calls get_time\{"city":/);
    await more.fill("[");
    await send();
    await outcome(page, /JSON/);
    await more.fill('{"temperature":0.3}');
    await page.getByLabel("JSON mode").check();
    await page.getByLabel("Streaming").uncheck();
    await send();
    await outcome(page, /^Finished: stop$/);
    JSON.parse((await page.locator("#reply").textContent())!);
    await page.getByLabel(/API key/).fill("sk-wrong");
    await send();
    await outcome(page, /^invalid_api_key: /);
    assert.equal((await settled(books, 3)).length, 3);
  });

  it("Stop really stops it; a long reply that comes at once is whole", async (t) => {
    const words = Array.from({ length: 3_000 }, (_, n) => `word ${n} `);
    const pieces = words.map((content) => provided.chunk({ content }));
    const provider = await provided.startProvider(t, {
      long: provided.stream([...pieces, provided.chunk({}, "stop"), provided.usageChunk()]),
    });
    const lab = { provider: "lab", price: { input_cache_miss: 1, output: 1 } };
    const { admin, books } = await serve(t, {
      providers: {
        demo: { pace_ms: 500 },
        lab: { dialect: "openai", base_url: provider.url },
      },
      models: { long: lab },
    });
    const page = await open(t, admin);
    const send = async (model: string) => {
      await page.getByLabel("Model or alias").selectOption(model);
      await page.getByRole("button", { name: "Send" }).click();
    };
    const stop = () => page.getByRole("button", { name: "Stop" }).click();
    await send("long");
    await outcome(page, /^Finished: stop$/);
    assert.equal(await page.locator("#reply").textContent(), words.join(""));
    assert.equal(await figure(page, "cost"), "US$0.000027");
    await send("demo-chat");
    await outcome(page, /^Streaming/);
    await stop();
    await outcome(page, /^Stopped\.$/);
    const [, settle] = await settled(books, 2);
    assert.equal(settle!["status"], "cancelled");
    assert.ok(settle!["usage"].completion_tokens < 10, "of the tokens it had only the first");
    await page.locator("#tried dd", { hasText: "estimated" }).waitFor();
  });

  it("shows every page of the manual as readable text, follows its links, and searches it", async (t) => {
    const { admin } = await serve(t);
    const page = await open(t, admin, {}, { part: "#manual" });
    const list = page.locator("#topics a");
    await list.first().waitFor();
    assert.equal(await list.count(), manual.topics().length);
    for (const { title } of manual.topics()) {
      await list.getByText(title, { exact: true }).click();
      await page.locator("#page h2", { hasText: title }).waitFor();
      const signs = await page.evaluate(() => {
        const shown = document.querySelector("#page")!.cloneNode(true) as HTMLElement;
        for (const code of shown.querySelectorAll("pre, code")) code.remove();
        return /\*\*|`|\|[ -]|\]\(|<!--|^#/m.exec(shown.textContent!)?.[0];
      });
      assert.equal(signs, undefined, `${title} shows a sign of Markdown`);
    }
    await list.getByText("Errors", { exact: true }).click();
    const row = page.locator("#page tr", { hasText: "model_not_found" });
    assert.match((await row.textContent())!, /404invalid_request_errorThe model or alias/);
    await assertAccessible(page, "manual");
    await list.getByText("Books", { exact: true }).click();
    await page.locator("#page").getByRole("link", { name: "Security" }).first().click();
    await page.locator("#page h2", { hasText: "Security" }).waitFor();

    assert.equal(await page.locator("#version").textContent(), VERSION);
    await page.getByLabel("Search").fill("point of no return");
    await page.keyboard.press("Enter");
    await page.locator("#page h2", { hasText: "Search" }).waitFor();
    await assertAccessible(page, "search of the manual");
    await page
      .locator("#page")
      .getByRole("link", { name: "Routing: The point of no return" })
      .click();
    const heading = page.locator("#page h3", { hasText: "The point of no return" });
    await heading.waitFor();
    await page.waitForFunction(() => window.scrollY > 0);
    assert.ok((await heading.boundingBox())!.y < 400, "the section is in sight");
    await page.getByLabel("Search").fill("nosuchword");
    await page.keyboard.press("Enter");
    await page.locator("#page", { hasText: "No section" }).waitFor();
  });

  it("a model's breaker is seen to open when its provider goes down, and to close when it is back; a page that hears nothing says so", async (t) => {
    let behaviour: provided.Behaviour = provided.status(
      200,
      provided.completion({ content: "Here I am." }),
    );
    const provider = await provided.startProvider(t, (asked) => behaviour(asked));
    const port = await freePort();
    const { admin, gw, start } = await serve(t, {
      admin: { port },
      providers: { lab: { dialect: "openai", base_url: provider.url } },
      models: { lab: { provider: "lab" } },
      aliases: { "team/fast": { models: ["lab", "demo-chat"] } },
      breaker: { failures: 2, cooldown_ms: 8_000 },
      retry: { max_retries: 0 },
    });
    const page = await open(t, admin, {}, { part: "#now" });
    const state = (text: RegExp) =>
      page.locator('#models tr:has(a:text-is("lab")) .tone', { hasText: text }).waitFor();
    const send = async (model = "lab") => chat(await gw.address, model);
    assert.equal(await send(), 200);
    await state(/^healthy$/);
    behaviour = provided.status(500, { error: { message: "down" } });
    assert.deepEqual([await send(), await send()], [503, 503]);
    await state(/^failing: next try in \d s$/);
    const aliases = (await page.locator("#aliases").textContent())!;
    assert.match(aliases, /team\/fast1lab skipped, failing: next try in \d s2demo-chat /);
    // The words of the provider come with the figures, which are asked for every two seconds.
    const words = /Model lab is failing: next try in \d s\. lab said: “down”/;
    await page.locator("#verdict", { hasText: words }).waitFor();
    assert.match((await page.locator("#models").textContent())!, /upstream_error \(500\)“down”/);
    await assertAccessible(page, "now");
    behaviour = provided.status(200, provided.completion({ content: "Here I am again." }));
    await until(async () => (await send()) === 200, "the provider to be asked again");
    await state(/^healthy$/);
    assert.equal(await send("team/fast"), 200);
    const shares = /lab served 100 %; .*demo-chat served 0 %; .*% of its prompt tokens came from/;
    await page.locator("#aliases", { hasText: shares }).waitFor();

    gw.child.kill("SIGKILL");
    await page.locator("#state", { hasText: /does not answer/ }).waitFor({ timeout: 20_000 });
    await start();
    await page.locator("#state", { hasText: /^serving/ }).waitFor({ timeout: 20_000 });
  });

  it("the month's sum is the statement's, a click leads down to a request, and a request id tells its story", async (t) => {
    const { admin, dir, books, url } = await serve(t);
    for (const [at, model] of ["demo-chat", "auto/reasoning", "auto/chat"].entries())
      await chat(url, model, { "x-request-id": `<b>request</b> & "${at}"` });
    await waitFor(() => usageCount(books) === 3, "the usage records");
    const command = ["billing", "statement", "--account", "demo", "--month", month(), "--json"];
    const owed = JSON.parse((await runToEnd(bundled(dir), command)).stdout);
    const page = await open(t, admin, {}, { part: "#costs" });
    const note = (text: RegExp) => page.locator("#cost-note", { hasText: text }).waitFor();
    const sum = (name: string) =>
      page.locator("#sums").getByRole("link", { name, exact: true }).click();
    await note(/^3 requests/);
    const total = page.locator("#cost-total [data-cost]");
    assert.equal(await total.getAttribute("data-cost"), owed.total.cost);
    await sum("demo");
    await page.locator("#sums-title", { hasText: "By model" }).waitFor();
    for (const { model, cost } of owed.lines) {
      const row = page.locator("#sums tr", { hasText: model });
      assert.equal(await row.locator("[data-cost]").getAttribute("title"), `US$${cost}`);
    }
    await assertAccessible(page, "costs");
    await sum("demo-reasoner");
    await note(/^1 request,/);
    await sum('<b>request</b> & "1"');
    await page.locator("#story dd", { hasText: "auto/reasoning" }).waitFor();
    const story = (await page.locator("#story").textContent())!;
    const [{ model, cost }] = owed.lines.filter((line: any) => line.model === "demo-reasoner");
    for (const text of [model, `US$${cost}`, "messages 1", "1 attempt", "completed"])
      assert.ok(story.includes(text), text);
    await assertAccessible(page, "story");
    await page.goto(`${admin}/#costs`);
    await note(/^3 requests/);
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: /CSV/ }).click();
    const file = readFileSync(await (await download).path(), "utf8");
    assert.equal(file.split("\r\n").length, 5);
    assert.match(file, /<b>request<\/b> & ""0""/);

    const today = new Date().toISOString().slice(0, 10);
    await page.goto(`${admin}/#costs?month=2020-01&day=${today}`);
    await page.reload();
    await note(new RegExp(`^3 requests, ${today}`));

    await page.goto(`${admin}/#requests/nobody`);
    await page.getByText("The gateway knows nothing about nobody.").waitFor();
  });

  it("a request is found by its id, also when it has left memory; books that cannot be read are told", async (t) => {
    const { admin, books, gw, start } = await serve(t, { admin: { port: await freePort() } });
    const page = await open(t, admin, {}, { expected: /net::ERR_|status of 503/ });
    await page.keyboard.press("Enter");
    await outcome(page, /^Finished: stop$/);
    const id = (await figure(page, "id"))!;
    await waitFor(() => usageCount(books) === 1, "the usage record");
    const part = (name: string) =>
      page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await part("Requests");
    await page.getByLabel(/^Request id/).fill(`  ${id} `);
    await page.keyboard.press("Enter");
    await page.locator("#found", { hasText: /^1 request,/ }).waitFor();
    await page
      .locator("#found-requests")
      .getByRole("link", { name: id.slice(0, 14) })
      .click();
    await page.locator("#story", { hasText: id }).waitFor();
    assert.equal(await page.evaluate(() => window.scrollY), 0);

    gw.child.kill("SIGTERM");
    await within(gw.ended, "the gateway to end");
    const url = await (await start()).address;
    await page.reload();
    const story = page.locator("#story", { hasText: "usage id" });
    await story.waitFor();
    assert.match((await story.textContent())!, /cost.*prices.*1 attempt.*completed/);

    assert.equal(await chat(url, "demo-chat", { "x-request-id": id }), 200);
    await page.reload();
    await page.locator("#story article:nth-of-type(2)", { hasText: "usage id" }).waitFor();
    assert.equal(await page.locator("#story article").count(), 2);

    writeFileSync(join(books, "usage", "cursor.json"), "{");
    await part("Costs");
    await page.locator("#fault", { hasText: /The books cannot be read: .*cursor\.json/ }).waitFor();
  });

  it("a browser whose clock is ahead shows what has happened in the last minute, and when", async (t) => {
    const { admin, url } = await serve(t);
    await chat(url);
    const { page: ahead } = await openPage(t, browser);
    await ahead.addInitScript(() => {
      const real = Date.now;
      Date.now = () => real() + 20 * 60_000;
    });
    await ahead.goto(`${admin}/#now`);
    await ahead.locator("#state", { hasText: /^serving/ }).waitFor();
    await ahead.locator("#charts .card", { hasText: /^Requests per minute(0\.)?[1-9]/ }).waitFor();
    await ahead.locator("#configuration", { hasText: /loaded (just now|\d+ s ago)/ }).waitFor();
    await ahead.evaluate(() => {
      const real = Date.now;
      Date.now = () => real() - 3_600_000; // its clock is set back
    });
    for (const _ of ["already on its way", "later"])
      await ahead.waitForResponse((response) => response.url().includes("/history"));
  });

  it("shows the first 250 of many models, and says how many there are beyond them", async (t) => {
    const names = Array.from({ length: 298 }, (_, at) => `m${at}`);
    const { admin } = await serve(t, {
      models: Object.fromEntries(names.map((name) => [name, { provider: "demo" }])),
      aliases: { "team/all": { models: names } },
    });
    const page = await open(t, admin, {}, { part: "#now" });
    await page.locator("#models", { hasText: "50 further models are not shown." }).waitFor();
    await page.locator("#aliases", { hasText: "48 further models are not shown." }).waitFor();
    assert.equal(await page.locator("#models tbody tr").count(), 250);
  });

  it("shows an alias with a model that the gateway's processes do not have yet", async (t) => {
    const { admin } = await serve(t);
    const status = (await (await fetch(`${admin}/status`)).json()) as { models: unknown[] };
    status.models.pop();
    const body = `data: ${JSON.stringify({ time: Date.now(), currency: "USD", status })}\n\n`;
    const { page } = await openPage(t, browser);
    await page.route("**/events", (route) =>
      route.fulfill({ contentType: "text/event-stream", body }),
    );
    await page.goto(`${admin}/#now`);
    await page.locator("#aliases li", { hasText: "demo-reasoner" }).first().waitFor();
    assert.equal(await page.locator("#fault").textContent(), "");
  });

  it("a page whose password has changed says so, and does not lock the operator out", async (t) => {
    const port = await freePort();
    const { admin, dir, gw, start } = await serve(t, { admin: { port, password: "the-old-one" } });
    const credentials = { username: "operator", password: "the-old-one" };
    const page = await open(t, admin, { httpCredentials: credentials });
    gw.child.kill("SIGKILL");
    const file = join(dir, "gateway.json");
    writeFileSync(file, readFileSync(file, "utf8").replace("the-old-one", "the-new-one"));
    let asked = 0;
    page.on("request", () => {
      asked += 1;
    });
    const again = await start();
    await page.locator("#fault", { hasText: "The password is wrong." }).waitFor();
    const before = asked;
    await page.locator("#state", { hasText: /does not answer/ }).waitFor({ timeout: 20_000 });
    assert.equal(asked, before);
    const password = Buffer.from("operator:the-new-one").toString("base64");
    const answer = await fetch(`${admin}/status`, {
      headers: { authorization: `Basic ${password}` },
    });
    assert.equal(answer.status, 200);
    assert.doesNotMatch(again.stderr(), /admin_locked_out/);
  });

  it("by the keyboard alone, in a narrow window, in another language, with a password", async (t) => {
    const { admin } = await serve(t, {
      admin: { port: 0, password: "of-the-operator" },
    });
    const page = await open(t, admin, {
      httpCredentials: { username: "operator", password: "of-the-operator" },
      locale: "de-DE",
      viewport: { width: 340, height: 640 },
    });
    await page.keyboard.press("Enter");
    await outcome(page, /^Finished: stop$/);
    assert.match((await figure(page, "cost"))!, /^0,0\d+\s\$$/);
    const shown: Readonly<Record<string, string>> = {
      Now: "#models tbody td",
      Requests: "#found-requests tbody td",
      Costs: "#sums",
      Keys: "#key-list tbody td",
      "Try it": "#send",
      Manual: "#page h2",
    };
    const links = page.getByRole("navigation", { name: "Console views" }).getByRole("link");
    await links.first().focus();
    for (const [at, [name, ready]] of Object.entries(shown).entries()) {
      if (at > 0) await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.locator(ready).first().waitFor();
      assert.equal(
        await page.evaluate(() => document.querySelector(".bar [aria-current=page]")?.textContent),
        name,
      );
      await assertAccessible(page, `narrow-${name}`);
      await links.nth(at).focus();
    }
  });
});
