// What package.json says in the package that npm makes: nothing of how the project is built and
// tested, and no optional peers. npx would ask a registry for those, and wait for minutes where
// there is none. npm runs this around `npm pack`: it changes package.json, and with --restore puts
// back what was there.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const FILE = "package.json";
const KEPT = "dist/package.json";

if (process.argv.includes("--restore")) {
  if (existsSync(KEPT)) renameSync(KEPT, FILE);
} else {
  const text = readFileSync(FILE, "utf8");
  const { name, version, description, type, bin, files, engines } = JSON.parse(text);
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, text);
  const packed = { name, version, description, type, bin, files, engines };
  writeFileSync(FILE, `${JSON.stringify(packed, null, 2)}\n`);
}
