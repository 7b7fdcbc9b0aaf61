// Figures, times, money and states in words.

/** A figure for people; null is a dash. */
export const number = (value, digits = 0) =>
  value === null || value === undefined
    ? "–"
    : new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value);

/** A large figure in few characters: 12.4K. */
export const compact = (value) =>
  value < 10_000
    ? number(value)
    : new Intl.NumberFormat(undefined, {
        notation: "compact",
        maximumSignificantDigits: 3,
      }).format(value);

/** A rate: whole numbers from ten on, some digits below. */
export function rate(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10 || value === 0) return compact(Math.round(value));
  return number(value, value >= 1 ? 1 : 2);
}

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
  const value = Number(cost);
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(12, Math.max(2, 2 - size));
  return amount(value, currency, digits);
}

/** An amount with all of its digits. `cost` is a decimal string, never a floating-point number. */
export const exactMoney = (cost, currency) => amount(cost, currency, 12);

const amount = (value, currency, digits) =>
  new Intl.NumberFormat(undefined, {
    style: "currency",
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(value);

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
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${number(minutes / 60, 1)} h`;
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

export function ago(ms) {
  if (ms < 5_000) return "just now";
  if (ms < 90_000) return `${Math.round(ms / 1_000)} s ago`;
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min ago`;
  return `${Math.round(ms / 3_600_000)} h ago`;
}

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

/** What error codes mean, for an operator. */
export const REASONS = {
  missing_api_key: "no API key was sent",
  invalid_api_key: "the API key is not known",
  api_key_disabled: "the key is revoked or has expired",
  rate_limit_exceeded: "over its limit of requests a minute",
  concurrency_limit_exceeded: "too many requests at once",
  tokens_per_minute_exceeded: "over its limit of tokens a minute",
  insufficient_balance: "its budget has no room",
  model_not_found: "there is no such model",
  model_not_allowed: "the key may not use this model",
  unknown_url: "there is nothing at this path",
  invalid_json: "the body is not JSON",
  request_too_large: "the body is too large",
  context_length_exceeded: "the prompt is too long for the model",
  content_filter: "the model's content filter refused it",
  upstream_rejected: "the provider refused it as invalid",
  upstream_timeout: "the provider was silent for too long",
  upstream_error: "the provider failed",
  model_unavailable: "no model could serve",
  model_overloaded: "the provider is overloaded",
  server_overloaded: "the gateway had no room",
  internal_error: "a fault of the gateway",
};
export const reason = (code) => REASONS[code] ?? String(code).replaceAll("_", " ");

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

/** The tokens of a prompt by what they cost, from what the books have of a request. */
export function promptText({ fresh, cached, written, source }) {
  const writes = written > 0 ? `, ${number(written)} of the new written to the cache` : "";
  return `${number(fresh)} new, ${number(cached)} cached${writes}${estimatedText(source)}`;
}

export const completionText = ({ tokens, reasoning, source }) =>
  `${number(tokens)}, ${number(reasoning)} of them reasoning${estimatedText(source)}`;

const estimatedText = (source) => (source === "estimated" ? " (estimated)" : "");
