// Figures, times, money and states in words.

/** A figure for people; null is a dash. */
export const number = (value, digits = 0) =>
  value === null || value === undefined
    ? "–"
    : new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value);

/** A large figure in few characters: 12.4K. */
export const compact = (value) => (value < 10_000 ? number(value) : thousands.format(value));
const thousands = new Intl.NumberFormat(undefined, {
  notation: "compact",
  maximumSignificantDigits: 3,
});

/** A rate: whole numbers from ten on, some digits below. */
export const rate = (value) =>
  known(value, () => (value < 10 ? number(value, 2) : compact(Math.round(value))));

export const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

/** What is not null or undefined as a text; otherwise a dash. */
export const known = (value, text) => (value === null || value === undefined ? "–" : text(value));

export function percent(part, whole) {
  if (whole === 0) return "–";
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return "< 0.1 %";
  return `${number(share, share < 10 ? 1 : 0)} %`;
}

/** An amount with three digits that mean something, at least cents. */
export function money(cost, currency) {
  const size = Math.floor(Math.log10(Math.abs(cost) || 1));
  return amount(cost, currency, Math.min(12, Math.max(2, 2 - size)));
}

/** An amount with all of its digits. `cost` is a decimal string, never a floating-point number. */
export const exactMoney = (cost, currency) => amount(cost, currency, 12);

const amount = (cost, currency, digits) =>
  new Intl.NumberFormat(undefined, {
    style: "currency",
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(cost);

/** Money is added up in pico-units, as the books have it. */
export const toPico = (cost) => {
  const [whole, fraction = ""] = cost.split(".");
  return BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, "0"));
};
export const fromPico = (pico) =>
  `${pico / 10n ** 12n}.${String(pico % 10n ** 12n).padStart(12, "0")}`.replace(/\.?0+$/, "");

/** A time span from milliseconds. */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${number(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 100) return `${number(seconds, seconds < 10 ? 2 : 1)} s`;
  const minutes = seconds / 60;
  return minutes < 120 ? `${number(minutes, 1)} min` : `${number(minutes / 60, 1)} h`;
}

const timeFormat = (options) => new Intl.DateTimeFormat(undefined, options);
const hours = timeFormat({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clock = timeFormat({ timeStyle: "medium", hourCycle: "h23" });
const whole = timeFormat({ dateStyle: "medium", timeStyle: "medium" });
const days = timeFormat({ dateStyle: "medium", timeZone: "UTC" });

export const hourText = (time) => hours.format(time);
export const secondText = (time) => clock.format(time);
export const moment = (time) => whole.format(new Date(time));
export const dayText = (day) => days.format(new Date(day));

/** The time of the day, with the day if that is another one. */
export const when = (time, now) =>
  new Date(time).toDateString() === new Date(now).toDateString() ? secondText(time) : moment(time);

/** How long ago something was, in whole seconds. */
export const ago = (ms) =>
  ms < 5_000 ? "just now" : `${span(1_000 * Math.round(ms / 1_000))} ago`;

/** The configuration in force: its file, and since when. */
export function configurationText({ config_file: file, config_loaded_at: loadedAt }, time) {
  return `${file ?? "The built-in configuration"}, loaded ${ago(time - Date.parse(loadedAt))}.`;
}

/** What could not be read again, a sentence each: the state before it stays in force. */
export function reloadFaults({ config_fault: fault, keys }) {
  const sentences = [];
  if (fault) {
    const where = fault.path === "" ? "" : `${fault.path}: `;
    const more = fault.count > 1 ? ` (${number(fault.count)} faults in all)` : "";
    const time = secondText(Date.parse(fault.time));
    sentences.push(
      `A changed configuration was refused at ${time}, the one before it stays in force: ${where}${fault.message}${more}`,
    );
  }
  if (keys?.fault)
    sentences.push(`keys.json cannot be read, the keys before it stay in force: ${keys.fault}`);
  return sentences;
}

/** An error code in words. The manual's page Errors says what each means. */
export const reason = (code) => code.replaceAll("_", " ");

/** A model's state: its words, and its tone. */
export function modelState({ breaker: { state, failures, retry_ms: retryMs } }) {
  if (state === "probing") return { tone: "warn", text: "being tried again" };
  if (state === "open") {
    const next = retryMs > 0 ? `in ${number(Math.ceil(retryMs / 1000))} s` : "now";
    return { tone: "bad", text: `failing: next try ${next}` };
  }
  if (failures > 0) return { tone: "warn", text: `healthy, ${failures} faults in a row` };
  return { tone: "ok", text: "healthy" };
}

/** How a request ended, in a word, with its tone. */
export function requestState({ outcome, status, code, ended }) {
  if (ended === null) return { tone: "idle", text: "running" };
  if (outcome === "ok") return { tone: "ok", text: String(status) };
  if (outcome === "cancelled") return { tone: "idle", text: "client left" };
  const text = status === 200 ? "broke off" : String(status);
  return {
    tone: outcome === "5xx" ? "bad" : "warn",
    text: code === null ? text : `${text} ${code}`,
  };
}

/** The gateway's own ids are long, and their beginning is enough to tell them apart. */
export const shortId = (id) =>
  /^req_[0-9a-f]{32}$/.test(id) ? `${id.slice(0, 14)}…` : id.slice(0, 60);
