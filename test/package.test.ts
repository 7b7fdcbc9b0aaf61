// The npm package: it contains the built file and the manual, and nothing else. scripts/smoke.ts
// tests that npx runs it in an empty folder without a registry.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import * as fs from "node:fs";
import { dirname, join, resolve } from "node:path";
import { before, describe, it } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { embeddedTexts, ONE_FILE } from "../scripts/build.ts";
import { VERSION } from "../src/core/version.ts";
import { manual } from "../src/extensions/operations/manual/index.ts";
import { folder } from "./support/folder.ts";

const PACKAGE = `chat-gateway-${VERSION}.tgz`;
/** How far the sizes in the manual may differ from the files. */
const TOLERANCE = 0.2;
/** The files needed for packing. They are copied, so that the sources' own dist stays unchanged. */
const NEEDED = [".gitignore", "README.md", "package.json", "tsconfig.json", "scripts/build.ts"];
const NEEDED_FOLDERS = ["src", "scripts/conformance"];

/** No registry answers at this address. Without it, npm would retry for minutes. */
const OFFLINE = {
  PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
  npm_config_registry: "http://127.0.0.1:9",
  npm_config_update_notifier: "false",
};
const run = promisify(execFile);

/** Packs a copy of the sources, which `npm pack` builds first. Returns the package's path. */
async function pack(): Promise<string> {
  const sources = folder();
  for (const path of NEEDED_FOLDERS) fs.cpSync(path, join(sources, path), { recursive: true });
  for (const path of NEEDED) fs.copyFileSync(path, join(sources, path));
  fs.symlinkSync(resolve("node_modules"), join(sources, "node_modules"));
  await run("npm", ["pack", "--silent"], { cwd: sources, env: { ...OFFLINE, HOME: sources } });
  const [own, left] = ["package.json", join(sources, "package.json")].map((path) =>
    fs.readFileSync(path, "utf8"),
  );
  assert.equal(left, own, "package.json is as it was");
  return join(sources, PACKAGE);
}

describe("the package", () => {
  let file = "";
  before(async () => {
    file = await pack();
  });

  async function unpacked(): Promise<string> {
    const place = folder();
    await run("tar", ["--extract", "--gzip", "--file", file, "--directory", place]);
    return join(place, "package");
  }

  it("holds the built file as its program, the manual, README.md, and nothing that npm would ask for", async () => {
    const place = await unpacked();
    const files = fs
      .readdirSync(place, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(place.length + 1));
    const pages = manual.topics().map(({ name }) => `src/manual/${name}.md`);
    assert.deepEqual(
      files.sort(),
      ["README.md", "dist/chat-gateway.mjs", "package.json", ...pages].sort(),
    );
    const packed = JSON.parse(fs.readFileSync(join(place, "package.json"), "utf8"));
    const bin = { "chat-gateway": "dist/chat-gateway.mjs" };
    assert.deepEqual([packed.version, packed.bin], [VERSION, bin]);
    const asked = Object.keys(packed).filter((name) => /dependencies|scripts/i.test(name));
    assert.deepEqual(asked, []);
  });

  it("has the size that the manual states, and so has the built file", async () => {
    const page = manual.page("deploying") ?? "";
    const built = join(await unpacked(), "dist/chat-gateway.mjs");
    for (const [path, ending] of [
      [built, "mjs"],
      [file, "tgz"],
    ] as const) {
      const row = new RegExp(
        `^\\| \`chat-gateway-[\\d.]+\\.${ending}\`[^|]*\\| ([\\d.]+) MB \\|`,
        "m",
      );
      const [, stated] = row.exec(page) ?? [];
      const megabytes = fs.statSync(path).size / 1e6;
      assert.ok(Math.abs(megabytes / Number(stated) - 1) < TOLERANCE, `${ending}: ${megabytes} MB`);
    }
  });
});

it("the texts in the built file are those of the sources, whatever stands in them", async () => {
  const place = folder();
  const texts = {
    "a.js": "/* comment */ `code` \\u0041 \"'\r\n\\file b.js\n\\end\n*/}",
    "b.js": "\u{1f600}\u2028\0*/*/\\",
    "c.js": "",
    "d.js": "\n\n",
  };
  for (const [name, text] of Object.entries(texts)) fs.writeFileSync(join(place, name), text);
  const outfile = join(place, "built.mjs");
  const footer = { js: embeddedTexts(place) };
  await build({ ...ONE_FILE, entryPoints: ["src/embedded.ts"], outfile, footer });
  const { embeddedText } = (await import(outfile)) as typeof import("../src/embedded.ts");
  for (const [name, text] of Object.entries(texts)) assert.equal(embeddedText(name), text, name);
  assert.throws(() => embeddedText("none.js"), /^Error: the build has no none\.js$/);
});
