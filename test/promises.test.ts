// The promises that the project makes about itself: its size, its dependencies, its layout.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { providersTable } from "../scripts/providers.ts";

const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, lines: readFileSync(join("src", name), "utf8").trimEnd().split("\n") }));

const isCode = (line: string) => !/^\s*($|\/\/|\/\*|\*)/.test(line);
const code = sources.reduce((sum, { lines }) => sum + lines.filter(isCode).length, 0);

describe("promises", () => {
  it("the README states the size of src within 5 %", () => {
    const stated = /src is ([\d,]+) lines of code in (\d+) files/.exec(
      readFileSync("README.md", "utf8"),
    );
    assert.ok(stated, "the README states the size");
    assert.ok(
      Math.abs(Number(stated[1]!.replace(",", "")) / code - 1) < 0.05,
      `${code} lines of code, README: ${stated[1]}`,
    );
    assert.equal(Number(stated[2]), sources.length);
  });

  it("the README's table of providers says what the code goes by", () => {
    for (const line of providersTable().split("\n"))
      assert.ok(readFileSync("README.md", "utf8").includes(`${line}\n`), line);
  });

  it("no runtime dependency, and the listed development ones only", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
    assert.deepEqual(Object.keys(dependencies ?? {}), []);
    assert.deepEqual(Object.keys(devDependencies).sort(), [
      "@biomejs/biome",
      "@types/node",
      "c8",
      "esbuild",
      "tsx",
      "typescript",
    ]);
  });

  it("sources import node: modules, each other and data beside them, nothing else", () => {
    for (const { name, lines } of sources) {
      for (const line of lines) {
        const from =
          /^(?:(?:import|export) .*?|\} )from "([^"]+)"( with \{ type: "json" \})?;|^import "([^"]+)";/.exec(
            line,
          );
        const module = from?.[1] ?? from?.[3];
        const own = from?.[2] ? /^\.\.?\/.*\.json$/ : /^\.\.?\/.*\.ts$/;
        if (module !== undefined)
          assert.ok(module.startsWith("node:") || own.test(module), `${name}: ${module}`);
      }
    }
  });

  it("only main.ts touches the process; every file opens by saying what it is for; no `any`", () => {
    for (const { name, lines } of sources) {
      const text = lines.filter(isCode).join("\n");
      if (name !== "main.ts") assert.doesNotMatch(text, /\bprocess\.|console\./, name);
      assert.match(lines[lines[0]!.startsWith("#!") ? 1 : 0]!, /^\/\/ \S/, name);
      assert.doesNotMatch(text, /\bany\b(?=[\s;,>)\]])(?<=[:<|] ?any)/, name);
    }
  });
});
