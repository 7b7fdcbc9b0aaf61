// Writes the gateway and its conformance suite as one file each, for plain Node: dist/chat-gateway.mjs and dist/conformance.mjs.
// `npm run build`.
import { readFileSync } from "node:fs";
import { build } from "esbuild";

/** What a build of one file puts into the program: the console's page, which otherwise is read from its file. */
export const CONSOLE = {
  CONSOLE_PAGE: JSON.stringify(
    readFileSync(new URL("../src/extensions/console/index.html", import.meta.url), "utf8"),
  ),
};

/** How one file is made of a program. */
export const ONE_FILE = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  logLevel: "warning",
  define: CONSOLE,
} as const;

if (import.meta.filename === process.argv[1]) {
  await build({
    ...ONE_FILE,
    entryPoints: { "chat-gateway": "src/main.ts", conformance: "scripts/conformance/main.ts" },
    outdir: "dist",
    outExtension: { ".js": ".mjs" },
  });
}
