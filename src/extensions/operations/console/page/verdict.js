// The verdict on the gateway's health: one sentence, and further findings, the worst first.
import { $, fill, h, link } from "./dom.js";
import { live, now, storyOf, withQuery } from "./views.js";
import { modelState, number, percent, plural, reason, reloadFaults, when } from "./words.js";

/** A refusal counts as current for this long, in milliseconds. */
const FRESH_MS = 2 * 60_000;
/** The least number of refusals of one key, or of failures, that makes a finding. */
const MANY = 5;
/** The longest delay of the event loop, in seconds, that is not a finding. */
const LATE_LOOP = 0.25;
/** The most findings that are shown. */
const SHOWN = 6;

/** Requests that were refused: a 4xx of any kind. */
export const refusedIn = (row) => row["401"] + row["402"] + row["429"] + row["4xx"];

/** All requests of a row, whatever their outcome. */
export const requestsIn = (row) => row.ok + refusedIn(row) + row["5xx"] + row.cancelled;

/** The path of the requests that a row of refusals counts. */
export function refusedRequests({ account, key, code, status }) {
  const who = key === null ? { account: account ?? undefined } : { key };
  const why = code === String(status) ? { status } : { code };
  return withQuery("#requests", { ...who, ...why });
}

/** The reason of a row of refusals, in words. */
export const whyOf = ({ code, rpm }) =>
  rpm === null ? reason(code) : `over its limit of ${plural(rpm, "request")} a minute`;

function aboutGateway({ status, spend, usage, limits, event_loop_delay: delay }) {
  const late = delay["0.99"] ?? 0;
  const sentences = [
    spend?.fault && "The gateway cannot write its spend log, so it refuses requests.",
    usage?.fault && "Usage records wait: the usage sync fails.",
    limits.fault && "The gateway cannot reach the store of its limits.",
    status !== "serving" && "The gateway is stopping: it takes no new requests.",
    late > LATE_LOOP &&
      `The gateway is overloaded: its event loop is ${number(1000 * late)} ms late.`,
    ...reloadFaults(live.status),
  ];
  const tone = spend?.fault ? "bad" : "warn";
  return sentences.filter(Boolean).map((text) => ({ tone, text }));
}

function aboutModels({ models }, { faults }) {
  const failing = models.filter(
    ({ breaker }) => breaker.state !== "closed" || breaker.retry_ms > 0,
  );
  return failing.map((row) => {
    const { model, provider, breaker } = row;
    const fault = faults.find((each) => each.model === model);
    const words = fault?.detail ?? breaker.last_fault;
    const said = words ? ` ${provider} said: “${words}”` : "";
    return {
      tone: failing.length === models.length ? "bad" : "warn",
      text: `Model ${model} is ${modelState(row).text}.${said}`,
      href: fault ? storyOf(fault.request_id) : withQuery("#requests", { model, status: "5xx" }),
      label: fault ? "The latest failure" : "Its failed requests",
    };
  });
}

function aboutFailures({ total }) {
  const requests = requestsIn(total);
  const failed = total["5xx"];
  if (failed < MANY || failed / requests < 0.01) return [];
  return {
    tone: failed / requests > 0.1 ? "bad" : "warn",
    text: `${percent(failed, requests)} of requests failed in the last 15 minutes.`,
    href: "#requests?status=5xx",
    label: "Failed requests",
  };
}

function aboutRefusals({ refusals }) {
  const fresh = refusals.filter(
    ({ last, count, status }) => status < 500 && count >= MANY && last > now() - FRESH_MS,
  );
  return fresh.map((row) => {
    const who = row.account ?? "Someone without a valid key";
    const times = `${plural(row.count, "time")} since ${when(row.since)}`;
    return {
      tone: "warn",
      text: `${who} is being refused: ${whyOf(row)} (${row.status}), ${times}.`,
      href: refusedRequests(row),
      label: "Show these requests",
    };
  });
}

function healthy({ total }) {
  const models = plural(live.status.models.length, "model");
  const requests = plural(requestsIn(total), "request");
  const refused = number(refusedIn(total));
  const text = `Healthy: ${models}; ${requests} in the last 15 minutes, ${refused} refused.`;
  return { tone: "ok", text };
}

const findingElement = ({ text, href, label }) => h("span", text, " ", href && link(href, label));

/** `range`: the last 15 minutes. */
export function drawVerdict(range) {
  const findings = [
    aboutGateway(live.status),
    aboutModels(live.status, range),
    aboutFailures(range),
    aboutRefusals(range),
  ].flat();
  findings.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
  const [first = healthy(range), ...others] = findings.slice(0, SHOWN);
  $("verdict").dataset.tone = first.tone;
  fill(
    $("verdict"),
    h("p", { class: "headline" }, findingElement(first)),
    h(
      "ul",
      others.map((finding) => h("li", findingElement(finding))),
    ),
  );
}
