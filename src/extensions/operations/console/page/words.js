// Formats figures, times, money and states as text.

/** A value as text; null and undefined as a dash. */
export const known = (value, text = String) =>
  value === null || value === undefined ? "–" : text(value);

/** A number in the user's locale. */
export const number = (value, digits = 0) =>
  known(value, () =>
    new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value),
  );

export const rate = (value) => number(value, value < 10 ? 2 : 0);

export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

export function percent(part, whole) {
  return whole > 0 ? `${number((100 * part) / whole, 1)} %` : "–";
}

/** To show all digits, `cost` must be a decimal string, not a floating-point number. */
export const money = (cost, currency, digits = 6) =>
  new Intl.NumberFormat(undefined, {
    style: "currency",
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(cost);

/** An amount with all digits, as in the books. */
export const exactMoney = (cost, currency) => money(cost, currency, 12);

/** A duration in milliseconds as text. */
export function span(ms) {
  if (ms < 1_000) return `${number(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 120) return `${number(seconds, seconds < 10 ? 2 : 0)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${number(minutes)} min` : `${number(minutes / 60)} h`;
}

/** `ms`: the milliseconds that have passed. */
export const ago = (ms) =>
  ms < 5_000 ? "just now" : `${span(1_000 * Math.round(ms / 1_000))} ago`;

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** The time of day, with the date unless it is today. */
export function when(time) {
  const day = calendar.format(time);
  const today = calendar.format(Date.now());
  return day === today ? clock.format(time) : `${day}, ${clock.format(time)}`;
}

/** An error code in words. The manual's page Errors says what each means. */
export const reason = (code) => code.replaceAll("_", " ");

/** The members of an object that are not null or undefined, as text. */
export const membersText = (object) =>
  Object.entries(object)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${reason(name)} ${value}`)
    .join(", ");

/** A model's state: its text and tone. */
export function modelState({ breaker: { state, failures, retry_ms: retryMs } }) {
  if (state === "probing") return { tone: "warn", text: "being tried again" };
  const next = `next try ${retryMs > 0 ? `in ${Math.ceil(retryMs / 1000)} s` : "now"}`;
  if (state === "open") return { tone: "bad", text: `failing: ${next}` };
  // The provider stated until when it is overloaded. It has not failed, but gets no requests.
  if (retryMs > 0) return { tone: "warn", text: `overloaded: ${next}` };
  if (failures > 0) return { tone: "warn", text: `healthy, ${failures} faults in a row` };
  return { tone: "ok", text: "healthy" };
}

/** A request's outcome: its text and tone. */
export function requestState({ outcome, status, code, ended }) {
  if (ended === null) return { tone: "idle", text: "running" };
  if (outcome === "ok") return { tone: "ok", text: String(status) };
  if (outcome === "cancelled") return { tone: "idle", text: "client left" };
  const text = status === 200 ? "broke off" : String(status);
  return { tone: outcome === "5xx" ? "bad" : "warn", text: `${text} ${code ?? ""}` };
}

/** The file of the active configuration, and when it was loaded. */
export function configurationText({ config_file: file, config_loaded_at: loadedAt }, time) {
  return `${file ?? "The built-in configuration"}, loaded ${ago(time - Date.parse(loadedAt))}.`;
}

/** A sentence for each failed reload. The previous state stays active. */
export function reloadFaults({ config_fault: fault, restart_needed: restart = [], keys }) {
  const sentences = [];
  if (restart.length > 0)
    sentences.push(
      `A restart is needed: ${restart.join(", ")} changed, and are read at start only`,
    );
  if (fault) {
    const { time, path, message, count } = fault;
    const refused = `The gateway rejected a changed configuration at ${when(Date.parse(time))}`;
    const why = [path, message].filter(Boolean).join(": ");
    sentences.push(`${refused}; the previous one stays in force: ${why} (${count} in all)`);
  }
  if (keys?.fault)
    sentences.push(
      `The gateway cannot read keys.json; the previous keys stay in force: ${keys.fault}`,
    );
  return sentences;
}
