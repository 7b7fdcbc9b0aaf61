// Builds all files of a release in dist/release: `npm run release`.
//
//   chat-gateway-VERSION.mjs              the built file, for any machine with Node
//   chat-gateway-VERSION.tgz              the package, for npx and npm install
//   chat-gateway-VERSION-PLATFORM-ARCH    the single executable, which includes Node
//   SHA256SUMS                            as `sha256sum --check` reads it
//
// `-- --without-executable` omits the executable: scripts/build-sea.ts says where it cannot be
// built. Before Node 25.5 it needs a package that npm fetches; nothing else here needs a network.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../src/core/version.ts";

const BUILT = "dist/chat-gateway.mjs";
const FOLDER = "dist/release";
const SUMS = "SHA256SUMS";
const NAME = `chat-gateway-${VERSION}`;

const { values } = parseArgs({ options: { "without-executable": { type: "boolean" } } });

/** Runs a command and hides its output. If it fails, this script fails. */
function run(file: string, args: readonly string[]): void {
  execFileSync(file, args, { stdio: ["ignore", "ignore", "inherit"] });
}

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
run("npm", ["pack", "--silent", "--pack-destination", FOLDER]); // builds first
copyFileSync(BUILT, join(FOLDER, `${NAME}.mjs`));
if (!values["without-executable"]) {
  const executable = join(FOLDER, `${NAME}-${process.platform}-${process.arch}`);
  run(process.execPath, ["--import", "tsx", "scripts/build-sea.ts", "--out", executable]);
}
// The checksums. Each is printed with the size of its file in bytes.
const lines = readdirSync(FOLDER).map((name) => {
  const bytes = readFileSync(join(FOLDER, name));
  const digest = createHash("sha256").update(bytes).digest("hex");
  console.log(`${digest}  ${bytes.length.toLocaleString("en").padStart(11)}  ${name}`);
  return `${digest}  ${name}\n`;
});
writeFileSync(join(FOLDER, SUMS), lines.join(""));
