// A chart of a range of time, with the reading of the bin that is pointed at, or chosen by the arrow
// keys.
import { across, MARGIN, roundUp, upwards } from "./axes.js";
import { h, isNarrow } from "./dom.js";
import { columns, cursorLine, highest, isWhole, lines, scaleOf, shade } from "./plots.js";
import { secondText } from "./words.js";

const HEIGHT = 168;
/** On a phone six charts stand one below the other. */
const NARROW_HEIGHT = 128;

/** The bin that a key leads to; undefined for other keys. `from` is the one of now. */
const KEYS = {
  ArrowLeft: (from) => Math.max(0, from - 1),
  ArrowRight: (from, last) => Math.min(last, from + 1),
  Home: () => 0,
  End: (_, last) => last,
  Escape: () => null,
};

/** The times of a bin in words. `range` as GET /history has it. */
function binText({ bins, from, step }, at) {
  const start = from + at * step;
  const bin = bins[at];
  const times = `${secondText(start)} to ${secondText(start + step)}`;
  if (bin === null) return `${times}: nothing is known`;
  return isWhole(bin, step) ? times : `${times}, incomplete: ${bin.seconds} s of it`;
}

/** The bin under the pointer; null beside the plot. */
function binAt(event, plot, count) {
  const { left, width } = plot.getBoundingClientRect();
  const room = width - MARGIN.left - MARGIN.right;
  const at = Math.floor(((event.clientX - left - MARGIN.left) / room) * count);
  return at >= 0 && at < count ? at : null;
}

/** The plot of a range. `cursor` is the bin that is pointed at, null for none. */
function drawing({ series, kind, format }, range, { width, cursor }) {
  const { bins, from, step } = range;
  const to = from + bins.length * step;
  const top = roundUp(highest(series, kind, range).value);
  const height = isNarrow() ? NARROW_HEIGHT : HEIGHT;
  const area = { width, height, top, from, to, format };
  const scale = scaleOf(area, bins.length);
  const draw = kind === "columns" ? columns : lines;
  return h(
    "svg",
    { height, "aria-hidden": "true" },
    shade(range, scale),
    upwards(area),
    across(area),
    draw(series, range, scale),
    cursor === null ? null : cursorLine(cursor, scale),
  );
}

/**
 * `series`: `{ name, color, of, rare }`, of which `of(bin)` is the value of a bin, null for none; one
 * that is rare is in the legend only of a range that has any of it. `kind`:
 * "columns" or "lines". `format` makes a value a text; `figure` has the range's figure and its unit.
 */
export function createChart(options) {
  const { title, series, kind, format, figure } = options;
  const shown = h("p", { class: "figure" });
  const plot = h("div", { class: "plot", role: "slider", tabindex: 0, "aria-label": title });
  const legend = h("ul", { class: "legend" });
  const reading = h("p", { class: "reading" });
  let range = null;
  let cursor = null;

  function draw() {
    const width = plot.clientWidth;
    if (!range || width === 0) return;
    plot.replaceChildren(drawing(options, range, { width, cursor }));
    read();
  }

  function read() {
    const bin = cursor === null ? null : range.bins[cursor];
    const value = ({ of }) => (bin ? h("b", {}, format(of(bin))) : null);
    const item = (one) => h("li", {}, h("i", { class: one.color }), one.name, value(one));
    const named = series.filter((one) => !one.rare || isThere(one));
    legend.replaceChildren(...named.map(item));
    reading.textContent = cursor === null ? peakText() : binText(range, cursor);
    const values = bin ? named.map(({ name, of }) => `, ${name} ${format(of(bin))}`) : [];
    const last = range.bins.length - 1;
    plot.setAttribute("aria-valuemin", 0);
    plot.setAttribute("aria-valuemax", last);
    plot.setAttribute("aria-valuenow", cursor ?? last);
    plot.setAttribute("aria-valuetext", `${reading.textContent}${values.join("")}`);
  }

  const isThere = ({ of }) => range.bins.some((bin) => bin !== null && of(bin) > 0);

  function peakText() {
    const { value, bin } = highest(series, kind, range);
    return bin === null ? "nothing yet" : `highest ${format(value)} at ${secondText(bin.at)}`;
  }

  function choose(at) {
    if (!range || at === cursor) return;
    cursor = at;
    draw();
  }

  function onKey(event) {
    const last = range ? range.bins.length - 1 : 0;
    const target = KEYS[event.key]?.(cursor ?? last + 1, last);
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
  }

  const onPointer = (event) => choose(range ? binAt(event, plot, range.bins.length) : null);
  plot.addEventListener("pointermove", onPointer);
  plot.addEventListener("pointerdown", onPointer);
  plot.addEventListener("pointerleave", () => choose(null));
  plot.addEventListener("blur", () => choose(null));
  plot.addEventListener("keydown", onKey);
  new ResizeObserver(draw).observe(plot);

  return {
    element: h("div", { class: "card chart" }, h("h2", {}, title), shown, plot, legend, reading),
    /** Shows a range as GET /history has it. */
    update(next) {
      range = next;
      const [text, unit] = figure(range);
      shown.replaceChildren(text, h("small", {}, unit));
      draw();
    },
  };
}
