// Writes the gateway and its conformance suite as one file each, for plain Node: dist/chat-gateway.mjs and dist/conformance.mjs.
// `npm run build`.
import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { page, topics } from "../src/extensions/manual/index.ts";

const consolePage = new URL("../src/extensions/console/index.html", import.meta.url);
const manualPages = topics().map(({ name }) => [name, page(name)]);

/** Constants that a build of one file defines: texts that the program otherwise reads from the files of its sources. */
export const EMBEDDED = {
  CONSOLE_PAGE: JSON.stringify(readFileSync(consolePage, "utf8")),
  MANUAL_PAGES: JSON.stringify(Object.fromEntries(manualPages)),
};

if (import.meta.filename === process.argv[1]) {
  await build({
    entryPoints: { "chat-gateway": "src/main.ts", conformance: "scripts/conformance/main.ts" },
    outdir: "dist",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    logLevel: "warning",
    define: EMBEDDED,
  });
}
