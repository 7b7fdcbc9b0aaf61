// Pictures of the console after a busy day, each view in light and dark, 360 and 1440 pixels wide:
// node --import tsx test/clients/pictures.ts FOLDER. The folder is made. With --readme the picture
// of README.md and the manual is made too, as scripts/console.png.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { startBusy } from "./busy.ts";
import { BROWSER } from "./browser.ts";

/** By its address what must be in a view before the picture is taken. */
const VIEWS: Readonly<Record<string, string>> = {
  now: "#models tbody td",
  requests: "#found-requests tbody td",
  "requests?status=4xx": "#found-requests tbody td",
  costs: "#sums tbody td",
  keys: "#key-list tbody td",
  try: "#model option",
  "manual/routing": "#page h2",
};

async function main(folder = "pictures", option = ""): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const ends: (() => unknown)[] = [];
  const { admin } = await startBusy({ after: (end) => ends.push(end) });
  const browser = await chromium.launch(BROWSER);
  const { faults } = (await (await fetch(`${admin}/history`)).json()) as any;
  const views = { ...VIEWS, [`requests/${faults[0].request_id}`]: ".story tbody tr" };

  /** A page with a view. */
  async function open(view: string, width: number, colorScheme: "light" | "dark" = "light") {
    const viewport = { width, height: 900 };
    const looks = { viewport, colorScheme, locale: "en-GB", timezoneId: "UTC" };
    const page = await browser.newPage(looks);
    await page.goto(`${admin}/#${view}`);
    await page.locator("#state", { hasText: /^serving/ }).waitFor();
    await page.locator(views[view]!).first().waitFor({ state: "attached" });
    await page.waitForLoadState("networkidle").catch(() => undefined);
    return page;
  }

  for (const colorScheme of ["light", "dark"] as const)
    for (const width of [1440, 360])
      for (const view of Object.keys(views)) {
        const page = await open(view, width, colorScheme);
        const name = `${view.replaceAll(/[/?]/g, "-")}-${width}-${colorScheme}.png`;
        await page.screenshot({ path: join(folder, name), fullPage: true });
        await page.close();
      }
  const png = join(import.meta.dirname, "../../scripts/console.png");
  if (option === "--readme") await (await open("now", 1280)).screenshot({ path: png });
  await browser.close();
  for (const end of ends.toReversed()) await end();
}

await main(...process.argv.slice(2));
