// Requests: what runs and what has ended, with filters that stand in the address, in pages. The
// first page follows what happens.
import { $, button, clearSelection, fill, h, isNarrow, link, table, tell, tone } from "./dom.js";
import { live, now, onEvent } from "./live.js";
import { getJson, withQuery } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { hideStory, showStory } from "./story.js";
import { money, number, plural, requestState, shortId, span, when } from "./words.js";

/** Rows of a page. */
const size = () => (isNarrow() ? 10 : 25);
const NAMES = ["account", "key", "model", "status", "code", "slower", "id"];

/** How often the accounts of the last day are asked for, in milliseconds. */
const OFFER_MS = 60_000;
const NOTHING = { accounts: [], total: {} };

let filter = {};
let offeredAt = 0;
let page = 0;
let asking = 0; // only the answer to the last question counts

const form = $("request-filters");

/** A model as it was asked for, and the one that served. */
function modelText({ asked_model: asked, model }) {
  if (model === null || model === asked) return asked ?? model ?? "–";
  return asked === null ? model : [asked, h("span", { class: "soft" }, `→ ${model}`)];
}

function row(entry) {
  const { tone: name, text } = requestState(entry);
  const duration = entry.ended === null ? now() - entry.started : entry.duration_ms;
  const isCharged = entry.cost !== null && entry.currency !== null;
  return [
    when(entry.ended ?? entry.started, now()),
    link(
      `#requests/${encodeURIComponent(entry.id)}`,
      h("span", { class: "id" }, shortId(entry.id)),
    ),
    tone(name, text),
    entry.account ?? "–",
    modelText(entry),
    span(duration),
    entry.prompt_tokens === null || entry.usage_source === "none"
      ? "–"
      : `${number(entry.prompt_tokens)} + ${number(entry.completion_tokens)}`,
    isCharged ? money(entry.cost, entry.currency) : "–",
  ];
}

const COLUMNS = [
  { name: "Time", kind: "tight" },
  { name: "Request" },
  { name: "Status", kind: "broad" },
  { name: "Account" },
  { name: "Model" },
  { name: "Took", kind: "n" },
  { name: "Tokens", kind: "n" },
  { name: "Cost", kind: "n" },
];

function go(step) {
  clearSelection();
  page += step;
  load();
}

async function load() {
  const mine = asking + 1;
  asking = mine;
  try {
    const query = { ...filter, skip: page * size(), limit: size() };
    const { requests, count, running } = await getJson(withQuery("/requests", query));
    if (mine !== asking) return;
    const isFiltered = Object.keys(filter).length > 0;
    const fits = isFiltered ? " that fit" : "";
    const runs = running === 0 ? "" : ` ${number(running)} running now.`;
    tell($("found"), `${plural(count, "request")}${fits} of the last ones.${runs}`);
    const pages = Math.ceil(count / size());
    fill(
      $("found-requests"),
      table(COLUMNS, requests.map(row), "There are none."),
      pages < 2
        ? null
        : h(
            "p",
            { class: "pager" },
            h("span", { class: "soft" }, `page ${number(page + 1)} of ${number(pages)}`),
            button("Newer", () => go(-1), { disabled: page === 0 }),
            button("Older", () => go(1), { disabled: page + 1 >= pages }),
          ),
    );
  } catch (error) {
    if (mine !== asking) return;
    tell($("found"), error.message);
    fill($("found-requests"));
  }
}

/** The names that the fields offer. */
export function offerNames() {
  const { models, aliases } = live.status;
  const names = [...aliases.map(({ alias }) => alias), ...models.map(({ model }) => model)];
  offer("model-names", names);
  if (isShown("requests") && Date.now() - offeredAt > OFFER_MS) offerUsed();
}

/** What the last day had: its accounts, and the status 402 if there was any. */
async function offerUsed() {
  offeredAt = Date.now();
  const { accounts, total } = await getJson("/history?range=24h").catch(() => NOTHING);
  const list = $("account-names");
  const known = new Set([...list.options].map(({ value }) => value));
  const isName = ({ account, other }) => account !== null && !other && !known.has(account);
  const names = accounts.filter(isName).map(({ account }) => account);
  list.append(...names.map((value) => h("option", { value })));
  if (total["402"] > 0) form.querySelector('option[value="402"]').hidden = false;
}

/** A menu has a choice for what holds, also if it does not offer that by itself. */
function choose(field, value) {
  field.querySelector("option[data-added]")?.remove();
  const isOffered = field.tagName !== "SELECT" || [...field].some((each) => each.value === value);
  if (!isOffered) field.append(h("option", { value, "data-added": "" }, value));
  field.value = value;
}

function offer(id, names) {
  const list = $(id);
  if (list.childElementCount === names.length) return;
  list.replaceChildren(...names.map((value) => h("option", { value })));
}

function applyForm() {
  const entries = NAMES.map((name) => [name, form.elements[name].value.trim()]);
  const set = entries.filter(([, value]) => value !== "");
  replaceAddress(withQuery("#requests", Object.fromEntries(set)));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  applyForm();
});
form.addEventListener("change", applyForm);
$("clear-filters").addEventListener("click", () => replaceAddress("#requests"));

addPart("requests", (id, query) => {
  $("request-list").hidden = id !== "";
  if (id !== "") {
    showStory(id);
    return;
  }
  hideStory();
  filter = Object.fromEntries(NAMES.flatMap((name) => (query[name] ? [[name, query[name]]] : [])));
  page = 0;
  for (const name of NAMES) choose(form.elements[name], filter[name] ?? "");
  if (live.status) offerNames();
  load();
});
onEvent(() => {
  offerNames();
  if (isShown("requests") && page === 0 && !$("request-list").hidden) load();
});
