// The manual and README.md: they cover every field, error, metric, command and option, their
// generated tables match the program, their links resolve, and the program shows every page.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import * as docs from "../scripts/docs.ts";
import vendors from "../src/config/vendors.json" with { type: "json" };
import { VERSION } from "../src/core/version.ts";
import { manual } from "../src/extensions/operations/manual/index.ts";
import { ended, outputOf } from "./support/command.ts";
import { allExtensions } from "./support/config.ts";
import { demo, startGateway } from "./support/gateway.ts";
import { pages } from "./support/readme.ts";
import { EXTENSIONS, extensionFolders, foldersIn } from "./support/sources.ts";

/** The size limit of README.md in bytes: a newcomer reads it in a few minutes. */
const README_BYTES = 8_192;
/** The size limit of a summary in characters, which keeps the lines of `help` short. */
const SUMMARY_CHARS = 95;

/** The vendors except the demo model and "any other OpenAI-compatible server". */
const VENDORS = Object.entries(vendors)
  .filter(([name]) => name !== "demo" && name !== "generic")
  .map(([, { title }]) => ({ title }));

const textOf = (topic: string): string => manual.page(topic) ?? assert.fail(`no page ${topic}`);

/** The first cells of all table rows in a page's marked blocks of this kind. */
function firstCells(text: string, marker: string): string[] {
  const blocks = [
    ...text.matchAll(new RegExp(`<!-- ${marker} -->\\n([\\s\\S]*?)<!-- end -->`, "g")),
  ];
  return blocks.flatMap(([, table]) =>
    table!
      .split("\n")
      .filter((line) => line.startsWith("| `"))
      .map((line) => line.split(/(?<!\\)\|/)[1]!),
  );
}

/** The headings of a page as the anchors that a Markdown viewer generates. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

describe("README.md", () => {
  it(`is at most ${README_BYTES} bytes`, () => {
    const { size } = statSync("README.md");
    assert.ok(size <= README_BYTES, `${size} bytes`);
  });

  it("links every page of the manual", () => {
    const readme = readFileSync("README.md", "utf8");
    for (const { name, title } of manual.topics())
      assert.ok(readme.includes(`[${title}](src/manual/${name}.md)`), name);
  });
});

/** The gateway's figure in a row of the first table of performance.md. */
function measured(row: string): number {
  const cells = textOf("performance").split(`\n| ${row} |`)[1]?.split("|") ?? [];
  return Number(cells[1]);
}

describe("what README.md claims", () => {
  const readme = readFileSync("README.md", "utf8");

  it("names every vendor", () => {
    const [, list = ""] = /\n## Providers\n\n([\s\S]*?)\n\n/.exec(readme) ?? [];
    for (const { title } of VENDORS) assert.ok(list.includes(title.split(/[ ,]/)[0]!), title);
  });

  it("has the figures of performance.md, and their date", () => {
    const replies = measured("whole replies a second, 64 at a time");
    const rounded = (Math.round(replies / 100) * 100).toLocaleString("en");
    assert.ok(readme.includes(`one core serves ${rounded} whole replies a second`), rounded);
    const added = measured("added latency, 1 at a time: p50, ms").toFixed(1);
    assert.ok(readme.includes(`adds ${added} ms to a request (median)`), `${added} ms`);
    const [, date] = /Measured on (\S+), on two virtual cores/.exec(textOf("performance")) ?? [];
    assert.ok(readme.includes(`on ${date}`));
  });

  it("names the version, as do the pages about installing, the changelog and the deploy files", () => {
    const pages = [readme, ...["deploying", "comparison"].map(textOf)];
    const files = [
      "Dockerfile",
      "deploy/compose/compose.yaml",
      "deploy/kubernetes/kustomization.yaml",
    ];
    const texts = [...pages, ...files.map((name) => readFileSync(join("scripts", name), "utf8"))];
    for (const text of texts) {
      const named = [...text.matchAll(/(?:chat-gateway[-:]|newTag: )(\d+\.\d+\.\d+)/g)];
      assert.ok(named.length > 0);
      for (const [name, version] of named) assert.equal(version, VERSION, name);
    }
    assert.ok(textOf("changelog").includes(`\n## ${VERSION}\n`));
  });
});

describe("the pages of the manual", () => {
  for (const { name, title, summary } of manual.topics()) {
    it(`${name} begins with a title and one sentence about it`, () => {
      assert.match(name, /^[a-z]+$/);
      assert.ok(textOf(name).startsWith(`# ${title}\n\n`));
      assert.match(title, /^[A-Z]/);
      assert.match(summary, /^[A-Z][^.]*\.$/);
      assert.ok(summary.length <= SUMMARY_CHARS, `${summary.length} characters`);
    });

    it(`${name} has the tables that \`npm run docs\` writes`, () => {
      assert.equal(textOf(name), docs.withTables(textOf(name)));
    });
  }
});

