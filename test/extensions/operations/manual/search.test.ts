// Search in the manual: which sections are found, in which order, what is shown of them, and that
// the command line and the admin listener return the same.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { manual } from "../../../../src/extensions/operations/manual/index.ts";
import { MAX_RESULTS, searchPages } from "../../../../src/extensions/operations/manual/search.ts";
import { assertFails, outputOf } from "../../../support/command.ts";
import { demo, startGateway } from "../../../support/gateway.ts";
import { runHere } from "../../../support/run-here.ts";

const PAGES = [
  {
    name: "alpha",
    text: [
      "# Alpha",
      "",
      "About the first letter.",
      "",
      "## Budgets of a key",
      "",
      "A key may spend `10` a day; see [Beta](beta.md#limits).",
      "",
      "```sh",
      "# Comment, no heading",
      "```",
    ].join("\n"),
  },
  {
    name: "beta",
    text: "# Beta\n\nAbout limits.\n\n## Limits\n\n| Field | Meaning |\n|---|---|\n| `key` | **its** budget |",
  },
];
const found = (words: string) =>
  searchPages(PAGES, words).map(({ name, section }) => `${name}: ${section}`);
const excerpts = (words: string) => searchPages(PAGES, words).map(({ excerpt }) => excerpt);

describe("searchPages", () => {
  const BUDGETS = "alpha: Budgets of a key";
  const others = Array.from({ length: 20 }, (_, at) => `word-${at}`).join(" ");

  for (const [situation, words, expected] of [
    ["all words, whatever their case and order", "KEY day", [BUDGETS]],
    ["all words, in another order", "day key", [BUDGETS]],
    ["most of the words, if no section has all", "key month day", [BUDGETS]],
    ["none of the words", "month", []],
    ["no words", "  ", []],
    ["one word many times", "key ".repeat(5_000), [BUDGETS, "beta: Limits"]],
    ["a word after twenty others, which is not looked for", `${others} key`, []],
    ["words of the title of the page too", "alpha spend", [BUDGETS]],
    ["a word in the heading, first", "limits", ["beta: Limits", "beta: Beta"]],
    ["a word in a longer one of the heading", "budget", [BUDGETS, "beta: Limits"]],
    ["a comment in a code block, which is not a heading", "comment", [BUDGETS]],
  ] as const)
    it(`finds the sections with ${situation}`, () => assert.deepEqual(found(words), expected));

  it("shows the line with the most search words, without Markdown syntax", () => {
    assert.deepEqual(excerpts("spend day"), ["A key may spend 10 a day; see Beta."]);
    assert.deepEqual(excerpts("its budget"), ["key  its budget"]);
  });

  it("cuts a long line around the first word", () => {
    const text = `# Long\n\n${"before ".repeat(40)}needle${" after".repeat(40)}`;
    const [{ excerpt = "" } = {}] = searchPages([{ name: "long", text }], "needle");
    assert.match(excerpt, /^….*needle.*…$/);
    assert.ok(excerpt.length < 120, excerpt);
  });

  it("returns a bounded number of sections", () => {
    const pages = Array.from({ length: 50 }, (_, at) => ({ name: `p${at}`, text: "# A\n\nword" }));
    assert.equal(searchPages(pages, "word").length, MAX_RESULTS);
  });
});

describe("help --search", () => {
  it("prints the page and the section of each result, with or without quotes", async () => {
    const results = manual.search("point of no return");
    assert.equal(results[0]?.section, "The point of no return");
    for (const words of [["point of no return"], ["point", "of", "no", "return"]]) {
      const stdout = outputOf(await runHere(["help", "--search", ...words]));
      for (const { name, section, excerpt } of results)
        assert.ok(stdout.includes(`${name}: ${section}\n    ${excerpt}\n`), stdout);
    }
  });

  for (const [args, message] of [
    [["help", "--search", "nosuchword"], /no section of the manual has .*"nosuchword"/],
    [["help", "--search"], /--search/],
    [["serve", "--search", "key"], /Unknown option '--search'/],
  ] as const)
    it(`is an error for: ${args.join(" ")}`, async () => {
      const end = await runHere(args);
      assertFails(end, 2, message);
    });
});

it("GET /manual?search=WORDS returns Markdown with links and excerpts, and rejects unknown parameters", async (t) => {
  const { gateway } = await startGateway(t, demo());
  const ask = (query: string) => fetch(`${gateway.adminAddress()}/manual?${query}`);
  const found = await ask("search=point%20of%20no%20return");
  assert.equal(found.headers.get("content-type"), "text/markdown; charset=utf-8");
  assert.match(
    await found.text(),
    /^# Search\n\n- \[Routing: The point of no return\]\(routing\.md#the-point-of-no-return\): \S/,
  );
  const none = await (await ask("search=nosuchword")).text();
  assert.match(none, /^# Search\n\nNo section [^\n]*\n$/);
  for (const query of ["search=", "find=key"]) assert.equal((await ask(query)).status, 400);
});
