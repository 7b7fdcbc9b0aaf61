// Try it: a chat request of the page, its reply as it arrives, and what the books say of it.
import { $, fill, h, link } from "./dom.js";
import { live, onEvent } from "./live.js";
import { getJson, here, withQuery } from "./net.js";
import { addPart, follow } from "./parts.js";
import { programOf } from "./programs.js";
import { createReply } from "./reply.js";
import { exactMoney, number, span } from "./words.js";

const FIGURES = [
  "Served by",
  "Request id",
  "First token",
  "Tokens a second",
  "Prompt tokens",
  "Completion tokens",
  "Cost",
];
/** How often the books are asked for what they do not have yet, and how long between, in ms. */
const LOOKS = 10;
const PAUSE_MS = 300;

let running = null; // the AbortController of the request on its way
let replied = null; // the last whole reply, as a message

function addMessage(role = "user", content = "") {
  const option = (each) => h("option", { selected: each === role }, each);
  const roles = h("select", {}, ["user", "system", "assistant"].map(option));
  const text = h("textarea", { rows: 3 });
  text.value = content;
  const remove = () => {
    row.remove();
    nameMessages();
    $("add").focus();
  };
  const removal = h("button", { type: "button", class: "small", click: remove }, "Remove");
  const row = h("div", { class: "message" }, h("div", { class: "actions" }, roles, removal), text);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
  });
  $("messages").append(row);
  nameMessages();
  return text;
}

function nameMessages() {
  for (const [at, row] of [...$("messages").children].entries()) {
    row.querySelector("select").setAttribute("aria-label", `Role of message ${at + 1}`);
    row.querySelector("button").setAttribute("aria-label", `Remove message ${at + 1}`);
    row.querySelector("textarea").setAttribute("aria-label", `Message ${at + 1}`);
  }
}

/** The request as the form has it. Throws if the tools are no JSON. */
function requestOf() {
  const messages = [...$("messages").children].map((row) => ({
    role: row.querySelector("select").value,
    content: row.querySelector("textarea").value,
  }));
  const tools = $("tools").value.trim() === "" ? undefined : JSON.parse($("tools").value);
  const stream = $("stream").checked || undefined;
  return {
    model: $("model").value,
    messages,
    stream,
    stream_options: stream && { include_usage: true },
    thinking: $("thinking").checked ? { type: "enabled" } : undefined,
    response_format: $("json").checked ? { type: "json_object" } : undefined,
    temperature: $("temperature").value === "" ? undefined : Number($("temperature").value),
    tools,
    tool_choice: tools && "auto",
  };
}

function setFigures(values = {}) {
  const item = (name) => [h("dt", {}, name), h("dd", { "data-figure": name }, values[name] ?? "–")];
  $("figures").replaceChildren(...FIGURES.flatMap(item));
}

function report(text, isBad = false) {
  $("outcome").textContent = text;
  $("outcome").className = isBad ? "bad" : "soft";
}

/** An id of the page's own: it is known also of a request that is stopped before anything came. */
function newRequestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `req_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function setRunning(isRunning) {
  // A button that is disabled loses the focus.
  const back = !isRunning && document.activeElement === $("stop");
  $("send").disabled = isRunning;
  $("stop").disabled = !isRunning;
  if (isRunning) $("stop").focus();
  if (back) $("send").focus();
}

async function ask(event) {
  event.preventDefault();
  if (running) return;
  let request;
  try {
    request = requestOf();
  } catch (error) {
    report(`The tools are not JSON: ${error.message}`, true);
    return;
  }
  const stop = new AbortController();
  running = stop;
  replied = null;
  $("continue").disabled = true;
  setRunning(true);
  setFigures();
  const requestId = newRequestId();
  const reply = createReply(report);
  report("Waiting for the first token …");
  try {
    const headers = {
      "Content-Type": "application/json",
      "X-API-Key": $("key").value,
      "X-Request-Id": requestId,
    };
    const body = JSON.stringify(request);
    const options = { method: "POST", headers, body, signal: stop.signal };
    report(`Finished: ${await reply.read(await fetch(here("/try"), options))}`);
    replied = { role: "assistant", content: reply.content() };
  } catch (error) {
    if (stop.signal.aborted) report("Stopped.");
    else report(error.message, true);
  }
  const times = reply.ended(Boolean(request.stream));
  running = null;
  $("continue").disabled = !replied || replied.content === "";
  setRunning(false);
  await showFigures(requestId, times).catch((error) => {
    report(`${$("outcome").textContent} The books cannot be read: ${error.message}`, true);
  });
}

/** What the books say of it, which they do before its last byte has come. */
async function showFigures(requestId, { firstMs, restMs }) {
  const known = {
    "Request id": link(`#requests/${requestId}`, requestId),
    "First token": span(firstMs),
  };
  setFigures(known);
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const { spend } = await getJson(withQuery("/trace", { request_id: requestId }));
    if (running) return; // the figures are another's
    const settled = spend.findLast(({ type }) => type === "settle");
    if (settled) {
      setFigures({ ...known, ...figuresOf(settled, restMs) });
      return;
    }
    if (spend.length === 0 && looks > 2) return; // it was refused before it could cost anything
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

