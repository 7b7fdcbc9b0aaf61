// Bundles the gateway and its conformance suite into one file each, for plain Node:
// dist/chat-gateway.mjs and dist/conformance.mjs (`npm run build`). With --core it writes the
// reference edition, the core with created keys, books and bills: dist/chat-gateway-core.mjs (`npm
// run build:core`).
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";

const SRC = resolve(import.meta.dirname, "../src");

/** Characters that would end the comment or cannot appear in it unescaped. */
const ESCAPED = /\\|(?<=\*)\/|[^\n -~]/g;
const escaped = (text: string): string =>
  text.replace(ESCAPED, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A function whose comment contains the text files that the program reads (src/embedded.ts). */
export function embeddedTexts(src = SRC): string {
  const sections = readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(html|css|js|lua)$|^manual\/.*\.md$/.test(path))
    .sort()
    .map((path) => `\\file ${path}\n${escaped(readFileSync(join(src, path), "utf8"))}\n`);
  return `function EMBEDDED_TEXTS() {/*\n${sections.join("")}\\end\n*/}`;
}

/** esbuild's options for a program in one file. */
export const ONE_FILE = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.19",
  logLevel: "warning",
  footer: { js: embeddedTexts() },
} as const;

/**
 * esbuild's options for the gateway. `require` loads each Node module where the part that needs it
 * begins; ES imports would load all of them before anything runs.
 */
export const PROGRAM = {
  ...ONE_FILE,
  format: "cjs",
  define: { "import.meta.url": "programUrl" },
  banner: { js: "const programUrl = import.meta.url, require = process.getBuiltinModule;" },
} as const;

/** An entry of src/extensions.ts, on one line or on several. */
const ENTRY = /^ {2}entry\(.*\),\n|^ {2}entry\(.*\n(?: {4}.*\n)+ {2}\}\),\n/gm;

/** The text of src/extensions.ts with the entries that are kept. `path`: such as `money/books`. */
export const withEntries = (table: string, isKept: (path: string) => boolean): string =>
  table.replace(ENTRY, (entry) => {
    const [, path = ""] = /import\("\.\/extensions\/(.+)\/index\.ts"\)/.exec(entry) ?? [];
    return isKept(path) ? entry : "";
  });

/** The extensions of the reference edition: what the contract specifies beyond the core. */
const REFERENCE = ["operations/keys", "money/books", "money/billing"];

/** The text of src/extensions.ts in the reference edition. */
export const referenceTable = (): string =>
  withEntries(readFileSync("src/extensions.ts", "utf8"), (path) => REFERENCE.includes(path));

const referenceExtensions: Plugin = {
  name: "reference-extensions",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/]extensions\.ts$/ }, () => ({
      contents: referenceTable(),
      loader: "ts",
    }));
  },
};

/** esbuild's options for the reference edition. */
export const REFERENCE_EDITION = {
  ...PROGRAM,
  entryPoints: { "chat-gateway-core": "src/main.ts" },
  footer: {},
  plugins: [referenceExtensions],
};

async function main(): Promise<void> {
  const output = { outdir: "dist", outExtension: { ".js": ".mjs" } };
  if (process.argv.includes("--core")) {
    await build({ ...REFERENCE_EDITION, ...output });
    return;
  }
  await build({ ...PROGRAM, ...output, entryPoints: { "chat-gateway": "src/main.ts" } });
  const entryPoints = { conformance: "scripts/conformance/main.ts" };
  await build({ ...ONE_FILE, ...output, entryPoints, footer: {} });
}

if (import.meta.filename === process.argv[1]) await main();
