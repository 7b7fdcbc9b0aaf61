// The first questions of an operator's morning, answered by the console in a real browser after a
// day of traffic: each in a few clicks, by what the page shows.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { post } from "../extensions/apis/post.ts";
import { json, user } from "../support/gateway.ts";
import { until } from "../support/wait.ts";
import { startBusy } from "./busy.ts";
import { noBrowser, openPage, startBrowser } from "./browser.ts";

const VIEWS = ["now", "requests", "costs", "keys", "try", "manual/routing"];
/** From an old phone to a large screen. */
const WIDTHS = [320, 768, 1024, 1920];

describe("the operator's morning", { skip: noBrowser() }, async () => {
  const { browser, scope } = await startBrowser();
  const busy = await startBusy(scope);

  /** The console as an operator finds it, who says yes to every question. */
  async function open(t: TestContext, address = "now") {
    const { page } = await openPage(t, browser);
    page.on("dialog", (dialog) => dialog.accept());
    await page.goto(`${busy.admin}/#${address}`);
    const click = (name: string | RegExp, within = "body") =>
      page.locator(within).getByRole("link", { name }).first().click();
    const shown = (selector: string, hasText: string | RegExp) =>
      page.locator(selector, { hasText }).first().waitFor();
    const textOf = async (selector: string, hasText: string | RegExp = "") =>
      (await page.locator(selector, { hasText }).first().textContent())!;
    return { page, click, shown, textOf };
  }

  it("is it healthy? One sentence says so, or what is wrong, and leads to the latest failure", async (t) => {
    const { page, click, shown } = await open(t);
    // What made the traffic may have kept this process busy, which is said first until it is over.
    await shown("#verdict .headline", /^Model forge-70b is failing: next try/);
    assert.equal(await page.locator("#verdict").getAttribute("data-tone"), "warn");
    await shown("#verdict", /of requests failed in the last 15 minutes|initech is being refused/);
    await click("The latest failure", "#verdict");
    await shown(
      ".story tbody tr",
      /^forge-70bforgeupstream error500 .*out of memory.*\[redacted\]/,
    );
  });

  it("which account is being refused, why, and since when, down to its requests", async (t) => {
    const { page, click, shown, textOf } = await open(t);
    // A refusal of the last five seconds is shown as one of just now.
    await shown("#refused tr", /^initech.*ago/);
    assert.match(
      await textOf("#refused tr", "initech"),
      /^initechkey_[0-9a-f]{16}429: over its limit of 12 requests a minute\d+\d\d:\d\d:\d\d.*ago/,
    );
    await click(/^\d+$/, "#refused tr:has-text('initech')");
    await shown("#found-requests td", "initech");
    const statuses = await page.locator("#found-requests tr td:nth-child(3)").allTextContents();
    assert.ok(statuses.length > 10);
    assert.deepEqual([...new Set(statuses)], ["429 rate_limit_exceeded"]);
  });

  it("what did account acme spend yesterday", async (t) => {
    const { yesterday: day } = busy;
    const { click, shown } = await open(t, `costs?month=${day.slice(0, 7)}&by=day`);
    await click(day, "#sums");
    await shown("#cost-note", "17 requests");
    await click("acme", "#sums");
    await shown("#cost-note", "12 requests");
  });

  it("revoke the key that does it, from the refusal, and it is in the log", async (t) => {
    const terms = { account: "umbrella", name: "leaked", rpm: 1 };
    const made = await post(`${busy.admin}/keys`, terms, { origin: busy.admin });
    const { key, key_id: id } = await json(made);
    const send = async () => {
      const headers = { authorization: `Bearer ${key}` };
      const request = { model: "lab-mini", messages: user("hi") };
      return (await post(`${busy.url}/v1/chat/completions`, request, headers)).status;
    };
    await until(async () => (await send()) === 429, "the key to be over its limit");
    const { page, click, shown } = await open(t);
    await click(id, "#refused");
    await shown("#key-list td", "leaked");
    await page.getByRole("button", { name: `Revoke ${id} of umbrella` }).click();
    await shown("#key-outcome", `${id} is revoked`);
    await shown("#key-list td", /^revoked just now/);
    await until(async () => (await send()) === 401, "the key to be refused");
    const line = busy.diagnostics.find(({ event }) => event === "key_revoked");
    assert.deepEqual([line?.["key_id"], line?.["by"]], [id, "console"]);
  });

  it("a key is made with limits, which its row shows, and shown once; a mistyped limit makes none, two clicks make one", async (t) => {
    const { page, shown, textOf } = await open(t, "keys");
    const field = (label: string) => page.locator("#new-key").getByLabel(label);
    await field("Account").fill("careful");
    for (const text of ["6e", "0", "1e3", "1.5"]) {
      await field("Requests per minute").fill(text);
      await page.keyboard.press("Enter");
      const isRefused = (input: Element) => (input as HTMLInputElement).validity.patternMismatch;
      assert.ok(await field("Requests per minute").evaluate(isRefused), text);
    }
    await field("Requests per minute").fill("");
    await field("Tokens per minute").fill("20000");
    await field("Budget").fill("five");
    await field("Renews").selectOption("month");
    await page.keyboard.press("Enter");
    await shown("#key-outcome", "budget.amount");
    await field("Budget").fill("5.50");
    await page.locator("#new-key .main").dblclick();
    await page.locator("#key-made code").waitFor();
    assert.match(await textOf("#key-made code"), /^sk-[\w-]{32}$/);
    await shown("#key-list tr", /careful.*tokens per minute 20000, budget 5.50\/month/);
    await page.reload();
    await shown("#key-list td", "careful");
    assert.equal(await page.locator("#key-list tr", { hasText: "careful" }).count(), 1);
    assert.equal(await page.locator("#key-made code").count(), 0);
  });

  it("filters stand in the address, and what is typed into them is found", async (t) => {
    const { page, click, shown } = await open(t, "requests?account=globex&status=2xx");
    await shown("#found-requests td", "globex");
    const accounts = await page.locator("#found-requests tr td:nth-child(4)").allTextContents();
    assert.deepEqual([...new Set(accounts)], ["globex"]);
    await page.locator("#request-list").getByLabel("Account").fill("hooli");
    await page.keyboard.press("Enter");
    await shown("#found-requests td", "hooli");
    assert.match(page.url(), /#requests\?account=hooli&status=2xx$/);
    await click("Next", "#found-requests");
    await page.waitForURL(/skip=25$/);
    await click("Previous", "#found-requests");
    await click("Clear");
    await page.waitForURL(/#requests$/);
    await shown("#found", /^1,\d\d\d requests/);
  });

  it("what is wrong with an address is said, and what was asked for before is not shown", async (t) => {
    const { page, shown } = await open(t, "requests");
    await shown("#found-requests td", "req_");
    for (const [address, words] of [
      ["requests?slower=never", /slower/],
      ["costs?by=constructor", /'by'/],
      ["now?range=constructor", /range/],
      ["manual/none", /cannot read this page/],
    ] as const) {
      await page.goto(`${busy.admin}/#${address}`);
      await shown("#fault", words);
      assert.equal(await page.locator("section .result:visible").count(), 0, address);
    }
    await page.goto(`${busy.admin}/#now`);
    await until(async () => (await page.locator("#fault").textContent()) === "", "no fault");
  });

  it("a story gives way to that of another address, also if its text is marked", async (t) => {
    const { requests } = (await (await fetch(`${busy.admin}/requests?limit=2`)).json()) as any;
    const [one, other] = requests.map(({ id }: { id: string }) => id);
    const { page, shown } = await open(t, `requests/${one}`);
    await shown(".story .title", one);
    await page.goto(`${busy.admin}/#requests/${other}`);
    await shown(".story .title", other);
    await page.locator(".story .title").selectText();
    await page.goBack();
    await shown(".story .title", one);
  });

  it("time ranges: the day has yesterday's requests, a quarter of an hour has not", async (t) => {
    const { page, textOf } = await open(t);
    const quarter = await textOf("#charts .figure");
    await page.getByRole("radio", { name: "24 h" }).check();
    await page.waitForURL(/#now\?range=24h$/);
    await until(async () => (await textOf("#charts .figure")) !== quarter, "the day's figure");
  });

  it("every view fits from 320 to 1920 pixels, and no list is endless on a phone", async (t) => {
    const { page } = await open(t);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      for (const view of VIEWS) {
        await page.goto(`${busy.admin}/#${view}`);
        await page.locator(`#${view.split("/")[0]}:not([hidden])`).waitFor();
        await page.waitForLoadState("networkidle").catch(() => undefined);
        const size = await page.evaluate(() => ({
          wide: document.documentElement.scrollWidth - innerWidth,
          high: document.documentElement.scrollHeight,
        }));
        assert.ok(size.wide <= 0, `${view} at ${width}: ${size.wide} pixels too wide`);
        if (!view.startsWith("manual")) assert.ok(size.high < 6_500, `${view}: ${size.high}`);
      }
    }
  });
});
