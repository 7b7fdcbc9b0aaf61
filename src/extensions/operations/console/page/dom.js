// Elements: made of text and other elements only, so nothing that comes from outside becomes markup.
import { number } from "./words.js";

export const $ = (id) => document.getElementById(id);

/** Whether the screen is as narrow as a phone's: lists are shorter there. */
export const isNarrow = () => matchMedia("(max-width: 44rem)").matches;

const SVG = new Set(["svg", "path", "rect", "line"]);

const isThere = (value) => value !== null && value !== undefined && value !== false;

/**
 * An element. What follows the tag may be an object of attributes: a function is a listener. Then
 * come children: text or elements, also in lists. Null, undefined and false are left out of both.
 */
export function h(tag, ...content) {
  const attributes = content[0]?.constructor === Object ? content.shift() : {};
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (isThere(value)) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...content.flat(Infinity).filter(isThere));
  return element;
}

/** Whether the user has marked text in an element: it must not be replaced meanwhile. */
function hasSelection(element) {
  const selection = document.getSelection();
  return !selection.isCollapsed && element.contains(selection.anchorNode);
}

/** Unmarks text: what was marked belongs to something that is no longer shown. */
export function clearSelection() {
  const selection = document.getSelection();
  // What is marked in a field is none of this.
  if (!selection.isCollapsed) selection.removeAllRanges();
}

/**
 * Replaces what stands in an element. Whatever had the focus has it again, if it has the same
 * data-focus as before.
 */
export function fill(element, ...children) {
  if (hasSelection(element)) return;
  const active = document.activeElement;
  const focus = element.contains(active) ? active.dataset.focus : undefined;
  element.replaceChildren(...children.flat(Infinity).filter(isThere));
  if (focus === undefined) return;
  const same = [...element.querySelectorAll("[data-focus]")];
  same.find((other) => other.dataset.focus === focus)?.focus({ preventScroll: true });
}

/** Shows a text if it is another than before: a status line is read out only then. */
export function tell(element, text, tone) {
  if (element.textContent !== text) element.textContent = text;
  if (tone !== undefined) element.dataset.tone = tone;
}

export const soft = (...children) => h("span", { class: "soft" }, children);

export const link = (href, ...children) => h("a", { href, "data-focus": href }, ...children);

export const button = (text, click, attributes = {}) =>
  h("button", { type: "button", "data-focus": text, click, ...attributes }, text);

export const options = (values) => values.map((value) => h("option", { value }, value));

/** Copies a text. Resolves with whether the browser allows that. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A state in a word and a colour: ok, warn, bad, idle. */
export const tone = ({ tone: name, text }) => h("span", { class: "tone", "data-tone": name }, text);

/** A part of 1, as a bar. */
export const meter = (value) => h("meter", { value, "aria-hidden": "true" });

/** A table of more columns than these folds also on a screen that is not so narrow. */
const MANY_COLUMNS = 7;

/** A column of figures. */
export const numeric = (name, of) => ({ name, kind: "n", of });

/**
 * A table with a row for each item. Columns: `{ name, kind, of }`, of which the kind is "n" for
 * figures and "wide" for texts, and `of(item)` is the content of a cell. It folds into blocks on a
 * narrow screen.
 */
export function table(columns, items, empty) {
  if (items.length === 0) return h("p", { class: "empty" }, empty);
  // A column of buttons has no name.
  const head = columns.map(({ name, kind }) =>
    name === "" ? h("td") : h("th", { scope: "col", class: kind }, name),
  );
  const row = (item) =>
    columns.map(({ name, kind, of }) =>
      h("td", { class: kind, "data-name": name || null }, of(item)),
    );
  return h(
    "table",
    { class: columns.length > MANY_COLUMNS ? "fold big" : "fold" },
    h("thead", h("tr", head)),
    h(
      "tbody",
      items.map((item) => h("tr", row(item))),
    ),
  );
}

const whole = new Set(); // ids of the elements of which all items are wanted

/** Shows what `draw` makes of the first items, and a button for the others. */
export function fillFirst(id, items, draw) {
  const few = isNarrow() ? 3 : 10;
  const isWhole = whole.has(id) || items.length <= few;
  const showAll = () => {
    whole.add(id);
    fillFirst(id, items, draw);
  };
  const more = () => h("p", { class: "more" }, button(`Show all ${number(items.length)}`, showAll));
  fill($(id), draw(isWhole ? items : items.slice(0, few)), isWhole ? null : more());
}

/** Items of a page. */
export const pageSize = () => (isNarrow() ? 10 : 25);

/** The page that is shown of `count` items, with buttons for its neighbours; null if it is all. */
export function pager(page, count, go) {
  const pages = Math.ceil(count / pageSize());
  if (pages < 2) return null;
  const turn = (step) => {
    clearSelection();
    go(page + step);
  };
  return h(
    "p",
    { class: "pager" },
    soft(`page ${number(page + 1)} of ${number(pages)}`),
    button("Newer", () => turn(-1), { disabled: page === 0 }),
    button("Older", () => turn(1), { disabled: page + 1 >= pages }),
  );
}
