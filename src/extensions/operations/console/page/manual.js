// The manual's pages, as the gateway has them: #manual/TOPIC. The Markdown that they use becomes
// elements: headings, paragraphs, lists, tables, blocks of code, and within a line code, bold and
// links. A blank line parts the blocks.
import { $, h, table } from "./dom.js";
import { addView, ask, markCurrent } from "./views.js";

const TOPIC = /^- \[(.+)\]\((.+)\.md\): (.*)$/gm;
const BLOCK = /^```.*\n([\s\S]*?)\n```$|^.+(?:\n.+)*/gm;
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|!?\[([^\]]+)\]\(([^)\s]+)\)/g;

/** A link to another page of the manual or to a site; pictures and other files are not here. */
function linked(label, target) {
  const topic = /^([a-z]+)\.md(#.*)?$/.exec(target)?.[1];
  if (topic) return h("a", { href: `#manual/${topic}` }, inline(label));
  const isSite = target.startsWith("https://");
  return isSite ? h("a", { href: target, rel: "noreferrer" }, inline(label)) : inline(label);
}

/** The text of a line as elements. */
function inline(text) {
  const parts = [];
  let end = 0;
  for (const { 0: whole, 1: code, 2: bold, 3: label, 4: target, index } of text.matchAll(INLINE)) {
    parts.push(text.slice(end, index));
    end = index + whole.length;
    if (code) parts.push(h("code", code));
    else if (bold) parts.push(h("strong", inline(bold)));
    else parts.push(linked(label, target));
  }
  return [...parts, text.slice(end)];
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
