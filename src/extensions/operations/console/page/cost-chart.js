// The chart of costs: a bar for each day of a span, of the dearest rows in colours of their own and
// of all others on top, with an axis in money. A day can be chosen.
import { MARGIN, roundUp, upwards } from "./axes.js";
import { h } from "./dom.js";
import { dayText, fromPico, money, toPico } from "./words.js";

const DAY_MS = 86_400_000;
const HEIGHT = 190;
/** The widest bar, in pixels. */
const WIDEST = 44;
/** Pixels that the name of a day needs. */
const LABEL = 56;

/** The colour of all others. */
const OTHERS = 6;

/** All days of a span. */
function daysIn(from, to) {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  const start = Date.parse(from);
  return Array.from({ length: count }, (_, at) =>
    new Date(start + at * DAY_MS).toISOString().slice(0, 10),
  );
}

const costs = (rows) => new Map(rows.map(({ day, cost }) => [day, toPico(cost)]));
const amountOf = (pico) => Number(fromPico(pico));

/** The boxes of one bar, from the ground. `own` are those with a colour, `total` all together. */
function boxes(place, { own, total }, top) {
  const room = HEIGHT - MARGIN.top - MARGIN.bottom;
  const rest = total - own.reduce((sum, pico) => sum + pico, 0n);
  let y = HEIGHT - MARGIN.bottom;
  return [...own, rest].map((pico, at) => {
    const height = (amountOf(pico) / top) * room;
    y -= height;
    if (height <= 0) return null;
    const color = at === own.length ? OTHERS : at;
    const box = { x: place.x, y, width: place.width, height, fill: "currentColor" };
    return h("g", { class: `c${own.length === 0 ? 0 : color}` }, h("rect", box));
  });
}

/** `parts`: by name, the rows by day of one name; `days`: those of all. `pick` chooses a day. */
export function costChart({ from, to, currency, names, parts, days, pick, width: whole }) {
  const totals = costs(days);
  const ownOf = parts.map(costs);
  const all = daysIn(from, to);
  const highest = Math.max(...[...totals.values()].map(amountOf), 0);
  const top = roundUp(highest);
  const left = MARGIN.left + 18; // amounts are longer than figures
  const step = (whole - left - MARGIN.right) / all.length;
  const width = Math.min(WIDEST, step * 0.74);
  const labelled = Math.ceil(LABEL / step);
  const bars = all.map((day, at) => {
    const total = totals.get(day) ?? 0n;
    const x = left + at * step + (step - width) / 2;
    const label =
      at % labelled === 0
        ? h("text", { x: x + width / 2, y: HEIGHT - 4, "text-anchor": "middle" }, day.slice(5))
        : null;
    if (total === 0n) return label;
    const text = `${dayText(day)}: ${money(fromPico(total), currency)}`;
    const own = ownOf.map((part) => part.get(day) ?? 0n);
    const onKey = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(day);
    };
    const bar = { class: "bar-of-day", role: "button", tabindex: 0, "data-focus": day };
    return [
      h(
        "g",
        { ...bar, "aria-label": text, click: () => pick(day), keydown: onKey },
        h("title", {}, text),
        boxes({ x, width }, { own, total }, top),
      ),
      label,
    ];
  });
  const area = {
    width: whole,
    height: HEIGHT,
    top,
    left,
    format: (value) => money(String(value), currency),
  };
  const viewBox = `0 0 ${whole} ${HEIGHT}`;
  const title = `Cost by day, at most ${money(String(highest), currency)} a day`;
  const legend = names.length === 0 ? [] : [...names, "all others"];
  return h(
    "div",
    {},
    h(
      "div",
      { class: "plot costs" },
      h("svg", { viewBox, role: "group", "aria-label": title }, upwards(area), bars),
    ),
    h(
      "ul",
      { class: "legend" },
      legend.map((name, at) =>
        h("li", {}, h("i", { class: `c${at === names.length ? OTHERS : at}` }), name),
      ),
    ),
  );
}
