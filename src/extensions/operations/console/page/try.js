// The view Try it: sends a chat request, and shows its reply as it arrives, and its details.
import { $, fill, h, link, tell } from "./dom.js";
import { findInBooks } from "./from-books.js";
import { storyElement } from "./story.js";
import { addView, ask, live, refresh, storyOf } from "./views.js";

const askForm = $("ask");
let running = null; // the AbortController of the running request
let tried = ""; // the id of the last request

/** The request in the form. The value of a checkbox is JSON: the fields that it adds. */
function requestOf() {
  const boxes = [...askForm.querySelectorAll("input:checked")].map(({ value }) => value);
  const fields = [...boxes, $("more").value].filter((text) => text.trim() !== "");
  const messages = [{ role: "user", content: $("message").value }];
  const all = fields.flatMap((text) => Object.entries(JSON.parse(text)));
  return { model: $("model").value, messages, ...Object.fromEntries(all) };
}

function showProgress(text, tone = "idle") {
  tell($("outcome"), text, tone);
}

/** The data of each event of a stream. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: ")) yield event.slice(6);
  }
}

/** Appends a reply or a chunk of it, and returns its finish reason. Throws its error, if any. */
function appendReply({ choices = [], error }) {
  if (error) throw new Error(`${error.code}: ${error.message}`);
  const [choice] = choices;
  if (!choice) return null;
  const piece = choice.delta ?? choice.message;
  $("reply").append(piece.content ?? "");
  $("thoughts").append(piece.reasoning_content ?? "");
  for (const { function: called } of piece.tool_calls ?? []) {
    if (called.name) $("reply").append(`\n→ calls ${called.name}`);
    $("reply").append(called.arguments ?? "");
  }
  return choice.finish_reason;
}

/** Shows a reply as it arrives. Resolves with its finish reason. */
async function read(response) {
  const type = response.headers.get("content-type");
  if (!type.startsWith("text/event-stream")) return appendReply(await response.json());
  let finish = null;
  for await (const data of eventsOf(response.body)) {
    if (data === "[DONE]") return finish;
    showProgress("Streaming …");
    finish = appendReply(JSON.parse(data)) ?? finish;
  }
  throw new Error("The stream broke off.");
}

async function send() {
  const headers = {
    "Content-Type": "application/json",
    "X-API-Key": $("key").value,
    // Chosen here, so that it is known even if the request is stopped before any answer.
    "X-Request-Id": `console_${Date.now()}`,
  };
  for (const place of ["reply", "thoughts"]) $(place).replaceChildren();
  showProgress("Waiting for the first token …");
  $("send").textContent = "Stop";
  running = new AbortController();
  const { signal } = running;
  try {
    const body = JSON.stringify(requestOf());
    tried = headers["X-Request-Id"];
    const answer = await ask("/try", { method: "POST", headers, body, signal });
    showProgress(`Finished: ${await read(answer)}`);
  } catch (error) {
    if (signal.aborted) showProgress("Stopped.");
    else showProgress(error.message, "bad");
  }
  $("send").textContent = "Send";
  running = null;
  refresh();
}

/** Fills the menu of models. An unchanged menu is left alone: the user may have it open. */
function offerModels({ aliases, models }) {
  const names = aliases.filter(({ enabled }) => enabled).map(({ alias }) => alias);
  names.push(...models.map(({ model }) => model));
  const menu = $("model");
  if (menu.dataset.names === names.join()) return;
  menu.dataset.names = names.join();
  menu.replaceChildren(...names.map((name) => h("option", name)));
}

askForm.addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort();
  else send();
});

addView("try", {
  load: async () => (tried === "" ? [] : await findInBooks(tried)),
  draw(entries) {
    offerModels(live.status);
    const title = tried !== "" && h("p", link(storyOf(tried), tried));
    fill($("tried"), title, entries.map(storyElement));
    return entries.some(({ ended }) => ended === null) ? 0 : undefined;
  },
});
