// The axes of charts: round numbers upwards, round times of the day across.
import { h } from "./dom.js";
import { hourText } from "./words.js";

/** The room around a plot, in pixels: figures on the left, times below. */
export const MARGIN = { left: 46, right: 6, top: 8, bottom: 20 };

const MINUTE = 60_000;
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360].map((minutes) => minutes * MINUTE);
/** Pixels that a time on the axis needs. */
const LABEL = 64;

/** The next round number that is not below a value; half of it is round too. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 4, 6, 8, 10].find((each) => each * power >= value * 0.9999);
  return step * power;
}

/** Lines for zero, half and the top, with their figures. */
export function upwards({ width, height, top, format, left = MARGIN.left }) {
  const bottom = height - MARGIN.bottom;
  return [0, 0.5, 1].map((part) => {
    const y = bottom - part * (bottom - MARGIN.top);
    return h(
      "g",
      {},
      h("line", { class: "grid", x1: left, x2: width - MARGIN.right, y1: y, y2: y }),
      h("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, format(part * top)),
    );
  });
}

/** Times of the day between two moments, as many as there is room for. */
export function across({ width, height, from, to }) {
  const room = width - MARGIN.left - MARGIN.right;
  const most = Math.max(2, Math.floor(room / LABEL));
  const step = TICKS.find((each) => (to - from) / each <= most) ?? TICKS.at(-1);
  const offset = new Date(from).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const marks = [];
  for (let time = first; time <= to; time += step) {
    const x = MARGIN.left + ((time - from) / (to - from)) * room;
    if (x < MARGIN.left + 14 || x > width - 18) continue;
    marks.push(h("text", { x, y: height - 4, "text-anchor": "middle" }, hourText(time)));
  }
  return marks;
}
