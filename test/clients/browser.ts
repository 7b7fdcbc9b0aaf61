// Debian's Chromium, for suites that need a real browser: where it is, how it is started, and the
// words to skip with where there is none.

import { existsSync } from "node:fs";
import { notInstalled, skipUnless } from "./lab.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** How playwright-core launches it: alone, without calls of its own to the network. */
export const BROWSER = {
  executablePath,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
};

/** False, or why the tests that need a browser are skipped. */
export const noBrowser = () =>
  notInstalled() ||
  skipUnless(existsSync(executablePath), `there is no ${executablePath}: apt-get install chromium`);
