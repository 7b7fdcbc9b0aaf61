// The first questions of an operator's morning, answered by the console in a real browser after a
// day of traffic: each in at most three clicks or keys, by what the page shows.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { suiteScope } from "../support/scope.ts";
import { until } from "../support/wait.ts";
import { startBusy } from "./busy.ts";
import { BROWSER, noBrowser } from "./browser.ts";

const PARTS = ["now", "requests", "costs", "keys", "try", "manual/routing"];
/** From an old phone to a large screen. */
const WIDTHS = [320, 360, 768, 1024, 1440, 1920];

describe("the operator's morning", { skip: noBrowser() }, async () => {
  const { chromium } = await import("playwright-core");
  type Browser = Awaited<ReturnType<typeof chromium.launch>>;
  type Page = Awaited<ReturnType<Browser["newPage"]>>;
  const scope = suiteScope();
  const busy = await startBusy(scope);
  const browser = await chromium.launch(BROWSER);
  scope.after(() => browser.close());

  /** The console as an operator finds it, and a count of what is done to it. */
  async function morning(t: { after(end: () => unknown): void }) {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      locale: "en-GB",
      timezoneId: "UTC",
    });
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const wrong: string[] = [];
    page.on("pageerror", ({ message }) => wrong.push(message));
    t.after(() => assert.deepEqual(wrong, []));
    await page.goto(`${busy.admin}/`);
    await page.locator("#models tbody td").first().waitFor();
    let clicks = 0;
    const click = async (role: "link" | "button", name: string | RegExp, within = "body") => {
      clicks += 1;
      assert.ok(clicks <= 3, "at most three clicks");
      await page.locator(within).getByRole(role, { name }).first().click();
    };
    return { page, click };
  }
  const textOf = async (page: Page, selector: string): Promise<string> =>
    (await page.locator(selector).first().textContent())!;
  const rowOf = (page: Page, part: string, text: string) =>
    page.locator(`#${part} tr`, { hasText: text }).first();

  it("is it healthy? One sentence says so, or what is wrong", async (t) => {
    const { page } = await morning(t);
    // What made the traffic may have kept this process busy, which is said first until it is over.
    const headline = page.locator("#verdict .headline");
    await headline.filter({ hasText: /^Model forge-70b is failing: next try/ }).waitFor();
    assert.equal(await page.locator("#verdict").getAttribute("data-tone"), "warn");
    const failed = page.locator("#verdict", { hasText: /of the requests of the last 15 minutes/ });
    const refused = page.locator("#verdict", { hasText: "initech is being refused" });
    await failed.or(refused).first().waitFor();
  });

  it("which account is being refused, why, and since when: without a click", async (t) => {
    const { page, click } = await morning(t);
    const text = (await rowOf(page, "refused", "initech").textContent())!;
    assert.match(
      text,
      /^initechkey_[0-9a-f]{16}429: over its limit of 12 requests a minute\d+\d\d:\d\d:\d\d.*ago/,
    );
    await click("link", "Requests", "#refused tr:has-text('initech')");
    await page.locator("#found-requests tbody td").first().waitFor();
    const statuses = await page.locator("#found-requests tr td:nth-child(3)").allTextContents();
    assert.ok(statuses.length > 10);
    assert.deepEqual([...new Set(statuses)], ["429 rate_limit_exceeded"]);
  });

  it("which model fails, and with what words of the provider: without a click, redacted", async (t) => {
    const { page, click } = await morning(t);
    const row = (await rowOf(page, "models", "forge-70b").textContent())!;
    assert.match(row, /^forge-70bforgefailing: next try (now|in \d+ s)/);
    assert.match(row, /upstream_error \(500\)“The engine is out of memory\. .*\[redacted\]/);
    assert.ok(!(await page.content()).includes("sk-provider-secret"));
    const passed = page.locator("#aliases li", { hasText: "passed over, failing" }).first();
    if ((await passed.count()) > 0) assert.match((await passed.textContent())!, /^–forge-70b/);
    await click("link", "The last time", "#verdict");
    await page.locator(".story tbody tr").first().waitFor();
    assert.match(await textOf(page, ".story tbody tr"), /forge-70b \(forge\).*500 .*out of memory/);
  });

  it("what did account acme spend yesterday on which model: three clicks", async (t) => {
    const { page, click } = await morning(t);
    await click("link", "Costs", "nav");
    await click("button", "Yesterday");
    await page.locator("#cost-note", { hasText: "17 requests" }).waitFor();
    await click("link", "acme", "#sums");
    await page.locator("#sums-title", { hasText: "By model" }).waitFor();
    await page.locator("#cost-note", { hasText: "12 requests" }).waitFor();
    const query = `from=${busy.yesterday}&to=${busy.yesterday}&account=acme&by=model`;
    const { rows } = (await (await fetch(`${busy.admin}/costs?${query}`)).json()) as any;
    assert.deepEqual(rows.map(({ model }: any) => model).sort(), ["lab-large", "lab-small"]);
    for (const { model, cost, requests } of rows) {
      const row = rowOf(page, "sums", model);
      assert.match((await row.textContent())!, new RegExp(`^${model}${requests}`));
      assert.equal(await row.locator("span[title]").getAttribute("title"), `US$${cost}`);
    }
  });

  it("revoke the key that does it: three clicks from the refusal, and it is in the log", async (t) => {
    const origin = { origin: busy.admin, "content-type": "application/json" };
    const body = JSON.stringify({ account: "umbrella", name: "leaked", rpm: 1 });
    const made = await fetch(`${busy.admin}/keys`, { method: "POST", headers: origin, body });
    const { key, key_id: id } = (await made.json()) as { key: string; key_id: string };
    const send = async () => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const request = { model: "lab-mini", messages: [{ role: "user", content: "hi" }] };
      const url = `${busy.url}/v1/chat/completions`;
      return (await fetch(url, { method: "POST", headers, body: JSON.stringify(request) })).status;
    };
    await until(async () => (await send()) === 429, "the key to be over its limit");
    const { page, click } = await morning(t);
    await rowOf(page, "refused", id).waitFor();
    await click("link", id, "#refused");
    await page.locator("#key-list tbody td", { hasText: "leaked" }).waitFor();
    await click("button", `Revoke ${id} of umbrella`);
    await click("button", "Revoke for good");
    await page.locator("#key-outcome", { hasText: `${id} is revoked` }).waitFor();
    await page.locator("#key-list tbody td", { hasText: /^revoked just now/ }).waitFor();
    await until(async () => (await send()) === 401, "the key to be refused");
    const line = busy.diagnostics.find(({ event }) => event === "key_revoked");
    assert.deepEqual([line?.["key_id"], line?.["by"]], [id, "console"]);
  });

  it("a key is made, and shown once", async (t) => {
    const { page } = await morning(t);
    await page.goto(`${busy.admin}/#keys`);
    await page.locator("#key-list tbody td").first().waitFor();
    await page.locator("#new-key").getByLabel("Account").fill("newcomer");
    await page.keyboard.press("Enter");
    const made = page.locator("#key-made code");
    await made.waitFor();
    assert.match((await made.textContent())!, /^sk-[\w-]{32}$/);
    await page.locator("#key-list tbody td", { hasText: "newcomer" }).first().waitFor();
    await page.reload();
    await page.locator("#key-list tbody td").first().waitFor();
    assert.equal(await page.locator("#key-made code").count(), 0);
  });

  it("a key is made with a budget and a limit of tokens, which its row shows", async (t) => {
    const { page } = await morning(t);
    await page.goto(`${busy.admin}/#keys`);
    const form = page.locator("#new-key");
    await form.getByLabel("Account").fill("careful");
    await form.getByLabel("Tokens a minute").fill("20000");
    await form.getByLabel("Budget").fill("five");
    await form.getByLabel("Renewed").selectOption("month");
    await page.keyboard.press("Enter");
    await page.locator("#key-outcome", { hasText: "budget.amount" }).waitFor();
    await form.getByLabel("Budget").fill("5.50");
    await page.keyboard.press("Enter");
    await page.locator("#key-made code").waitFor();
    const row = page.locator("#key-list tr", { hasText: "careful" });
    await row.getByText("20,000 tokens a minute; a budget of 5.50 a month").waitFor();
  });

  it("filters stand in the address, and what is typed into them is found", async (t) => {
    const { page } = await morning(t);
    await page.goto(`${busy.admin}/#requests?account=globex&status=2xx`);
    const accounts = page.locator("#found-requests tr td:nth-child(4)");
    await accounts.first().waitFor();
    assert.deepEqual([...new Set(await accounts.allTextContents())], ["globex"]);
    await page.locator("#request-filters").getByLabel("Account").fill("hooli");
    await page.keyboard.press("Enter");
    await page.locator("#found-requests tbody td", { hasText: "hooli" }).first().waitFor();
    assert.match(page.url(), /#requests\?account=hooli&status=2xx$/);
    await page.getByRole("button", { name: "Clear" }).click();
    await page.locator("#found", { hasText: /^[\d,]+ requests of the last ones/ }).waitFor();
    assert.match(page.url(), /#requests$/);
  });

  it("days are typed digit by digit, and hold when Enter is pressed", async (t) => {
    const { page } = await morning(t);
    const { yesterday } = busy;
    const year = Number(yesterday.slice(0, 4)) - 1;
    await page.goto(`${busy.admin}/#costs?from=${yesterday}&to=${yesterday}`);
    await page.locator("#cost-note", { hasText: "17 requests" }).waitFor();
    const from = page.locator("#cost-filters").getByLabel("From");
    await from.focus();
    // The same in languages that begin with the day, and in those that begin with the month.
    await page.keyboard.type(`0202${year}`);
    assert.ok(page.url().includes(`from=${yesterday}`), "nothing holds before Enter");
    assert.equal(await from.inputValue(), `${year}-02-02`);
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`from=${year}-02-02&to=${yesterday}`));
  });

  it("the single billed requests are asked for once, and again on demand", async (t) => {
    const { page } = await morning(t);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const times = (path: string) => asked.filter((each) => each === path).length;
    await page.clock.install();
    await page.goto(`${busy.admin}/#costs`);
    await page.reload();
    await page.locator("#records tbody td").first().waitFor();
    const [sums, records] = [times("/costs"), times("/usage")];
    await page.clock.fastForward(16_000);
    await until(async () => times("/costs") > sums, "the sums to be asked for again");
    assert.equal(times("/usage"), records);
    await page.getByRole("button", { name: "Refresh" }).click();
    await until(async () => times("/usage") > records, "the records to be asked for again");
  });

  it("a mistyped limit makes no key", async (t) => {
    const { page } = await morning(t);
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.method()));
    await page.goto(`${busy.admin}/#keys`);
    await page.locator("#new-key").getByLabel("Account").fill("mistyped");
    const limit = page.locator("#new-key").getByLabel("Requests a minute");
    for (const text of ["6e", "0", "1e3", "1.5"]) {
      await limit.fill("");
      await limit.pressSequentially(text);
      await page.keyboard.press("Enter");
      assert.ok(
        await limit.evaluate((field) => (field as HTMLInputElement).validity.patternMismatch),
      );
    }
    assert.ok(!sent.includes("POST"));
  });

  it("a story gives way to that of another address, also if its text is marked", async (t) => {
    const { page } = await morning(t);
    const { requests } = (await (await fetch(`${busy.admin}/requests?limit=2`)).json()) as any;
    const [one, other] = requests.map(({ id }: { id: string }) => id);
    const title = (id: string) => page.locator(".story h2", { hasText: id }).first();
    await page.goto(`${busy.admin}/#requests/${one}`);
    await title(one).waitFor();
    await page.goto(`${busy.admin}/#requests/${other}`);
    await title(other).waitFor();
    await title(other).selectText();
    await page.goBack();
    await title(one).waitFor();
  });

  it("addresses that name what is no choice show the usual, or what holds", async (t) => {
    const { page } = await morning(t);
    await page.goto(`${busy.admin}/#now?range=constructor`);
    assert.ok(await page.getByRole("radio", { name: "15 min" }).isChecked());
    await page.goto(`${busy.admin}/#costs?by=constructor`);
    await page.locator("#sums-title", { hasText: "By account" }).waitFor();
    await page.goto(`${busy.admin}/#requests?status=403`);
    await page.locator("#found", { hasText: /^0 requests that fit/ }).waitFor();
    assert.equal(await page.getByLabel("Status").inputValue(), "403");
    const accounts = page.locator("#account-names option");
    await until(async () => (await accounts.count()) > 3, "accounts to be suggested");
    await page.goto(`${busy.admin}/#requests?slower=never`);
    await page.locator("#found", { hasText: /slower/ }).waitFor();
    assert.equal(await page.locator("#found-requests").textContent(), "");
  });

  it("time ranges: the day has yesterday's requests, a quarter of an hour has not", async (t) => {
    const { page } = await morning(t);
    const bars = "#charts .card:first-child .figure";
    const quarter = await textOf(page, bars);
    await page.getByRole("radio", { name: "24 h" }).check();
    await page.waitForURL(/#now\?range=24h$/);
    await until(async () => (await textOf(page, bars)) !== quarter, "the figure of the day");
  });

  it("every part fits from 320 to 1920 pixels, and no list is endless on a phone", async (t) => {
    const { page } = await morning(t);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 });
      for (const part of PARTS) {
        await page.goto(`${busy.admin}/#${part}`);
        await page.locator(`#${part.split("/")[0]}:not([hidden])`).waitFor();
        await page.waitForLoadState("networkidle").catch(() => undefined);
        const size = await page.evaluate(() => ({
          wide: document.documentElement.scrollWidth - innerWidth,
          high: document.documentElement.scrollHeight,
        }));
        assert.ok(size.wide <= 0, `${part} at ${width}: ${size.wide} pixels too wide`);
        if (!part.startsWith("manual")) assert.ok(size.high < 6_500, `${part}: ${size.high}`);
      }
    }
  });
});
