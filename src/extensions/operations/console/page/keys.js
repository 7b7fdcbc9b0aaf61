// Keys: who has one, when it was last used and for how much, made anew (shown once) and revoked.
import { $, button, fill, h, isNarrow, link, table, tell, tone } from "./dom.js";
import { live, now } from "./live.js";
import { getJson, sendJson, withQuery } from "./net.js";
import { addPart, isShown } from "./parts.js";
import { ago, dayText, money, number } from "./words.js";

/** Keys of a page. */
const size = () => (isNarrow() ? 10 : 25);
/** How often the list is asked for again, in milliseconds: the listener reads a file for it. */
const REFRESH_MS = 60_000;
const RPM_FAULT = "A whole number from 1 to 9999999, or nothing for no limit of its own.";
const CONFIGURED =
  "A key in the configuration is revoked there: remove it from keys in gateway.json; " +
  "that is put in force at once.";
const PERIODS = { day: "a day", month: "a month", total: "in total" };

const form = $("new-key");
const rpmField = form.elements["rpm"];
let keys = [];
let uses = new Map();
let spends = new Map();
let page = 0;
let doomed = ""; // the id of the key that is to be revoked, if that is meant

/** The state of a key in words. */
function stateOf({ revoked, expires }) {
  if (revoked !== null) return tone("idle", `revoked ${ago(now() - Date.parse(revoked))}`);
  if (expires === null) return tone("ok", "valid");
  const isOver = Date.parse(expires) <= now();
  return isOver
    ? tone("idle", "expired")
    : tone("ok", `valid until ${dayText(expires.slice(0, 10))}, ${expires.slice(11, 16)} UTC`);
}

async function revoke(id) {
  doomed = "";
  try {
    await sendJson(`/keys/${encodeURIComponent(id)}`, "DELETE");
    tell($("key-outcome"), `${id} is revoked. It is refused from now on.`);
  } catch (error) {
    tell($("key-outcome"), error.message);
  }
  await load();
}

/** Revoking is for good, so it is asked for twice. */
function revocation(key) {
  if (key.configured)
    return h("span", { class: "soft", title: CONFIGURED }, "in the configuration");
  if (key.revoked !== null) return "";
  if (doomed === key.key_id)
    return [
      button("Revoke for good", () => revoke(key.key_id), {
        class: "small danger",
        focus: `yes ${key.key_id}`,
      }),
      " ",
      button("Keep", () => doom(""), { class: "small", focus: `no ${key.key_id}` }),
    ];
  return button("Revoke", () => doom(key.key_id), {
    class: "small",
    focus: `revoke ${key.key_id}`,
    "aria-label": `Revoke ${key.key_id} of ${key.account}`,
  });
}

function doom(id) {
  doomed = id;
  draw();
  const focus = id === "" ? "" : `yes ${id}`;
  const buttons = [...$("key-list").querySelectorAll("button")];
  buttons.find((each) => each.dataset.focus === focus)?.focus();
}

/** What a key may take, in words. Nothing: whatever its account may. */
function limitsOf({ rpm, tokens_per_minute: tokens, budget, models }) {
  return [
    rpm === null ? null : `${number(rpm)} requests a minute`,
    tokens === undefined ? null : `${number(tokens)} tokens a minute`,
    budget === undefined ? null : `a budget of ${budget.amount} ${PERIODS[budget.period]}`,
    models === null ? null : models.join(", "),
  ].filter((part) => part !== null);
}

function row(key) {
  const { key_id: id, account, name } = key;
  const use = uses.get(id);
  const spend = spends.get(id) ?? [];
  const spent = spend.map(({ cost, currency }) => money(cost, currency)).join(" + ");
  const limits = limitsOf(key);
  return [
    [
      link(withQuery("#requests", { key: id }), h("span", { class: "id" }, id)),
      name === null ? null : h("span", { class: "soft" }, name),
    ],
    account,
    stateOf(key),
    limits.length === 0 ? "–" : limits.join("; "),
    use ? ago(now() - use.last) : "–",
    use ? number(use.requests) : "0",
    use ? number(use.refused) : "0",
    spent === "" ? "–" : spent,
    revocation(key),
  ];
}

const COLUMNS = [
  { name: "Key" },
  { name: "Account" },
  { name: "State" },
  { name: "Limits" },
  { name: "Last use" },
  { name: "Requests*", kind: "n" },
  { name: "Refused*", kind: "n" },
  { name: "Spend this month", kind: "n" },
  { name: "" },
];

