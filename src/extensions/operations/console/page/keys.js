// Keys: who has one, when it was last used and for how much, made anew (shown once) and revoked.
import {
  $,
  button,
  copy,
  fill,
  fillFirst,
  h,
  link,
  numeric,
  options,
  soft,
  table,
  tell,
  tone,
} from "./dom.js";
import { live, now } from "./live.js";
import { getJson, sendJson, view, withQuery } from "./net.js";
import { addPart, isShown } from "./parts.js";
import { ago, dayText, money, number } from "./words.js";

/** How often the list is asked for again, in milliseconds: the listener reads a file for it. */
const REFRESH_MS = 60_000;
const PERIODS = { day: "a day", month: "a month", total: "in total" };

const form = $("new-key");
const dialog = $("revocation");
let keys = []; // each with its use since the start, and its spend of this month

/** The state of a key in words. */
function stateOf({ revoked, expires }) {
  if (revoked !== null)
    return { tone: "idle", text: `revoked ${ago(now() - Date.parse(revoked))}` };
  if (expires === null) return { tone: "ok", text: "valid" };
  if (Date.parse(expires) <= now()) return { tone: "idle", text: "expired" };
  const end = `${dayText(expires.slice(0, 10))}, ${expires.slice(11, 16)} UTC`;
  return { tone: "ok", text: `valid until ${end}` };
}

/** What a key may take, in words. Nothing: whatever its account may. */
function limitsText({ rpm, tokens_per_minute: tokens, budget, models }) {
  const limits = [
    rpm !== null && `${number(rpm)} requests a minute`,
    tokens !== undefined && `${number(tokens)} tokens a minute`,
    budget && `a budget of ${budget.amount} ${PERIODS[budget.period]}`,
    models?.join(", "),
  ];
  return limits.filter(Boolean).join("; ") || "–";
}

function revocation(key) {
  if (key.configured) return soft("in the configuration");
  if (key.revoked !== null) return "";
  const ask = () => {
    dialog.dataset.key = key.key_id;
    tell($("revoked-key"), `Revoke ${key.key_id} of ${key.account}?`);
    dialog.showModal();
  };
  return button("Revoke", ask, {
    class: "small",
    "data-focus": key.key_id,
    "aria-label": `Revoke ${key.key_id} of ${key.account}`,
  });
}

const COLUMNS = [
  {
    name: "Key",
    of: ({ key_id: id, name }) => [
      link(withQuery("#requests", { key: id }), h("span", { class: "id" }, id)),
      name !== null && soft(name),
    ],
  },
  { name: "Account", of: ({ account }) => account },
  { name: "State", of: (key) => tone(stateOf(key)) },
  { name: "Limits", of: limitsText },
  { name: "Last use", of: ({ use }) => (use ? ago(now() - use.last) : "–") },
  numeric("Requests*", ({ use }) => number(use?.requests ?? 0)),
  numeric("Refused*", ({ use }) => number(use?.refused ?? 0)),
  numeric(
    "Spend this month",
    ({ spend = [] }) => spend.map(({ cost, currency }) => money(cost, currency)).join(" + ") || "–",
  ),
  { name: "", of: revocation },
];

function draw() {
  const wanted = $("key-search").value.trim().toLowerCase();
  const fits = ({ key_id: id, account, name }) =>
    `${id} ${account} ${name ?? ""}`.toLowerCase().includes(wanted);
  const weight = ({ revoked, use }) => (revoked === null ? 1e15 : 0) + (use?.last ?? 0);
  const found = keys.filter(fits).sort((a, b) => weight(b) - weight(a));
  fillFirst("key-list", found, (rows) => table(COLUMNS, rows, "There is no such key."));
}

/** The costs of this month by key; none where there are no books. */
async function monthSpends() {
  const today = new Date(now()).toISOString().slice(0, 10);
  const span = { from: `${today.slice(0, 7)}-01`, to: today, by: "key" };
  const { rows } = await getJson(withQuery("/costs", span)).catch(() => ({ rows: [] }));
  return Map.groupBy(rows, ({ key_id: id }) => id);
}

const list = view({
  load: () => Promise.all([getJson("/keys"), getJson("/history?range=24h"), monthSpends()]),
  draw([listed, history, spends]) {
    const uses = new Map(history.keys.map((use) => [use.key, use]));
    keys = listed.keys.map((key) => ({
      ...key,
      use: uses.get(key.key_id),
      spend: spends.get(key.key_id),
    }));
    const accounts = new Set(keys.map(({ account }) => account));
    $("account-names").replaceChildren(...options([...accounts]));
    draw();
  },
  fail: (message) => fill($("key-list"), h("p", { class: "bad" }, message)),
});

/** Does something to the keys, and shows how that ended, and all keys. */
async function change(act) {
  try {
    tell($("key-outcome"), await act());
  } catch (error) {
    tell($("key-outcome"), error.message);
  }
  list();
}

/** What the form has, as POST /keys takes it. */
function termsOf() {
  const fields = [...new FormData(form)].map(([name, value]) => [name, value.trim() || null]);
  const {
    amount,
    period,
    rpm,
    tokens_per_minute: tokens,
    models,
    ...others
  } = Object.fromEntries(fields);
  const names = models?.split(",").map((name) => name.trim());
  return {
    ...others,
    rpm: rpm && Number(rpm),
    tokens_per_minute: tokens && Number(tokens),
    budget: amount && { amount, period },
    models: names?.filter(Boolean) ?? null,
  };
}

function showMade({ key, account, key_id: id }) {
  const place = $("key-made");
  const onCopy = async ({ target }) => {
    if (await copy(key)) target.textContent = "Copied";
  };
  place.replaceChildren(
    h("p", `The key of ${account} (${id}). It is shown this once: only its SHA-256 is kept.`),
    h("code", key),
    h(
      "p",
      { class: "actions" },
      button("Copy the key", onCopy, { class: "main" }),
      button("Hide it", () => place.replaceChildren()),
    ),
  );
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  change(async () => {
    showMade(await sendJson("/keys", "POST", termsOf()));
    form.reset();
    return "";
  });
});
dialog.addEventListener("close", () => {
  const id = dialog.dataset.key;
  if (dialog.returnValue !== "revoke") return;
  dialog.returnValue = "";
  change(async () => {
    await sendJson(`/keys/${encodeURIComponent(id)}`, "DELETE");
    return `${id} is revoked. It is refused from now on.`;
  });
});
$("key-search").addEventListener("input", draw);
addPart("keys", (_, { find = "" }) => {
  $("key-search").value = find;
  list();
});
setInterval(() => {
  if (isShown("keys") && live.status) list();
}, REFRESH_MS);
