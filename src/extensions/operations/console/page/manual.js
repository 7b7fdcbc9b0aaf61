// The view Manual. #manual/TOPIC shows a page, #manual/TOPIC?section=ANCHOR a section of it, and
// #manual?search=WORDS the results of a search, which are Markdown too. Renders the subset of
// Markdown that the manual uses: headings, paragraphs, lists, tables and blocks of code, separated
// by blank lines; within a line code, bold and links.
import { $, h, link, table } from "./dom.js";
import { addView, ask, markCurrent, withQuery } from "./views.js";

const TOPIC = /^- \[(.+)\]\((.+)\.md\): (.*)$/gm;
const BLOCK = /^```.*\n([\s\S]*?)\n```$|^.+(?:\n.+)*/gm;
const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|!?\[[^\]]+\]\([^)\s]+\))/;

/** The text of a line as elements. */
const inline = (text) => text.split(INLINE).map(inlineElement);

function inlineElement(text) {
  if (/^`.+`$/s.test(text)) return h("code", text.slice(1, -1));
  if (text.startsWith("**")) return h("strong", inline(text.slice(2, -2)));
  const [, label, target] = /^!?\[(.+)\]\((.+)\)$/s.exec(text) ?? [];
  if (label === undefined) return text;
  // The gateway serves no pictures or source files: show only the labels of links to these.
  const href = target
    .replace(/^([a-z]+)\.md#(.+)$/, "#manual/$1?section=$2")
    .replace(/^([a-z]+)\.md$/, "#manual/$1");
  return /^(#|https:)/.test(href) ? link(href, inline(label)) : inline(label);
}

/** Bars separate the cells of a table; a bar within a cell has a backslash before it. */
function tableOf(block) {
  const cells = (line) => line.split(/(?<!\\)\|/).slice(1, -1);
  const [names, , ...rows] = block.split("\n").map(cells);
  const textOf = (cell) => inline(cell.trim().replaceAll("\\|", "|"));
  const columns = names.map((name, at) => [textOf(name), (row) => textOf(row[at])]);
  const box = { class: "long", tabindex: 0, role: "group", "aria-label": "Table" };
  return h("div", box, table(columns, rows, ""));
}

/** The anchor of a heading, as the gateway and viewers of Markdown make it. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

function headingOf(level, text) {
  const id = `section-${anchorOf(text)}`;
  return h(`h${level + 1}`, { id }, inline(text));
}

/** The element of a block. `code`: the content, if it is a block of code. */
function elementOf([block, code]) {
  if (code !== undefined) return h("pre", { class: "code", tabindex: 0 }, code);
  if (block.startsWith("|")) return tableOf(block);
  const [, level] = /^(#+) /.exec(block) ?? [];
  if (level) return headingOf(level.length, block.slice(level.length + 1));
  const item = /^(?:-|\d+\.) /m;
  if (block.search(item) !== 0) return h("p", inline(block.replaceAll("\n", " ")));
  const items = block.split(new RegExp(item, "m")).slice(1);
  return h(
    block.startsWith("-") ? "ul" : "ol",
    items.map((text) => h("li", inline(text.replaceAll(/\s+/g, " ")))),
  );
}

async function getText(path) {
  const response = await ask(path);
  if (!response.ok) throw new Error("The gateway cannot read this page.");
  return await response.text();
}

addView("manual", {
  async load({ id, query: { search } }) {
    const topics = [...(await getText("/manual")).matchAll(TOPIC)];
    const topic = id || (search ? "" : topics[0][2]);
    const path = topic ? `/manual/${encodeURIComponent(topic)}` : withQuery("/manual", { search });
    return { topics, topic, text: await getText(path) };
  },
  draw({ topics, topic, text }, { query: { section } }) {
    const item = ([, title, name, summary]) =>
      h("li", h("a", { href: `#manual/${name}`, title: summary }, inline(title)));
    $("topics").replaceChildren(...topics.map(item));
    markCurrent($("topics"), `#manual/${topic}`);
    const blocks = text.replace(/<!--.*?-->\n/gs, "").matchAll(BLOCK);
    $("page").replaceChildren(...[...blocks].map(elementOf));
    const heading = document.getElementById(`section-${section}`);
    if (heading) heading.scrollIntoView();
    else window.scrollTo(0, 0);
  },
});
