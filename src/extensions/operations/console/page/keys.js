// The view Keys: lists keys with their last use and spending, creates keys (shown once) and revokes
// them.
import { $, button, fill, h, id, link, soft, table, tell, tone } from "./dom.js";
import { addView, getJson, now, refresh, withQuery } from "./views.js";
import { ago, membersText, money, number } from "./words.js";

/** How often the list is reloaded, in milliseconds. Each reload reads a month of the books. */
const KEYS_MS = 60_000;

const newKey = $("new-key");

/** The state of a key in words. */
function stateOf({ revoked, expires }) {
  if (revoked !== null)
    return { tone: "idle", text: `revoked ${ago(now() - Date.parse(revoked))}` };
  if (expires === null) return { tone: "ok", text: "valid" };
  if (Date.parse(expires) <= now()) return { tone: "idle", text: "expired" };
  return { tone: "ok", text: `valid until ${expires.slice(0, 16).replace("T", " ")} UTC` };
}

/** The limits of a key in words. Empty: only its account's limits apply. */
const limitsText = ({ rpm, tokens_per_minute, budget, models }) =>
  membersText({
    rpm,
    tokens_per_minute,
    budget: budget && `${budget.amount}/${budget.period}`,
    models,
  });

/** Sends a change of the keys and reloads the list. Shows an error and returns undefined. */
async function change(path, method, body) {
  const headers = { "Content-Type": "application/json" };
  tell($("key-outcome"), "");
  try {
    return await getJson(path, { method, headers, body: JSON.stringify(body) });
  } catch (error) {
    tell($("key-outcome"), error.message);
    return undefined;
  } finally {
    refresh();
  }
}

function revocation({ key_id: key, account, configured, revoked }) {
  if (configured) return soft("in the configuration");
  if (revoked !== null) return null;
  const ask = async () => {
    if (!confirm(`Revoke ${key} of ${account} for good?`)) return;
    const answer = await change(`/keys/${encodeURIComponent(key)}`, "DELETE");
    if (answer)
      tell($("key-outcome"), `${key} is revoked: the gateway refuses it within a second.`);
  };
  return button("Revoke", ask, { class: "small", "aria-label": `Revoke ${key} of ${account}` });
}

const KEYS = [
  [
    "Key",
    ({ key_id: key, name }) => [
      link(withQuery("#requests", { key }), id(key)),
      name !== null && soft(name),
    ],
  ],
  ["Account", "account"],
  ["State", (key) => tone(stateOf(key))],
  ["Limits", limitsText],
  ["Last use", ({ last }) => (last > 0 ? ago(now() - last) : null)],
  ["Requests*", "requests", "n"],
  ["Refused*", "refused", "n"],
  [
    "Spent this month",
    ({ spend }) => spend.map(({ cost, currency }) => money(cost, currency)).join(" + "),
    "n",
  ],
  ["Revoke", revocation],
];

/** The use of a key that was never used. */
const UNUSED_KEY = { last: 0, requests: 0, refused: 0 };
/** The use of a key that the history may have dropped. */
const UNKNOWN_KEY = { last: 0 };
/** The most keys in the history, which keeps those that were used last. */
const MOST_USES = 1_000;

/** The costs of this month by key; empty if the books cannot be read. */
async function monthSpends() {
  const month = new Date(now()).toISOString().slice(0, 7);
  const rows = [];
  for (;;) {
    const costs = getJson(withQuery("/costs", { month, by: "key", skip: rows.length }));
    const page = await costs.catch(() => ({ rows: [] }));
    rows.push(...page.rows);
    if (page.rows.length === 0 || rows.length >= page.count) return rows;
  }
}

addView("keys", {
  load: ({ query: { find = "" } }) =>
    Promise.all([
      getJson(withQuery("/keys", { find })),
      getJson("/history?range=24h"),
      monthSpends(),
    ]),
  draw([{ keys, total }, history, spends]) {
    const other = history.keys.length < MOST_USES ? UNUSED_KEY : UNKNOWN_KEY;
    const rows = keys.map((key) => ({
      ...other,
      ...history.keys.find((use) => use.key === key.key_id),
      ...key,
      spend: spends.filter((row) => row.key_id === key.key_id),
    }));
    const weight = ({ revoked, last }) => (revoked === null ? 1e15 : 0) + last;
    rows.sort((a, b) => weight(b) - weight(a));
    const rest = total > rows.length && `${number(total - rows.length)} older keys are not shown.`;
    fill($("key-list"), table(KEYS, rows, "No key matches."), rest && h("p", rest));
    return KEYS_MS;
  },
});

/** The content of the form, as the body of POST /keys. */
function termsOf() {
  const fields = [...new FormData(newKey)].map(([name, value]) => [name, value.trim() || null]);
  const { amount, period, rpm, tokens, models, ...others } = Object.fromEntries(fields);
  return {
    ...others,
    rpm: rpm && Number(rpm),
    tokens_per_minute: tokens && Number(tokens),
    budget: amount && { amount, period },
    models: models?.split(",").map((name) => name.trim()),
  };
}

newKey.addEventListener("submit", async (event) => {
  event.preventDefault();
  // A second click before the answer would make a key whose secret nobody sees.
  const { submitter } = event;
  submitter.disabled = true;
  const made = await change("/keys", "POST", termsOf());
  submitter.disabled = false;
  if (!made) return;
  newKey.reset();
  const { key, account, key_id: name } = made;
  const once = `The key of ${account} (${name}). Copy it now: the gateway keeps only its SHA-256.`;
  fill($("key-made"), h("p", once), h("code", key));
});
