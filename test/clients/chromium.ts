// The browser of the console's tests: Debian's Chromium, or the one that CHROMIUM names.

import { existsSync } from "node:fs";
import { notInstalled, skipUnless } from "./lab.ts";

export const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** False, or why the console's tests are skipped. */
export const noBrowser = () =>
  notInstalled() ||
  skipUnless(existsSync(CHROMIUM), `there is no ${CHROMIUM}: apt-get install chromium`);
