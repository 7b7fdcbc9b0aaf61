// Is it healthy? One sentence, and what else an operator should know, the worst first.
import { $, fill, h, link } from "./dom.js";
import { gatewayFaults, isStale, live, now } from "./live.js";
import { withQuery } from "./net.js";
import {
  ago,
  modelState,
  number,
  percent,
  plural,
  reason,
  reloadFaults,
  secondText,
} from "./words.js";

/** A refusal is news for so long. */
const FRESH_MS = 2 * 60_000;
/** Refusals of one key that are worth a sentence. */
const MANY = 5;
/** Seconds by which the event loop may be late. */
const LATE_LOOP = 0.25;
/** Findings that are shown beside the first. */
const SHOWN = 5;

/** The path of the requests that a row of refusals counts. */
export function refusedRequests({ account, key, code, status }) {
  const who = key === null ? { account: account ?? undefined } : { key };
  const why = code === String(status) ? { status } : { code };
  return withQuery("#requests", { ...who, ...why });
}

/** The account of a row of refusals. */
export const whoOf = ({ account }) => (account === null ? "Somebody without a valid key" : account);

const limitOf = ({ code, account_rpm: rpm }) =>
  code === "rate_limit_exceeded" && rpm !== null && rpm !== undefined
    ? ` of ${plural(rpm, "request")} a minute`
    : "";

/** Why a row of refusals was refused. */
export function whyOf(row) {
  if (row.code === "rate_limit_exceeded" && limitOf(row) !== "")
    return `over its limit${limitOf(row)}`;
  return reason(row.code);
}

function aboutGateway() {
  const { status, event_loop_delay: delay } = live.status;
  const findings = gatewayFaults().map((text) => ({ tone: "bad", text }));
  if (isStale()) findings.push({ tone: "bad", text: "The gateway has not been heard of lately." });
  if (status !== "serving")
    findings.push({ tone: "warn", text: "The gateway is stopping: it takes no new requests." });
  for (const text of reloadFaults(live.status)) findings.push({ tone: "warn", text });
  const late = delay["0.99"] ?? 0;
  if (late > LATE_LOOP)
    findings.push({
      tone: "warn",
      text: `The gateway has too much to do: its event loop is ${number(1000 * late)} ms late.`,
    });
  return findings;
}

function aboutModels({ faults }) {
  const failing = live.status.models.filter(({ breaker }) => breaker.state !== "closed");
  return failing.map((model) => {
    const { text } = modelState(model);
    const fault = faults.find((each) => each.model === model.model);
    const words = fault?.detail ?? model.breaker.last_fault;
    const said = words === null || words === undefined ? "" : ` ${model.provider} said: “${words}”`;
    const isAlone = failing.length === live.status.models.length;
    const subject = isAlone && failing.length > 1 ? "No model answers. Model" : "Model";
    return {
      tone: isAlone ? "bad" : "warn",
      text: `${subject} ${model.model} is ${text}.${said}`,
      href: fault
        ? `#requests/${encodeURIComponent(fault.request_id)}`
        : withQuery("#requests", { model: model.model, status: "5xx" }),
      label: fault ? "The last time" : "Its failed requests",
    };
  });
}

function aboutRefusals({ refusals }) {
  const fresh = refusals.filter(
    ({ last, count, status }) => status < 500 && count >= MANY && last > now() - FRESH_MS,
  );
  return fresh.map((row) => ({
    tone: "warn",
    text: `${whoOf(row)} is being refused: ${whyOf(row)} (${row.status}), ${plural(row.count, "time")} since ${secondText(row.since)}.`,
    href: refusedRequests(row),
    label: "These requests",
  }));
}

function aboutFailures({ total }) {
  const requests = requestsIn(total);
  const failed = total["5xx"];
  if (failed < MANY || failed / requests < 0.01) return [];
  return [
    {
      tone: failed / requests > 0.1 ? "bad" : "warn",
      text: `${percent(failed, requests)} of the requests of the last 15 minutes failed.`,
      href: "#requests?status=5xx",
      label: "Failed requests",
    },
  ];
}

/** All requests of a tally, however they ended. */
export const requestsIn = (row) =>
  ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"].reduce((sum, name) => sum + row[name], 0);

/** Requests that were refused: a 4xx of any kind. */
export const refusedIn = (row) => row["401"] + row["402"] + row["429"] + row["4xx"];

function wellText({ total, seconds }) {
  const count = live.status.models.length;
  const models = count === 1 ? "the model answers" : `all ${number(count)} models answer`;
  const requests = requestsIn(total);
  const span = seconds < 890 ? "since the start" : "in the last 15 minutes";
  const last = requests === 0 ? `no request ${span}` : `${plural(requests, "request")} ${span}`;
  const refused = refusedIn(total);
  const some = refused === 0 ? "" : `, ${number(refused)} refused`;
  return `Healthy: ${models}, ${last}${some}.`;
}

/** `range`: the last 15 minutes. */
export function drawVerdict(range) {
  const findings = [
    ...aboutGateway(),
    ...aboutModels(range),
    ...aboutFailures(range),
    ...aboutRefusals(range),
  ];
  findings.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
  const [first, ...others] = findings;
  const box = $("verdict");
  box.dataset.tone = first?.tone ?? "ok";
  const sentence = ({ text, href, label }) => [text, href ? [" ", link(href, label)] : null];
  const more = others.length - SHOWN;
  fill(
    box,
    h("p", { class: "headline" }, h("span", {}, first ? sentence(first) : wellText(range))),
    others.length === 0
      ? null
      : h(
          "ul",
          {},
          others.slice(0, SHOWN).map((finding) => h("li", {}, sentence(finding))),
          more > 0 ? h("li", { class: "soft" }, `and ${number(more)} more below`) : null,
        ),
  );
}

/** When a fault was, for a table. */
export const faultTime = (time) => ago(now() - time);
