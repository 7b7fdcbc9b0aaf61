// Where recorded traffic of providers is kept, beside the project, and what of it the tests of the
// client APIs read. One place says so: a wrong path would only skip tests.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Folders of recordings, one a vendor. */
export const RECORDINGS = process.env["RECORDINGS"] ?? resolve("../shared/fixtures");
/** Single recorded replies that showed a fault. */
export const CASES = process.env["CASES"] ?? resolve("../shared/cases");

/** Why tests on recordings are skipped. False: they are not. */
export const noRecordings = !existsSync(RECORDINGS) && `there are no recordings at ${RECORDINGS}`;

const VENDORS = ["anthropic", "openai", "deepseek", "mistral", "groq", "qwen", "xai", "gemini"];

/** The whole replies and streams of these vendors. */
export const recordings = VENDORS.filter(
  (vendor) => !noRecordings && existsSync(join(RECORDINGS, vendor)),
).flatMap((vendor) =>
  readdirSync(join(RECORDINGS, vendor))
    .filter((name) => /\.json$|\.chunks\.txt$/.test(name))
    .map((name) => ({ vendor, name, text: readFileSync(join(RECORDINGS, vendor, name), "utf8") })),
);
