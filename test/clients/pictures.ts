// Pictures of the console, each part in light and dark, 360 and 1440 pixels wide, after a busy
// morning: node --import tsx test/clients/pictures.ts FOLDER. The folder is made. With --readme the
// picture of README.md and the manual is made too, as scripts/console.png.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { chromium, type Page } from "playwright-core";
import { startBusy } from "./busy.ts";
import { BROWSER } from "./browser.ts";

/** By the name of a picture: what follows the # of the address, and what must be there first. */
const SHOTS: Readonly<Record<string, readonly [address: string, ready: string]>> = {
  now: ["now", "#models tbody td"],
  requests: ["requests", "#found-requests tbody td"],
  refused: ["requests?status=4xx", "#found-requests tbody td"],
  costs: ["costs", "#sums tbody td"],
  keys: ["keys", "#key-list tbody td"],
  try: ["try", "#model option"],
  manual: ["manual/routing", "#page h2"],
};

async function main(): Promise<void> {
  const [folder = "pictures", flag] = process.argv.slice(2);
  mkdirSync(folder, { recursive: true });
  const ends: (() => unknown)[] = [];
  const { admin } = await startBusy({ after: (end) => ends.push(end) });
  const browser = await chromium.launch(BROWSER);
  const open = async (width: number, colorScheme: "light" | "dark") => {
    const viewport = { width, height: width === 360 ? 740 : 900 };
    return await browser.newPage({ viewport, colorScheme, locale: "en-GB", timezoneId: "UTC" });
  };
  async function show(page: Page, [address, ready]: readonly [string, string]): Promise<void> {
    await page.goto(`${admin}/#${address}`);
    await page.locator("#state", { hasText: /^serving/ }).waitFor();
    await page.locator(ready).first().waitFor({ state: "attached" });
    await page.waitForLoadState("networkidle").catch(() => undefined);
    await page.waitForTimeout(300);
  }
  const { faults } = (await (await fetch(`${admin}/history`)).json()) as any;
  const story = [`requests/${faults[0].request_id}`, ".story tbody tr"] as const;
  for (const colorScheme of ["light", "dark"] as const)
    for (const width of [1440, 360]) {
      const page = await open(width, colorScheme);
      for (const [name, shot] of Object.entries({ ...SHOTS, story })) {
        await show(page, shot);
        const path = join(folder, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
      }
      await page.close();
    }
  if (flag === "--readme") {
    const page = await open(1280, "light");
    await show(page, SHOTS["now"]!);
    await page.screenshot({ path: resolve(import.meta.dirname, "../../scripts/console.png") });
  }
  await browser.close();
  for (const end of ends.toReversed()) await end();
}

await main();
