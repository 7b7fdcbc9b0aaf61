// The project's promises about itself: its size, its dependencies, its layout. test/manual.test.ts
// checks those about the manual.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  CORE_CEILING,
  EXTENSION_CEILING,
  isCode,
  sizeOf,
  sizeOfReference,
  sourcesIn,
} from "../scripts/size.ts";

const sources = sourcesIn("src").map((name) => ({
  name,
  lines: readFileSync(join("src", name), "utf8").trimEnd().split("\n"),
}));

/** The texts of all sources, tests and scripts, and of the READMEs beside them. */
const cited = ["src", "test", "scripts"]
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
  )
  .filter((name) => /\.(ts|md)$/.test(name) && !/\/node_modules\//.test(name))
  .map((name) => ({ name, text: readFileSync(name, "utf8") }));

/** Pages of the manual with their sections, as comments cite them: `contract.md "Breaker"`. */
function citationsIn(text: string): { readonly page: string; readonly section: string }[] {
  const joined = text.replace(/\n\s*(\/\/|\*) ?/g, " ");
  const found = joined.matchAll(/\b([a-z]+)\.md((?:,? (?:and )?"[A-Z][^"\n]*")+)/g);
  return [...found].flatMap(([, page, sections]) =>
    [...sections!.matchAll(/"([^"]+)"/g)].map(([, section]) => ({
      page: page!,
      section: section!,
    })),
  );
}

/** The page that promises the size limits. */
const PROMISES_SIZES = "src/manual/contributing.md";
const CONSOLE_PAGE = "src/extensions/operations/console/page";

/** How far the README's rounded figures may differ from the sources. */
const TOLERANCE = 0.05;

function assertNear(stated: string | undefined, lines: number, name: string): void {
  assert.ok(stated, `the size of ${name} is stated`);
  const isNear = Math.abs(Number(stated.replaceAll(",", "")) / lines - 1) < TOLERANCE;
  assert.ok(isNear, `${name} has ${lines} lines of code, the README states ${stated}`);
}

/** The number of lines of the console's JavaScript, without comments. */
const consoleLines = (): number =>
  readdirSync(CONSOLE_PAGE)
    .filter((name) => name.endsWith(".js"))
    .flatMap((name) => readFileSync(join(CONSOLE_PAGE, name), "utf8").split("\n"))
    .filter(isCode).length;

describe("promises", () => {
  it("the README states the sizes of the reference edition, the core and all of src", async () => {
    const figures =
      /books and bills, ([\d,]+)\slines of code\. The core alone has ([\d,]+), all of `src` ([\d,]+)\./;
    const [, reference, core, all] = figures.exec(readFileSync("README.md", "utf8")) ?? [];
    assertNear(reference, await sizeOfReference(), "the reference edition");
    assertNear(core, sizeOf("src/core"), "the core");
    assertNear(all, sizeOf("src") + consoleLines(), "all of src");
  });

  it("src/core has fewer lines of code than contributing.md promises", () => {
    const promised = CORE_CEILING.toLocaleString("en");
    assert.ok(readFileSync(PROMISES_SIZES, "utf8").includes(`under ${promised} lines of code`));
    const lines = sizeOf("src/core");
    assert.ok(
      lines < CORE_CEILING,
      `src/core has ${lines} lines of code, contributing.md promises fewer than ${promised}`,
    );
  });

  it("an extension has fewer lines of code than contributing.md promises", () => {
    const page = readFileSync(PROMISES_SIZES, "utf8");
    assert.ok(page.includes(`an extension under ${EXTENSION_CEILING}`));
    for (const group of readdirSync("src/extensions"))
      for (const name of readdirSync(join("src/extensions", group))) {
        if (name.endsWith(".md")) continue;
        const lines = sizeOf(join("src/extensions", group, name));
        assert.ok(lines < EXTENSION_CEILING, `${group}/${name} has ${lines} lines of code`);
      }
  });

  it("no runtime dependency, and the listed development ones only", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
    assert.deepEqual(Object.keys(dependencies ?? {}), []);
    const listed = ["@biomejs/biome", "@types/node", "c8", "esbuild", "tsx", "typescript"];
    assert.deepEqual(Object.keys(devDependencies).sort(), listed);
  });

  it("no file of src has more than 300 lines, and none is longer than 100 columns", () => {
    for (const { name, lines } of sources) {
      assert.ok(lines.length <= 300, `${name} has ${lines.length} lines`);
      // A string that cannot be split may be longer if it is alone on its line.
      const isLong = (line: string) => line.length > 100 && !/^\s*(["'`]).*\1[,;]?$/.test(line);
      const at = lines.findIndex(isLong);
      assert.equal(at, -1, `${name}, line ${at + 1} is longer than 100 columns`);
    }
  });

  it("no test waits at the top of its file: the tests of files before it would run meanwhile", () => {
    for (const name of sourcesIn("test").filter((file) =>
      /^(?!.*node_modules).*\.test\.ts$/.test(file),
    ))
      assert.doesNotMatch(readFileSync(join("test", name), "utf8"), /^(?!.*=>)\S.*\bawait /m, name);
  });

  it("only main.ts touches the process; every file opens by saying what it is for; no `any`", () => {
    for (const { name, lines } of sources) {
      const text = lines.filter(isCode).join("\n");
      if (name !== "main.ts") assert.doesNotMatch(text, /\bprocess\.|console\./, name);
      assert.match(lines[lines[0]!.startsWith("#!") ? 1 : 0]!, /^\/\/ \S/, name);
      assert.doesNotMatch(text, /\bany\b(?=[\s;,>)\]])(?<=[:<|] ?any)/, name);
    }
  });

  it("comments cite pages of the manual, and sections that these have", () => {
    for (const { name, text } of cited) {
      if (name !== "test/promises.test.ts")
        assert.doesNotMatch(text, /\b(SPEC|WIRE|DESIGN|PITFALLS)(\.md\b| (D?\d|"))/, name);
      for (const { page, section } of citationsIn(text)) {
        const path = `src/manual/${page}.md`;
        assert.ok(existsSync(path), `${name} cites ${page}.md`);
        const sections = readFileSync(path, "utf8").matchAll(/^#+ (.*)$/gm);
        const hasSection = [...sections].some(([, title]) => title === section);
        assert.ok(hasSection, `${name} cites ${page}.md "${section}"`);
      }
    }
  });
});
