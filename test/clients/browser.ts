// Debian's Chromium, for suites that need a real browser: where it is, how it is started, and the
// words to skip with where there is none.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import type { TestContext } from "node:test";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { suiteScope } from "../support/scope.ts";
import { notInstalled, skipUnless } from "./lab.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** How playwright-core launches it: alone, without calls of its own to the network. */
export const BROWSER = {
  executablePath,
  // playwright-core itself switches off first runs, updates, sync and networking in the background.
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
};

/** False, or why the tests that need a browser are skipped. */
export const noBrowser = () =>
  notInstalled() ||
  skipUnless(existsSync(executablePath), `there is no ${executablePath}: apt-get install chromium`);

/** A browser for the suite in whose `describe` it is started, and the suite's scope. */
export async function startBrowser() {
  const { chromium } = await import("playwright-core");
  const scope = suiteScope();
  const browser = await chromium.launch(BROWSER);
  scope.after(() => browser.close());
  return { browser, scope };
}

/**
 * A page as an English operator has it, closed after the test. It must have no error: what else is
 * wrong can be added to `wrong`.
 */
export async function openPage(
  t: TestContext,
  browser: Browser,
  options: BrowserContextOptions = {},
) {
  const viewport = { width: 1280, height: 900 };
  const given = { viewport, locale: "en-GB", timezoneId: "UTC", ...options };
  const context = await browser.newContext(given);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const wrong: string[] = [];
  page.on("pageerror", ({ message }) => wrong.push(message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  return { page, wrong };
}
