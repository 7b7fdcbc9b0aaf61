// Pictures of the console, each part in light and dark, 360 and 1440 pixels wide, after a busy
// morning: node --import tsx test/clients/pictures.ts FOLDER [PART ...]. The folder is made. With
// --readme the picture of README.md and the manual is made too, as scripts/console.png.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { chromium, type Page } from "playwright-core";
import { startBusy, type Busy } from "./busy.ts";
import { BROWSER } from "./browser.ts";

interface Shot {
  /** What follows the # of the address. */
  readonly address: (busy: Busy) => Promise<string>;
  /** What must be there before the picture is taken. */
  readonly ready: string;
}

/** The request id of the last fault of a provider. */
async function faultyRequest({ admin }: Busy): Promise<string> {
  const answer = await fetch(`${admin}/history`);
  const { faults } = (await answer.json()) as { faults: { request_id: string }[] };
  return encodeURIComponent(faults[0]!.request_id);
}

const at = (address: string, ready: string): Shot => ({ address: async () => address, ready });

const SHOTS: Readonly<Record<string, Shot>> = {
  now: at("now", "#models tbody td"),
  requests: at("requests", "#found-requests tbody td"),
  refused: at("requests?status=4xx", "#found-requests tbody td"),
  story: {
    address: async (busy) => `requests/${await faultyRequest(busy)}`,
    ready: ".story tbody tr",
  },
  costs: at("costs", "#sums tbody td"),
  keys: at("keys", "#key-list tbody td"),
  try: at("try", "#model option"),
  manual: at("manual/routing", "#page h2"),
};

async function picture(page: Page, busy: Busy, { name, file }: { name: string; file: string }) {
  const { address, ready } = SHOTS[name]!;
  await page.goto(`${busy.admin}/#${await address(busy)}`);
  await page.locator("#state", { hasText: /^serving/ }).waitFor({ timeout: 20_000 });
  await page.locator(ready).first().waitFor({ state: "attached", timeout: 20_000 });
  await page.waitForLoadState("networkidle").catch(() => undefined);
  await page.waitForTimeout(300);
  await page.screenshot({ path: file, fullPage: true });
}

async function main(): Promise<void> {
  const [folder = "pictures", ...rest] = process.argv.slice(2);
  const isForReadme = rest.includes("--readme");
  const names = rest.filter((name) => name in SHOTS);
  mkdirSync(folder, { recursive: true });
  const ends: (() => unknown)[] = [];
  const busy = await startBusy({ after: (end) => ends.push(end) });
  const browser = await chromium.launch(BROWSER);
  const open = async (width: number, colorScheme: "light" | "dark") => {
    const viewport = { width, height: width === 360 ? 740 : 900 };
    return await browser.newPage({ viewport, colorScheme, locale: "en-GB", timezoneId: "UTC" });
  };
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [1440, 360]) {
      const page = await open(width, colorScheme);
      for (const name of names.length > 0 ? names : Object.keys(SHOTS)) {
        const file = join(folder, `${name}-${width}-${colorScheme}.png`);
        await picture(page, busy, { name, file }).catch((error) => console.error(name, error));
      }
      await page.close();
    }
  }
  if (isForReadme) {
    const page = await open(1280, "light");
    await picture(page, busy, { name: "now", file: join(folder, "readme.png") });
    await page.screenshot({ path: resolve(import.meta.dirname, "../../scripts/console.png") });
  }
  await browser.close();
  for (const end of ends.toReversed()) await end();
}

await main();
