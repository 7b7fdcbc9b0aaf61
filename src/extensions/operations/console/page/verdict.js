// Is it healthy? One sentence, and what else an operator should know, the worst first.
import { $, fill, h, link } from "./dom.js";
import { gatewayFaults, isStale, live, now } from "./live.js";
import { storyOf, withQuery } from "./net.js";
import { modelState, number, percent, plural, reason, reloadFaults, secondText } from "./words.js";

/** A refusal is news for so long. */
const FRESH_MS = 2 * 60_000;
/** Refusals of one key that are worth a sentence. */
const MANY = 5;
/** Seconds by which the event loop may be late. */
const LATE_LOOP = 0.25;
/** Findings that are shown beside the first. */
const SHOWN = 5;

/** All requests of a tally, however they ended. */
export const requestsIn = (row) => row.ok + refusedIn(row) + row["5xx"] + row.cancelled;

/** Requests that were refused: a 4xx of any kind. */
export const refusedIn = (row) => row["401"] + row["402"] + row["429"] + row["4xx"];

/** The path of the requests that a row of refusals counts. */
export function refusedRequests({ account, key, code, status }) {
  const who = key === null ? { account: account ?? undefined } : { key };
  const why = code === String(status) ? { status } : { code };
  return withQuery("#requests", { ...who, ...why });
}

/** Why a row of refusals was refused. */
export function whyOf({ code, account_rpm: rpm }) {
  if (code === "rate_limit_exceeded" && Number.isInteger(rpm))
    return `over its limit of ${plural(rpm, "request")} a minute`;
  return reason(code);
}

const bad = (text) => ({ tone: "bad", text });
const warning = (text) => ({ tone: "warn", text });

function aboutGateway() {
  const { status, event_loop_delay: delay } = live.status;
  const findings = gatewayFaults().map(bad);
  if (isStale()) findings.push(bad("The gateway has not been heard of lately."));
  if (status !== "serving")
    findings.push(warning("The gateway is stopping: it takes no new requests."));
  findings.push(...reloadFaults(live.status).map(warning));
  const late = delay["0.99"] ?? 0;
  if (late > LATE_LOOP) {
    const ms = number(1000 * late);
    findings.push(warning(`The gateway has too much to do: its event loop is ${ms} ms late.`));
  }
  return findings;
}

function aboutModels({ faults }) {
  const { models } = live.status;
  const failing = models.filter(({ breaker }) => breaker.state !== "closed");
  const areAll = failing.length === models.length;
  return failing.map((model) => {
    const { text } = modelState(model);
    const fault = faults.find((each) => each.model === model.model);
    const words = fault?.detail ?? model.breaker.last_fault;
    const said = words ? ` ${model.provider} said: “${words}”` : "";
    const subject = areAll && failing.length > 1 ? "No model answers. Model" : "Model";
    return {
      tone: areAll ? "bad" : "warn",
      text: `${subject} ${model.model} is ${text}.${said}`,
      href: fault
        ? storyOf(fault.request_id)
        : withQuery("#requests", { model: model.model, status: "5xx" }),
      label: fault ? "The last time" : "Its failed requests",
    };
  });
}

function aboutRefusals({ refusals }) {
  const fresh = refusals.filter(
    ({ last, count, status }) => status < 500 && count >= MANY && last > now() - FRESH_MS,
  );
  return fresh.map((row) => {
    const who = row.account ?? "Somebody without a valid key";
    const times = `${plural(row.count, "time")} since ${secondText(row.since)}`;
    const text = `${who} is being refused: ${whyOf(row)} (${row.status}), ${times}.`;
    return { tone: "warn", text, href: refusedRequests(row), label: "These requests" };
  });
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

function wellText({ total, seconds }) {
  const count = live.status.models.length;
  const models = count === 1 ? "the model answers" : `all ${number(count)} models answer`;
  const span = seconds < 890 ? "since the start" : "in the last 15 minutes";
  const refused = refusedIn(total);
  const some = refused === 0 ? "" : `, ${number(refused)} refused`;
  return `Healthy: ${models}, ${plural(requestsIn(total), "request")} ${span}${some}.`;
}

const sentence = ({ text, href, label }) => [text, href && [" ", link(href, label)]];

/** `range`: the last 15 minutes. */
export function drawVerdict(range) {
  const findings = [
    ...aboutGateway(),
    ...aboutModels(range),
    ...aboutFailures(range),
    ...aboutRefusals(range),
  ];
  findings.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
  const [first = { tone: "ok", text: wellText(range) }, ...others] = findings;
  $("verdict").dataset.tone = first.tone;
  const items = others.slice(0, SHOWN).map((finding) => h("li", sentence(finding)));
  const more = others.length - SHOWN;
  if (more > 0) items.push(h("li", { class: "soft" }, `and ${number(more)} more below`));
  fill(
    $("verdict"),
    h("p", { class: "headline" }, h("span", sentence(first))),
    items.length > 0 && h("ul", items),
  );
}
