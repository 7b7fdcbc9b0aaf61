// What is drawn between the axes of a chart: columns that stand on each other, or lines. A bin that
// is incomplete is drawn pale; time of which nothing is known is shaded, not zero.
import { MARGIN } from "./axes.js";
import { h } from "./dom.js";

/** Pixels that the words in the shade need. */
const WORDS = 110;

/** Whether everything is known of a bin. `step`: its milliseconds. */
export const isWhole = (bin, step) => bin.seconds * 1000 >= step;

/** Where bins and values are, in pixels. */
export function scaleOf({ width, height, top }, count) {
  const bin = (width - MARGIN.left - MARGIN.right) / count;
  const room = height - MARGIN.top - MARGIN.bottom;
  return {
    bin,
    height: room,
    gap: bin > 5 ? 0.75 : 0.25,
    x: (at) => MARGIN.left + at * bin,
    y: (value) => MARGIN.top + room * (1 - Math.min(1, value / top)),
  };
}

/** The value of a series in each bin; null where there is none. */
const valuesOf = ({ of }, bins) => bins.map((bin) => (bin === null ? null : of(bin)));

function columnPath(scale, at, [low, high]) {
  const x = scale.x(at) + scale.gap;
  const y0 = scale.y(low);
  const width = scale.bin - 2 * scale.gap;
  return `M${x.toFixed(2)} ${y0.toFixed(1)}V${scale.y(high).toFixed(1)}h${width.toFixed(2)}V${y0.toFixed(1)}z`;
}

/** Two paths in the colour of a series: of whole bins, and of those that are not. */
function pathsOf(color, kind, { whole, partial }) {
  return h(
    "g",
    { class: color },
    h("path", { class: kind, d: whole || "M0 0" }),
    h("path", { class: `${kind} partial`, d: partial || "M0 0" }),
  );
}

export function columns(series, { bins, step }, scale) {
  const floors = bins.map(() => 0);
  return series.map((one) => {
    const paths = { whole: "", partial: "" };
    for (const [at, value] of valuesOf(one, bins).entries()) {
      if (!value) continue;
      const floor = floors[at];
      floors[at] += value;
      const name = isWhole(bins[at], step) ? "whole" : "partial";
      paths[name] += columnPath(scale, at, [floor, floors[at]]);
    }
    return pathsOf(one.color, "area", paths);
  });
}

/** Lines through the points of bins, broken where there is none. */
export function linePaths(points, isWholeAt) {
  const paths = { whole: "", partial: "" };
  for (const [at, point] of points.entries()) {
    if (point === null) continue;
    const before = points[at - 1] ?? null;
    // Also a point that stands alone is to be seen.
    if (!isWholeAt(at)) paths.partial += `M${before ?? point}L${point}h.01`;
    else if (before === null) paths.whole += `M${point}h.01`;
    else paths.whole += isWholeAt(at - 1) ? `L${point}` : `M${before}L${point}`;
  }
  return paths;
}

export function lines(series, { bins, step }, scale) {
  const place = (value, at) => {
    if (value === null) return null;
    return `${(scale.x(at) + scale.bin / 2).toFixed(1)} ${scale.y(value).toFixed(1)}`;
  };
  return series.map((one) => {
    const points = valuesOf(one, bins).map(place);
    const paths = linePaths(points, (at) => isWhole(bins[at], step));
    return pathsOf(one.color, one.dashed ? "line dashed" : "line", paths);
  });
}

/** The time before the first bin of which anything is known. */
export function shade({ bins }, scale) {
  const known = bins.findIndex((bin) => bin !== null);
  const end = known === -1 ? bins.length : known;
  if (end === 0) return null;
  const width = scale.x(end) - MARGIN.left;
  const { height } = scale;
  const middle = { x: MARGIN.left + width / 2, y: MARGIN.top + height / 2 + 4 };
  return h(
    "g",
    {},
    h("rect", { class: "unknown", x: MARGIN.left, y: MARGIN.top, width, height }),
    width > WORDS ? h("text", { ...middle, "text-anchor": "middle" }, "not running yet") : null,
  );
}

/** The line at the bin that is pointed at. */
export function cursorLine(at, scale) {
  const x = scale.x(at) + scale.bin / 2;
  const y = { y1: MARGIN.top, y2: MARGIN.top + scale.height };
  return h("line", { class: "cursor", x1: x, x2: x, ...y });
}

/** The highest value that is drawn, and the bin that has it; of columns that stand on each other. */
export function highest(series, kind, { bins }) {
  let found = { value: 0, bin: null };
  for (const bin of bins) {
    if (bin === null) continue;
    const values = series.map(({ of }) => of(bin) ?? 0);
    const sum = values.reduce((all, each) => all + each, 0);
    const value = kind === "columns" ? sum : Math.max(...values);
    if (value > found.value) found = { value, bin };
  }
  return found;
}
