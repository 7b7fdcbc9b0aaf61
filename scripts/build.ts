// Writes the gateway and its conformance suite as one file each, for plain Node:
// dist/chat-gateway.mjs and dist/conformance.mjs (`npm run build`). With --core it writes the core
// alone, without any extension: dist/chat-gateway-core.mjs (`npm run build:core`).
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";

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

/** Puts an empty table in the place of src/extensions.ts. */
const withoutExtensions: Plugin = {
  name: "without-extensions",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/]extensions\.ts$/ }, () => ({
      contents: "export const extensions = [];",
    }));
  },
};

async function main(): Promise<void> {
  const output = { outdir: "dist", outExtension: { ".js": ".mjs" } };
  if (process.argv.includes("--core")) {
    const entryPoints = { "chat-gateway-core": "src/main.ts" };
    await build({ ...ONE_FILE, ...output, entryPoints, define: {}, plugins: [withoutExtensions] });
    return;
  }
  const entryPoints = {
    "chat-gateway": "src/main.ts",
    conformance: "scripts/conformance/main.ts",
  };
  await build({ ...ONE_FILE, ...output, entryPoints });
}

if (import.meta.filename === process.argv[1]) await main();