describe("links and paths of README.md and the manual", () => {
  const all = pages();

  it("every relative link resolves, its anchor included", () => {
    const links = all.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => ({ path, target: target! })),
    );
    for (const { path, target } of links.filter((link) => !/^https?:/.test(link.target))) {
      const [file = "", anchor] = target.split("#");
      const linked = file === "" ? path : join(dirname(path), file);
      assert.ok(existsSync(linked), `${path} links ${target}`);
      if (anchor !== undefined)
        assert.ok(anchorsOf(readFileSync(linked, "utf8")).includes(anchor), `${path}: ${target}`);
    }
  });

  it("every path of the sources, the tests and the scripts exists", () => {
    for (const { path, text } of all) {
      for (const [named] of text.matchAll(/(?<![\w/.])(src|test|scripts)\/[\w./-]*\w/g)) {
        // A word in capitals stands for any name.
        const known = named.replace(/\/[A-Z]+$/, "");
        assert.ok(existsSync(known), `${path} names ${named}`);
      }
    }
  });
});

describe("completeness", () => {
  it("every setting that is read at start only is among those that need a restart", () => {
    const [, listed] = /^These need a restart: (.*?)\n\n/ms.exec(textOf("configuration"))!;
    const settings = allExtensions.flatMap((extension) => extension.settings ?? []);
    const missing = settings
      .filter(({ fixed, path }) => {
        const names = [path, path.replace(/^server\./, ""), path.split(".")[0]];
        return fixed && !names.some((name) => listed!.includes(`\`${name}\``));
      })
      .map(({ path }) => path);
    assert.deepEqual(missing, []);
  });

  const paths = docs.configurationFields().map((field) => field.path);
  for (const [page, marker, names] of [
    ["configuration", "filled: fields", paths],
    ["errors", "filled: errors", docs.ERROR_CODES],
    ["console", "generated: metrics", docs.METRIC_NAMES],
  ] as const)
    it(`${page} has one row for each of its ${marker.split(" ")[1]}, and no others`, () => {
      const rows = firstCells(textOf(page), marker).flatMap(docs.namesIn);
      assert.deepEqual(rows.sort(), [...names].sort());
    });

  it("every folder of the core and every extension is in internals", () => {
    const text = textOf("internals");
    const inCore = foldersIn("src/core").map((name) => `src/core/${name}`);
    const inExtensions = extensionFolders.map((name) => `${EXTENSIONS}/${name}`);
    for (const folder of [...inCore, ...inExtensions])
      assert.ok(text.includes(`\`${folder}\``), folder);
  });

  it("every event on stderr is in troubleshooting", () => {
    const texts = readdirSync("src", { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => readFileSync(join("src", name), "utf8"));
    const written =
      /event: `\$\{subject\}(_\w+)`|(?:event: |event = [^;]*|\breport\(|\blog\()"([a-z]+(?:_[a-z]+)+)"/g;
    const found = texts.flatMap((text) =>
      [...text.matchAll(written)].map(([, end, name]) => name ?? `limits${end}`),
    );
    assert.ok(found.includes("limits_store_failed") && found.includes("attempt_failed"));
    const section = textOf("troubleshooting").split("\n## Events on stderr\n")[1]!;
    const missing = found.filter((event) => !section.includes(`\`${event}\``));
    assert.deepEqual(missing, []);
  });

  it("every command and every option is in commands", () => {
    const rows = firstCells(textOf("commands"), "generated: commands").join("\n");
    for (const command of docs.COMMAND_NAMES) assert.ok(rows.includes(`\`${command}`), command);
    const options = textOf("commands").split("\n## Options\n")[1]!.split("\n## ")[0]!;
    for (const option of [...docs.OPTIONS, "--config"])
      assert.ok(options.includes(`\`${option}`), option);
  });
});

describe("the program shows the manual", () => {
  it("help lists the commands, then every topic with its summary", async (t) => {
    const stdout = outputOf(await ended(t, ["help"]));
    assert.match(stdout, /serve \[--config FILE\]/);
    const lines = stdout.split("\n").map((line) => line.trim().split(/ {2,}/));
    for (const { name, summary } of manual.topics())
      assert.ok(
        lines.some(([first, second]) => first === name && second === summary),
        name,
      );
  });

  it("the admin listener serves the list and the pages as Markdown", async (t) => {
    const { gateway } = await startGateway(t, demo());
    const admin = gateway.adminAddress();
    const list = await fetch(`${admin}/manual`);
    assert.equal(list.headers.get("content-type"), "text/markdown; charset=utf-8");
    const lines = (await list.text()).split("\n").filter((line) => line.startsWith("- "));
    assert.deepEqual(
      lines,
      manual.topics().map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}`),
    );
    for (const { name } of manual.topics()) {
      const response = await fetch(`${admin}/manual/${name}`);
      assert.equal(response.headers.get("content-type"), "text/markdown; charset=utf-8");
      assert.equal(await response.text(), textOf(name));
    }
    const unknown = await fetch(`${admin}/manual/nonsense`);
    assert.equal(unknown.status, 404);
    assert.equal(((await unknown.json()) as any).error.code, "unknown_url");
  });
});
