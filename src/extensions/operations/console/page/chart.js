// The one chart of the page: columns that stand on each other, or lines, over bins of time. A slider
// lies on it: the pointer or the arrow keys choose a bin, whose values are then told in words. Where
// nothing is known it is shaded, not zero.
import { h } from "./dom.js";

/** The drawing is so high, and a bin is one wide: the browser stretches it. */
const HEIGHT = 100;

/** The next round number that is not below a value; half of it is round too. */
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 4, 6, 8, 10].find((step) => step * power >= value * 0.9999);
}

const valuesOf = ({ of }, bins) => bins.map((bin) => (bin === null ? null : of(bin)));

const heightOf = (value, top) => (HEIGHT * (1 - value / top)).toFixed(2);

/** Columns of one series, which stand on `floors`, and raise them. */
function columnPath(values, floors, top) {
  let path = "";
  for (const [at, value] of values.entries()) {
    if (!value) continue;
    path += `M${at + 0.5} ${heightOf(floors[at], top)}`;
    floors[at] += value;
    path += `V${heightOf(floors[at], top)}`;
  }
  return path;
}

/** A line, broken where there is no value. A point that stands alone is to be seen too. */
function linePath(values, top) {
  const point = (value, at) => {
    if (value === null) return "";
    const sign = (values[at - 1] ?? null) === null ? "M" : "L";
    return `${sign}${at + 0.5} ${heightOf(value, top)}h.001`;
  };
  return values.map(point).join("");
}

function drawing({ bins, series }, kind, { top, at }) {
  const known = bins.findIndex((bin) => bin !== null);
  const unknown = known === -1 ? bins.length : known;
  const floors = bins.map(() => 0);
  const path = (one) => {
    const values = valuesOf(one, bins);
    const d = kind === "columns" ? columnPath(values, floors, top) : linePath(values, top);
    return h("path", { class: `${kind} ${one.color}`, d });
  };
  const x = at + 0.5;
  return h(
    "svg",
    { viewBox: `0 0 ${bins.length} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { class: "unknown", width: unknown, height: HEIGHT }),
    series.map(path),
    at < bins.length && h("line", { class: "cursor", x1: x, x2: x, y1: 0, y2: HEIGHT }),
  );
}

/** How high each bin is. Columns stand on each other. */
function heightsOf({ bins, series }, kind) {
  const heights = bins.map((bin) => {
    const values = bin === null ? [0] : series.map(({ of }) => of(bin) ?? 0);
    return kind === "columns" ? values.reduce((sum, value) => sum + value) : Math.max(...values);
  });
  return heights;
}

/**
 * `kind`: "columns" or "lines"; `format` makes a value a text; `pick(at)`, if there is one, is called
 * with the bin that is clicked.
 */
export function createChart({ title, kind, format, pick }) {
  const slider = h("input", { type: "range", min: 0, max: 0, "aria-label": title });
  const plot = h("div", { class: "plot" }, slider);
  const scale = h("p", { class: "scale" });
  const ends = h("p", { class: "ends" });
  const legend = h("ul", { class: "legend" });
  const reading = h("p", { class: "reading" });
  let data = null;

  /** Chooses a bin. The place after the last one is none. */
  function choose(at) {
    slider.value = at;
    draw();
  }

  function draw() {
    if (data === null) return;
    const { bins, series, textOf } = data;
    const heights = heightsOf(data, kind);
    const highest = Math.max(0, ...heights);
    const top = roundUp(highest);
    const at = Number(slider.value);
    const bin = bins[at] ?? null;
    const peak = heights.indexOf(highest);
    const summary = highest > 0 ? `highest ${format(highest)}, ${textOf(peak)}` : "nothing yet";
    const whole = kind === "columns" && bin !== null ? `: ${format(heights[at])}` : "";
    const values = bin === null ? [] : series.map(({ of }) => format(of(bin)));
    // The slider stays where it is: it would lose the focus.
    slider.previousSibling?.remove();
    slider.before(drawing(data, kind, { top, at }));
    scale.replaceChildren(...[top, top / 2, 0].map((value) => h("span", format(value))));
    legend.replaceChildren(
      ...series.map(({ name, color }, index) =>
        h("li", h("i", { class: color }), name, values[index] && h("b", values[index])),
      ),
    );
    reading.textContent = at < bins.length ? textOf(at) + whole : summary;
    const told = values.map((value, index) => `, ${series[index].name} ${value}`);
    slider.setAttribute("aria-valuetext", reading.textContent + told.join(""));
  }

  const pointed = ({ clientX }) => {
    const { left, width } = plot.getBoundingClientRect();
    return Math.floor((Number(slider.max) * (clientX - left)) / width);
  };
  const leave = () => choose(slider.max);
  slider.addEventListener("pointermove", (event) => choose(pointed(event)));
  slider.addEventListener("pointerleave", leave);
  slider.addEventListener("blur", leave);
  slider.addEventListener("input", draw);
  if (pick) {
    slider.addEventListener("click", (event) => pick(pointed(event)));
    slider.addEventListener("keydown", ({ key }) => {
      if (key === "Enter" && slider.value !== slider.max) pick(Number(slider.value));
    });
  }

  return {
    element: h("div", { class: "framed" }, scale, plot, ends, legend, reading),
    /**
     * Shows `bins`, of which null is one of which nothing is known; `series`: `{ name, color, of }`,
     * of which `of(bin)` is the value of a bin, null for none; `textOf(at)` names a bin, and `marks`
     * are the texts below.
     */
    update(next) {
      const isChosen = slider.value !== slider.max;
      data = next;
      slider.max = data.bins.length;
      if (!isChosen) slider.value = slider.max;
      ends.replaceChildren(...data.marks.map((mark) => h("span", mark)));
      draw();
    },
  };
}
