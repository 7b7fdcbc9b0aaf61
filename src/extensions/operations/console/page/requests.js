// Requests: what runs and what has ended, with filters that stand in the address, in pages. The
// first page follows what happens.
import {
  $,
  numeric,
  fill,
  h,
  link,
  options,
  pager,
  pageSize,
  soft,
  table,
  tell,
  tone,
} from "./dom.js";
import { now, onEvent } from "./live.js";
import { getJson, storyOf, view, withQuery } from "./net.js";
import { addPart, isShown, replaceAddress } from "./parts.js";
import { hideStory, showStory } from "./story.js";
import { money, number, plural, requestState, shortId, span, when } from "./words.js";

const form = $("request-filters");
/** The names of the fields, which are those of the filters too. */
const NAMES = ["account", "key", "model", "status", "code", "slower", "id"];

let filter = {};
let page = 0;

/** A model as it was asked for, and the one that served. */
function modelText({ asked_model: asked, model }) {
  if (model === null || model === asked) return asked ?? model ?? "–";
  return asked === null ? model : [asked, soft(`→ ${model}`)];
}

const COLUMNS = [
  { name: "Time", kind: "tight", of: ({ ended, started }) => when(ended ?? started, now()) },
  { name: "Request", of: ({ id }) => link(storyOf(id), h("span", { class: "id" }, shortId(id))) },
  { name: "Status", kind: "broad", of: (entry) => tone(requestState(entry)) },
  { name: "Account", of: ({ account }) => account ?? "–" },
  { name: "Model", of: modelText },
  numeric("Took", ({ ended, started, duration_ms: ms }) =>
    span(ended === null ? now() - started : ms),
  ),
  numeric(
    "Tokens",
    ({ prompt_tokens: prompt, completion_tokens: completion, usage_source: source }) =>
      prompt === null || source === "none" ? "–" : `${number(prompt)} + ${number(completion)}`,
  ),
  numeric("Cost", ({ cost, currency }) =>
    cost === null || currency === null ? "–" : money(cost, currency),
  ),
];

const list = view({
  load: () => {
    const bounds = { skip: page * pageSize(), limit: pageSize() };
    return getJson(withQuery("/requests", { ...filter, ...bounds }));
  },
  draw({ requests, count, running }) {
    const fits = Object.keys(filter).length > 0 ? " that fit" : "";
    const runs = running === 0 ? "" : ` ${number(running)} running now.`;
    tell($("found"), `${plural(count, "request")}${fits} of the last ones.${runs}`);
    const go = (next) => {
      page = next;
      list();
    };
    fill($("found-requests"), table(COLUMNS, requests, "There are none."), pager(page, count, go));
  },
  fail(message) {
    tell($("found"), message);
    fill($("found-requests"));
  },
});

/** Offers what can be asked for now and the accounts of the last day. */
async function offerNames() {
  const asked = [getJson("/status"), getJson("/history?range=24h")];
  const [{ models, aliases }, { accounts }] = await Promise.all(asked);
  const names = [...aliases.map(({ alias }) => alias), ...models.map(({ model }) => model)];
  $("model-names").replaceChildren(...options(names));
  const used = accounts.filter(({ account, other }) => account !== null && !other);
  $("account-names").replaceChildren(...options(used.map(({ account }) => account)));
}

/** A menu has a choice for what holds, also if it does not offer that by itself. */
function choose(field, value) {
  field.value = value;
  if (field.value === value) return;
  field.append(...options([value]));
  field.value = value;
}

function applyForm() {
  const entries = NAMES.map((name) => [name, form.elements[name].value.trim()]);
  replaceAddress(withQuery("#requests", Object.fromEntries(entries)));
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
  list();
  // Without them the fields can be filled in all the same.
  offerNames().catch(() => undefined);
});
onEvent(() => {
  if (isShown("requests") && !$("request-list").hidden && page === 0) list();
});
