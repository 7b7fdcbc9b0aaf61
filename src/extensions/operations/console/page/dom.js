// Elements: made of text and other elements only, so nothing from outside becomes markup.
import { number } from "./words.js";

export const $ = (id) => document.getElementById(id);

const SVG = new Set(["svg", "g", "rect", "title"]);

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
    else if (isThere(value)) element.setAttribute(name, value);
  }
  element.append(...content.flat(Infinity).filter(isThere));
  return element;
}

/**
 * Replaces what stands in an element, unless the user has marked text in it. A link or button that
 * had the focus has it again, if the same one is there.
 */
export function fill(element, ...children) {
  const selection = document.getSelection();
  if (!selection.isCollapsed && element.contains(selection.anchorNode)) return;
  const active = document.activeElement;
  const hadFocus = element.contains(active);
  element.replaceChildren(...children.flat(Infinity).filter(isThere));
  if (!hadFocus) return;
  const same = [...element.querySelectorAll("a, button")];
  same.find((other) => other.outerHTML === active.outerHTML)?.focus({ preventScroll: true });
}

/** Shows a text if it is another than before: a status line is read out only then. */
export function tell(element, text, tone) {
  if (element.textContent !== text) element.textContent = text;
  if (tone) element.dataset.tone = tone;
}

export const soft = (...children) => h("span", { class: "soft" }, children);

export const id = (text) => h("span", { class: "id" }, text);

export const link = (href, ...children) => h("a", { href }, ...children);

export const button = (text, click, attributes = {}) =>
  h("button", { type: "button", click, ...attributes }, text);

/** A state in a word and a colour: ok, warn, bad, idle. */
export const tone = ({ tone: name, text }) => h("span", { class: "tone", "data-tone": name }, text);

/** A part of 1, as a bar. */
export const meter = (value) => h("meter", { value, "aria-hidden": "true" });

/**
 * A table with a row for each item. A column is `[name, cell, kind]`: the cell is the name of a
 * member or a function of the item, and the kind is "n" for figures and "wide" for texts. On a
 * narrow screen rows are blocks.
 */
export function table(columns, items, empty) {
  if (items.length === 0) return h("p", { class: "empty" }, empty);
  const head = columns.map(([name, , kind]) => h("th", { scope: "col", class: kind }, name));
  const cellOf = (item, [name, cell, kind]) => {
    const value = typeof cell === "string" ? item[cell] : cell(item);
    const text = typeof value === "number" ? number(value) : (value ?? "–");
    return h("td", { class: kind, "data-name": name }, text);
  };
  const row = (item) =>
    h(
      "tr",
      columns.map((column) => cellOf(item, column)),
    );
  return h("table", h("thead", h("tr", head)), h("tbody", items.map(row)));
}
