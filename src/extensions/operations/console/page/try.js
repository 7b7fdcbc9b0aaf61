// Try it: a chat request of the page, its reply as it arrives, and its story.
import { $, button, copy, fill, h, link, options, tell } from "./dom.js";
import { findInBooks } from "./from-books.js";
import { live, onEvent } from "./live.js";
import { ask, storyOf } from "./net.js";
import { addPart, replaceAddress } from "./parts.js";
import { programOf } from "./programs.js";
import { createReply } from "./reply.js";
import { storyElement } from "./story.js";

/** How often the books are asked for what they do not have yet, and how long between, in ms. */
const LOOKS = 20;
const PAUSE_MS = 300;

let running = null; // the AbortController of the request on its way
let replied = ""; // the last whole reply

const rows = () => [...$("messages").children];

function addMessage(role, content) {
  const roles = h("select", options(["user", "system", "assistant"]));
  const text = h("textarea", { rows: 3 }, content);
  const remove = () => {
    row.remove();
    nameMessages();
    $("add").focus();
  };
  const actions = h(
    "div",
    { class: "actions" },
    roles,
    button("Remove", remove, { class: "small" }),
  );
  const row = h("div", { class: "message" }, actions, text);
  roles.value = role;
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
  });
  $("messages").append(row);
  nameMessages();
  text.focus();
}

function nameMessages() {
  const names = { select: "Role of message", button: "Remove message", textarea: "Message" };
  for (const [at, row] of rows().entries())
    for (const [tag, name] of Object.entries(names))
      row.querySelector(tag).setAttribute("aria-label", `${name} ${at + 1}`);
}

/** The request as the form has it; null, with a report, if the tools are no JSON. */
function requestOf() {
  const text = $("tools").value.trim();
  let tools;
  try {
    tools = text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    report(`The tools are not JSON: ${error.message}`, true);
    return null;
  }
  const stream = $("stream").checked || undefined;
  return {
    model: $("model").value,
    messages: rows().map((row) => ({
      role: row.querySelector("select").value,
      content: row.querySelector("textarea").value,
    })),
    stream,
    stream_options: stream && { include_usage: true },
    thinking: $("thinking").checked ? { type: "enabled" } : undefined,
    response_format: $("json").checked ? { type: "json_object" } : undefined,
    temperature: $("temperature").value === "" ? undefined : Number($("temperature").value),
    tools,
    tool_choice: tools && "auto",
  };
}

/** Says how far the request is. */
function report(text, isBad = false) {
  tell($("outcome"), text);
  $("outcome").className = isBad ? "bad" : "soft";
}

/** An id of the page's own: it is known also of a request that is stopped before anything came. */
function newRequestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `req_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function setRunning(stop) {
  // A button that is disabled loses the focus.
  const isBack = stop === null && document.activeElement === $("stop");
  running = stop;
  $("send").disabled = stop !== null;
  $("stop").disabled = stop === null;
  if (stop !== null) $("stop").focus();
  if (isBack) $("send").focus();
}

async function send(event) {
  event.preventDefault();
  const request = running ? null : requestOf();
  if (request === null) return;
  const stop = new AbortController();
  setRunning(stop);
  fill($("tried"));
  replied = "";
  $("continue").disabled = true;
  report("Waiting for the first token …");
  const id = newRequestId();
  const headers = {
    "Content-Type": "application/json",
    "X-API-Key": $("key").value,
    "X-Request-Id": id,
  };
  const body = JSON.stringify(request);
  const reply = createReply(report);
  try {
    const answer = await ask("/try", { method: "POST", headers, body, signal: stop.signal });
    report(`Finished: ${await reply.read(answer)}`);
    replied = reply.content();
  } catch (error) {
    report(stop.signal.aborted ? "Stopped." : error.message, !stop.signal.aborted);
  }
  $("continue").disabled = replied === "";
  setRunning(null);
  await showStory(id).catch((error) => {
    report(`${$("outcome").textContent} Its story cannot be read: ${error.message}`, true);
  });
}

/** Shows what the books say of it, which they do before its last byte has come. */
async function showStory(id) {
  fill($("tried"), h("p", link(storyOf(id), id)));
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const entries = await findInBooks(id);
    if (running) return; // the place is another's
    if (entries.length > 0) fill($("tried"), entries.map(storyElement));
    if (entries.some(({ ended }) => ended !== null)) return;
    if (entries.length === 0 && looks > 2) return; // it was refused before it could cost anything
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

async function showProgram({ target }) {
  const request = requestOf();
  if (request === null) return;
  const text = programOf(target.value, request, live.address);
  $("copied").textContent = text;
  $("copied").hidden = false;
  const isCopied = await copy(text);
  report(
    isCopied
      ? "Copied. It reads the key from CHAT_GATEWAY_KEY."
      : "This browser does not let the page copy: take it from below.",
  );
}

/** What can be asked for. A menu that somebody may have opened is left as it is. */
function offerModels() {
  const aliases = live.status.aliases.filter(({ enabled }) => enabled).map(({ alias }) => alias);
  const models = live.status.models.map(({ model }) => model);
  const names = [...aliases, ...models].join("\n");
  const menu = $("model");
  if (menu.dataset.names === names) return;
  menu.dataset.names = names;
  const before = menu.value;
  fill(
    menu,
    h("optgroup", { label: "Aliases" }, options(aliases)),
    h("optgroup", { label: "Models" }, options(models)),
  );
  if ([...aliases, ...models].includes(before)) menu.value = before;
}

/** Where the demo key holds, all that a first request needs is there at once. */
let hasBegun = false;
function begin() {
  if (hasBegun) return;
  hasBegun = true;
  if (!live.status.demo_key) return;
  $("key").value ||= "sk-demo";
  if (location.hash !== "") return;
  replaceAddress("#try");
  $("send").focus();
}

$("ask").addEventListener("submit", send);
$("stop").addEventListener("click", () => running?.abort());
$("add").addEventListener("click", () => addMessage("user", ""));
$("continue").addEventListener("click", () => {
  addMessage("assistant", replied);
  addMessage("user", "");
  $("continue").disabled = true;
});
$("programs").addEventListener("click", showProgram);
addMessage("user", "Say hello, and tell in one sentence what you are.");
addPart("try", () => undefined);
onEvent(() => {
  offerModels();
  begin();
});