function figuresOf(
  { usage, usage_source: source, cost, currency, model_served: model, provider },
  restMs,
) {
  const { completion_tokens: tokens, reasoning_tokens: reasoning } = usage;
  const estimated = source === "estimated" ? " (estimated)" : "";
  const { cache_write_tokens: written = 0 } = usage;
  const writes = written > 0 ? `, ${number(written)} of the new written to the cache` : "";
  return {
    "Served by": model === null ? "nobody" : `${model} (${provider})`,
    "Tokens a second": restMs > 0 && tokens > 0 ? number((1000 * tokens) / restMs, 1) : "–",
    "Prompt tokens": `${number(usage.prompt_cache_miss_tokens)} new, ${number(usage.prompt_cache_hit_tokens)} cached${writes}${estimated}`,
    "Completion tokens": `${number(tokens)}, ${number(reasoning)} of them reasoning${estimated}`,
    Cost: exactMoney(cost, currency),
  };
}

/** What can be asked for, when that changes. */
let offered = "";
function offerModels() {
  const aliases = live.status.aliases.filter(({ enabled }) => enabled).map(({ alias }) => alias);
  const models = live.status.models.map(({ model }) => model);
  const names = JSON.stringify([aliases, models]);
  if (names === offered) return;
  offered = names;
  const before = $("model").value;
  const option = (value) => h("option", { value }, value);
  fill(
    $("model"),
    h("optgroup", { label: "Aliases" }, aliases.map(option)),
    h("optgroup", { label: "Models" }, models.map(option)),
  );
  if ([...aliases, ...models].includes(before)) $("model").value = before;
}

/** Where the demo key holds, all that a first request needs is there at once. */
let hasBegun = false;
function begin() {
  if (hasBegun) return;
  hasBegun = true;
  if (!live.status.demo_key) return;
  $("key").value ||= "sk-demo";
  if (location.hash !== "") return;
  history.replaceState(null, "", "#try");
  follow();
  $("send").focus();
}

$("ask").addEventListener("submit", ask);
$("stop").addEventListener("click", () => running?.abort());
$("add").addEventListener("click", () => addMessage().focus());
$("continue").addEventListener("click", () => {
  addMessage(replied.role, replied.content);
  addMessage().focus();
  $("continue").disabled = true;
});
for (const kind of ["curl", "js", "python"]) {
  $(`copy-${kind}`).addEventListener("click", async () => {
    const copied = $("copied");
    try {
      copied.textContent = programOf(kind, requestOf(), live.address);
    } catch (error) {
      report(`The tools are not JSON: ${error.message}`, true);
      return;
    }
    copied.hidden = false;
    const isCopied = await navigator.clipboard?.writeText(copied.textContent).then(
      () => true,
      () => false,
    );
    report(
      isCopied
        ? "Copied. It reads the key from CHAT_GATEWAY_KEY."
        : "This browser does not let the page copy: take it from below.",
    );
  });
}
addMessage("user", "Say hello, and tell in one sentence what you are.");
setFigures();
addPart("try", () => undefined);
onEvent(() => {
  offerModels();
  begin();
});