function draw() {
  const wanted = $("key-search").value.trim().toLowerCase();
  const fits = ({ key_id: id, account, name }) =>
    `${id} ${account} ${name ?? ""}`.toLowerCase().includes(wanted);
  const lastUse = ({ key_id: id }) => uses.get(id)?.last ?? 0;
  const isOver = ({ revoked }) => Number(revoked !== null);
  const found = keys.filter(fits).sort((a, b) => isOver(a) - isOver(b) || lastUse(b) - lastUse(a));
  const pages = Math.max(1, Math.ceil(found.length / size()));
  page = Math.min(page, pages - 1);
  const go = (step) => {
    page += step;
    draw();
  };
  const pager = h(
    "p",
    { class: "pager" },
    h("span", { class: "soft" }, `page ${number(page + 1)} of ${number(pages)}`),
    button("Before", () => go(-1), { disabled: page === 0 }),
    button("Next", () => go(1), { disabled: page + 1 >= pages }),
  );
  const listed = found.slice(page * size(), (page + 1) * size());
  const isConfigured = listed.some(({ configured }) => configured);
  fill(
    $("key-list"),
    table(COLUMNS, listed.map(row), "There is no such key."),
    isConfigured ? h("p", { class: "soft more" }, CONFIGURED) : null,
    h("p", { class: "soft more" }, "* since the gateway started"),
    pages > 1 ? pager : null,
  );
}

/** The costs of this month by key; none where there are no books. */
async function monthSpends() {
  const today = new Date(now()).toISOString().slice(0, 10);
  const span = { from: `${today.slice(0, 7)}-01`, to: today, by: "key" };
  const { rows } = await getJson(withQuery("/costs", span)).catch(() => ({ rows: [] }));
  return Map.groupBy(rows, ({ key_id: id }) => id);
}

async function load() {
  try {
    const [list, history, spend] = await Promise.all([
      getJson("/keys"),
      getJson("/history?range=24h"),
      monthSpends(),
    ]);
    keys = list.keys;
    uses = new Map(history.keys.map((use) => [use.key, use]));
    spends = spend;
    $("account-names").replaceChildren(
      ...[...new Set(keys.map(({ account }) => account))].map((value) => h("option", { value })),
    );
    draw();
  } catch (error) {
    fill($("key-list"), h("p", { class: "bad" }, error.message));
  }
}

/** Whether the limit can be sent. What is wrong with it is said beside the field. */
function checkRpm() {
  const { value, validity } = rpmField;
  const isNumber = /^\d{1,7}$/.test(value) && Number(value) > 0;
  const isFine = isNumber || (value === "" && !validity.badInput);
  tell($("rpm-fault"), isFine ? "" : RPM_FAULT);
  rpmField.setAttribute("aria-invalid", String(!isFine));
  if (!isFine) rpmField.focus();
  return isFine;
}

/** What the form has, as POST /keys takes it. */
function termsOf() {
  const value = (name) => form.elements[name].value.trim();
  const models = value("models")
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);
  const [rpm, tokens, amount] = ["rpm", "tokens", "amount"].map(value);
  return {
    account: value("account"),
    name: value("name") || null,
    rpm: rpm === "" ? null : Number(rpm),
    tokens_per_minute: tokens === "" ? null : Number(tokens),
    budget: amount === "" ? null : { amount, period: value("period") },
    models: models.length === 0 ? null : models,
    expires: value("expires") || null,
  };
}

function showMade({ key, account, key_id: id }) {
  const place = $("key-made");
  const copy = (event) => {
    const done = navigator.clipboard?.writeText(key);
    done?.then(() => {
      event.target.textContent = "Copied";
    });
  };
  place.hidden = false;
  const hide = () => {
    place.replaceChildren();
    place.hidden = true;
  };
  place.replaceChildren(
    h(
      "div",
      { class: "made" },
      h("p", {}, `The key of ${account} (${id}). It is shown this once: only its SHA-256 is kept.`),
      h("code", {}, key),
      h(
        "p",
        { class: "actions" },
        button("Copy the key", copy, { class: "main" }),
        button("Hide it", hide),
      ),
    ),
  );
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!checkRpm()) return;
  try {
    const made = await sendJson("/keys", "POST", termsOf());
    tell($("key-outcome"), "");
    form.reset();
    showMade(made);
  } catch (error) {
    tell($("key-outcome"), error.message);
  }
  await load();
});
// The browser itself holds back a form with a number that is none.
rpmField.addEventListener("invalid", (event) => {
  event.preventDefault();
  checkRpm();
});
rpmField.addEventListener("input", () => {
  tell($("rpm-fault"), "");
  rpmField.removeAttribute("aria-invalid");
});
$("key-search").addEventListener("input", () => {
  page = 0;
  draw();
});
addPart("keys", (_, { find = "" }) => {
  $("key-search").value = find;
  page = 0;
  doomed = "";
  load();
});
setInterval(() => {
  if (isShown("keys") && live.status && doomed === "") load();
}, REFRESH_MS);
