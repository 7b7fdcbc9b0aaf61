// Writes the gateway and its conformance suite as one file each, for plain Node:
// dist/chat-gateway.mjs and dist/conformance.mjs (`npm run build`). With --core it writes the core
// alone, without any extension: dist/chat-gateway-core.mjs (`npm run build:core`).
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { extensions } from "../src/extensions.ts";

const SRC = resolve(import.meta.dirname, "../src");

/**
 * The texts that the program reads from files beside its sources (src/embedded.ts), by their paths
 * under src.
 */
const texts = Object.fromEntries(
  readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(html|css|js|lua)$|^manual\/.*\.md$/.test(path))
    .sort()
    .map((path) => [path, readFileSync(join(SRC, path), "utf8")]),
);

/** How one file is made of a program. */
export const ONE_FILE = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  logLevel: "warning",
  define: { EMBEDDED_TEXTS: JSON.stringify(texts) },
} as const;

/** The extensions of the reference edition: what the contract speaks of beyond the core. */
const REFERENCE = ["keys", "books", "billing"];

/** Puts those extensions alone into src/extensions.ts. */
const referenceExtensions: Plugin = {
  name: "reference-extensions",
  setup({ onLoad }) {
    const rows = extensions
      .filter(({ name }) => REFERENCE.includes(name))
      .map(({ load, ...row }) => `{ ...${JSON.stringify(row)}, load: ${load.toString()} }`);
    onLoad({ filter: /[\\/]src[\\/]extensions\.ts$/ }, () => ({
      contents: `export const extensions = [${rows.join(", ")}];`,
      resolveDir: SRC,
    }));
  },
};

/** How the reference edition is made. */
export const REFERENCE_EDITION = {
  ...ONE_FILE,
  entryPoints: { "chat-gateway-core": "src/main.ts" },
  define: {},
  plugins: [referenceExtensions],
};

async function main(): Promise<void> {
  const output = { outdir: "dist", outExtension: { ".js": ".mjs" } };
  if (process.argv.includes("--core")) {
    await build({ ...REFERENCE_EDITION, ...output });
    return;
  }
  const entryPoints = {
    "chat-gateway": "src/main.ts",
    conformance: "scripts/conformance/main.ts",
  };
  await build({ ...ONE_FILE, ...output, entryPoints });
}

if (import.meta.filename === process.argv[1]) await main();
