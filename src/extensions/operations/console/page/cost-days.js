// The fields for the first and the last day of Costs. A field of a date has a value after each digit
// that is typed, so what is typed counts when both fields are left, or at Enter.
import { $ } from "./dom.js";

const DAYS = ["from", "to"];
const fields = DAYS.map((name) => $("cost-filters").elements[name]);

let isTyped = false; // by keys, since a field was gone to or clicked
let isChanged = false; // and not yet applied
let held = {}; // the days that hold

/** A whole date from the year 2000 on. A year of which two digits are typed is 0020. */
const isDay = (text) => /^[2-9]\d{3}-\d\d-\d\d$/.test(text);

/** Shows the days that hold, but not to somebody who is changing them. */
export function drawDays(query) {
  held = query;
  if (isChanged) return;
  for (const field of fields) {
    const value = query[field.name];
    if (field.value !== value) field.value = value;
  }
}

/** Forgets what is typed: the address says other days. */
export function forgetDays() {
  isChanged = false;
  isTyped = false;
}

/** Calls `apply` with the first and the last day whenever somebody has chosen both. */
export function onDays(apply) {
  const values = () => fields.map(({ value }) => value);

  /** Days in the wrong order are the span between them. */
  function take() {
    const [from, to] = values().sort();
    if (!isChanged || !isDay(from) || !isDay(to)) return;
    forgetDays();
    apply({ from, to });
  }

  /** One that is picked in a calendar counts at once, if the other day need not follow first. */
  function onChange() {
    const [from, to] = values();
    if (!isTyped && from <= to) take();
  }

  function onLeave({ relatedTarget }) {
    if (fields.includes(relatedTarget)) return;
    take();
    forgetDays();
    drawDays(held);
  }

  for (const field of fields) {
    field.addEventListener("input", () => {
      isChanged = true;
    });
    field.addEventListener("pointerdown", () => {
      isTyped = false;
    });
    field.addEventListener("keydown", ({ key }) => {
      isTyped = key !== "Tab";
      if (key === "Enter") take();
    });
    field.addEventListener("change", onChange);
    field.addEventListener("blur", onLeave);
  }
}
