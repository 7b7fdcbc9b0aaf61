// Elements: made of text and other elements only, so nothing that comes from outside becomes markup.

export const $ = (id) => document.getElementById(id);

/** Whether the screen is as narrow as a phone's: lists are shorter there. */
export const isNarrow = () => matchMedia("(max-width: 44rem)").matches;

const SVG = new Set(["svg", "g", "rect", "path", "text", "line", "title"]);

/**
 * An element. Attributes by name: a function is a listener, null and false leave the attribute out.
 * Children are text or elements, also in lists; null and undefined are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false && value !== undefined)
      element.setAttribute(name, value === true ? "" : value);
  }
  const isThere = (child) => child !== null && child !== undefined;
  element.append(...children.flat(Infinity).filter(isThere));
  return element;
}

/** Whether the user has marked text in an element: it must not be replaced meanwhile. */
function hasSelection(element) {
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && element.contains(selection.anchorNode));
}

/** Unmarks text: what was marked belongs to something that is no longer shown. */
export function clearSelection() {
  const selection = document.getSelection();
  // What is marked in a field is none of this.
  if (selection && !selection.isCollapsed) selection.removeAllRanges();
}

/**
 * Replaces what stands in an element. Whatever had the focus has it again, if it has the same
 * data-focus as before.
 */
export function fill(element, ...children) {
  if (hasSelection(element)) return;
  const active = document.activeElement;
  const focus = element.contains(active) ? active.dataset.focus : undefined;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (focus === undefined) return;
  const same = [...element.querySelectorAll("[data-focus]")];
  same.find((other) => other.dataset.focus === focus)?.focus({ preventScroll: true });
}

/** Shows a text if it is another than before: a status line is read out only then. */
export function tell(element, text, tone) {
  if (element.textContent !== text) element.textContent = text;
  if (tone !== undefined) element.dataset.tone = tone;
}

export const link = (href, ...children) => h("a", { href, "data-focus": href }, ...children);

/** A button that does something. `focus` tells it apart from others of the same list. */
export const button = (text, click, { focus = text, ...attributes } = {}) =>
  h("button", { type: "button", "data-focus": focus, click, ...attributes }, text);

/** A state in a word and a colour: ok, warn, bad, idle. */
export const tone = (name, ...children) =>
  h("span", { class: "tone", "data-tone": name }, children);

/** A table of more columns than these folds also on a screen that is not so narrow. */
const MANY_COLUMNS = 7;

/**
 * A table. Columns: `{ name, kind }`, of which the kind is "n" for figures, "wide" for texts. It
 * folds into blocks on a narrow screen.
 */
export function table(columns, rows, empty) {
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  // A column of buttons has no name.
  const title = ({ name, kind }) =>
    name === "" ? h("td") : h("th", { scope: "col", class: kind }, name);
  const head = columns.map(title);
  const cell = (content, at) =>
    h("td", { class: columns[at].kind, "data-name": at === 0 ? null : columns[at].name }, content);
  return h(
    "table",
    { class: columns.length > MANY_COLUMNS ? "fold big" : "fold" },
    h("thead", {}, h("tr", {}, head)),
    h(
      "tbody",
      {},
      rows.map((row) => h("tr", {}, row.map(cell))),
    ),
  );
}

/** A wide table that scrolls by itself, with a name for those who do not see it. */
export const scrolled = (name, content) =>
  h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, content);

/** A part of 1, as a bar. */
export function meter(part) {
  const filling = h("i");
  filling.style.width = `${Math.round(100 * Math.min(1, Math.max(0, part)))}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, filling);
}
