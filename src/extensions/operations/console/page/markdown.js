// The Markdown that the manual uses, as elements: headings, paragraphs, lists, tables, blocks of
// code, and within a line code, bold and links.
import { h, table } from "./dom.js";

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|!?\[([^\]]+)\]\(([^)\s]+)\)/g;
const ITEM = /^(-|\d+\.) /;

/** A table's cells are parted by bars; one within a cell is written with a backslash. */
const cellsOf = (line) => {
  const cells = line.split(/(?<!\\)\|/).slice(1, -1);
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
};

/** The text of a line as elements. */
export function inline(text) {
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, label, target] = match;
    parts.push(text.slice(end, match.index));
    end = match.index + whole.length;
    if (code !== undefined) parts.push(h("code", code));
    else if (bold !== undefined) parts.push(h("strong", inline(bold)));
    else if (whole.startsWith("!")) parts.push(label);
    else parts.push(linked(label, target));
  }
  return [...parts, text.slice(end)];
}

/** A link to another page of the manual or to a site; a file of the sources is not here. */
function linked(label, target) {
  const topic = /^([a-z]+)\.md(#.*)?$/.exec(target)?.[1];
  if (topic !== undefined) return h("a", { href: `#manual/${topic}` }, inline(label));
  if (target.startsWith("https://"))
    return h("a", { href: target, rel: "noreferrer" }, inline(label));
  return h("span", inline(label));
}

function tableOf(lines) {
  const [names, , ...rows] = lines.map(cellsOf);
  const columns = names.map((name, at) => ({ name: inline(name), of: (row) => inline(row[at]) }));
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" },
    table(columns, rows, ""),
  );
}

function listOf(lines) {
  const items = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items.push(`${items.pop()} ${line.trim()}`);
  }
  return h(
    lines[0].startsWith("-") ? "ul" : "ol",
    items.map((item) => h("li", inline(item))),
  );
}

const endsParagraph = (line) => line.trim() === "" || /^(#|\||```)/.test(line) || ITEM.test(line);

/** The elements of a page. */
export function elementsOf(text) {
  const lines = text.replace(/<!--.*?-->\n/gs, "").split("\n");
  const elements = [];
  /** Takes the lines up to the first that does not belong to what `line` begins. */
  const take = (line, belongs) => {
    const taken = [line];
    while (lines.length > 0 && belongs(lines[0])) taken.push(lines.shift());
    return taken;
  };
  while (lines.length > 0) {
    const line = lines.shift();
    if (line.startsWith("```")) {
      const code = take("", (next) => next !== "```").slice(1);
      lines.shift();
      elements.push(h("pre", { class: "code", tabindex: 0 }, code.join("\n")));
    } else if (/^#{1,3} /.test(line)) {
      const level = line.indexOf(" ");
      elements.push(h(`h${level + 1}`, inline(line.slice(level + 1))));
    } else if (line.startsWith("|")) {
      elements.push(tableOf(take(line, (next) => next.startsWith("|"))));
    } else if (ITEM.test(line)) {
      elements.push(listOf(take(line, (next) => ITEM.test(next) || next.startsWith("  "))));
    } else if (line.trim() !== "") {
      const paragraph = take(line, (next) => !endsParagraph(next));
      elements.push(h("p", inline(paragraph.join(" "))));
    }
  }
  return elements;
}
