// The manual's pages, as the gateway has them: #manual/TOPIC. The Markdown that they use becomes
// elements: headings, paragraphs, lists, tables, blocks of code, and within a line code, bold and
// links. A blank line parts the blocks.
import { $, h, link, table } from "./dom.js";
import { addView, ask, markCurrent } from "./views.js";

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
  // Pictures and files of the sources are not here.
  const href = target.replace(/^([a-z]+)\.md(#.*)?$/, "#manual/$1");
  return /^(#|https:)/.test(href) ? link(href, inline(label)) : inline(label);
}

/** A table's cells are parted by bars; one within a cell is written with a backslash. */
function tableOf(block) {
  const cells = (line) => line.split(/(?<!\\)\|/).slice(1, -1);
  const [names, , ...rows] = block.split("\n").map(cells);
  const textOf = (cell) => inline(cell.trim().replaceAll("\\|", "|"));
  const columns = names.map((name, at) => [textOf(name), (row) => textOf(row[at])]);
  const box = { class: "long", tabindex: 0, role: "group", "aria-label": "Table" };
  return h("div", box, table(columns, rows, ""));
}

/** The element of a block; `code` is the content of one of code. */
function elementOf([block, code]) {
  if (code !== undefined) return h("pre", { class: "code", tabindex: 0 }, code);
  if (block.startsWith("|")) return tableOf(block);
  const [, level] = /^(#+) /.exec(block) ?? [];
  if (level) return h(`h${level.length + 1}`, inline(block.slice(level.length + 1)));
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
  if (!response.ok) throw new Error("This page cannot be read.");
  return await response.text();
}

addView("manual", {
  async load({ id }) {
    const topics = [...(await getText("/manual")).matchAll(TOPIC)];
    const topic = id || topics[0][2];
    return { topics, topic, text: await getText(`/manual/${encodeURIComponent(topic)}`) };
  },
  draw({ topics, topic, text }) {
    const item = ([, title, name, summary]) =>
      h("li", h("a", { href: `#manual/${name}`, title: summary }, inline(title)));
    $("topics").replaceChildren(...topics.map(item));
    markCurrent($("topics"), `#manual/${topic}`);
    const blocks = text.replace(/<!--.*?-->\n/gs, "").matchAll(BLOCK);
    $("page").replaceChildren(...[...blocks].map(elementOf));
    window.scrollTo(0, 0);
  },
});
