// Makes elements from text and other elements only, so text from outside never becomes markup.
import { number } from "./words.js";

export const $ = (id) => document.getElementById(id);

const SVG = new Set(["svg", "g", "rect", "title"]);

const isPresent = (value) => value !== null && value !== undefined && value !== false;

/**
 * Makes an element. After the tag: optionally an object of attributes, in which functions are event
 * listeners; then children: texts, elements, or lists of these. Skips null, undefined and false.
 */
export function h(tag, ...content) {
  const attributes = content[0]?.constructor === Object ? content.shift() : {};
  const element = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (isPresent(value)) element.setAttribute(name, value);
  }
  element.append(...content.flat(Infinity).filter(isPresent));
  return element;
}

/**
 * Replaces the children of an element, unless the user has selected text in it. If a link or button
 * in it had the focus, an identical new one gets it.
 */
export function fill(element, ...children) {
  const selection = document.getSelection();
  if (!selection.isCollapsed && element.contains(selection.anchorNode)) return;
  const active = document.activeElement;
  const hadFocus = element.contains(active);
  element.replaceChildren(...children.flat(Infinity).filter(isPresent));
  if (!hadFocus) return;
  const candidates = [...element.querySelectorAll("a, button")];
  candidates.find((other) => other.outerHTML === active.outerHTML)?.focus({ preventScroll: true });
}

/** Sets a text only if it changes, because screen readers announce each change of a status line. */
export function tell(element, text, tone) {
  if (element.textContent !== text) element.textContent = text;
  if (tone) element.dataset.tone = tone;
}

export const soft = (...children) => h("span", { class: "soft" }, children);

export const id = (text) => h("span", { class: "id" }, text);

export const link = (href, ...children) => h("a", { href }, ...children);

export const button = (text, click, attributes = {}) =>
  h("button", { type: "button", click, ...attributes }, text);

/** A text in the colour of a tone: ok, warn, bad, idle. */
export const tone = ({ tone: name, text }) => h("span", { class: "tone", "data-tone": name }, text);

/** A value from 0 to 1, as a bar. */
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
