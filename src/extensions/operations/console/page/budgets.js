// The budgets of accounts and keys, a part of Costs: what is spent, held and left. It is not there
// where nobody has a budget.
import { $, fill, h, link, meter, table } from "./dom.js";
import { getJson, withQuery } from "./net.js";
import { exactMoney, toPico } from "./words.js";

const COLUMNS = [
  { name: "Whose" },
  { name: "A" },
  { name: "Spent", kind: "n" },
  { name: "Held", kind: "n" },
  { name: "Left", kind: "n" },
  { name: "Of", kind: "n" },
  { name: "" },
  { name: "Renewed (UTC)" },
];

/** The share of a budget that is spent, from 0 to 1. */
function share({ spent, amount }) {
  const whole = toPico(amount);
  return whole === 0n ? 1 : Number((toPico(spent) * 1000n) / whole) / 1000;
}

const rowOf = (row) => [
  row.account === null
    ? h("span", { class: "id" }, link(withQuery("#keys", { find: row.key_id }), row.key_id))
    : row.account,
  row.period,
  exactMoney(row.spent, row.currency),
  exactMoney(row.held, row.currency),
  exactMoney(row.left, row.currency),
  exactMoney(row.amount, row.currency),
  meter(share(row)),
  row.ends === null ? "never" : row.ends.slice(0, 16).replace("T", " "),
];

/** Asks how the budgets stand, and draws them. What cannot be asked is not shown. */
export async function loadBudgets() {
  const { budgets = [] } = await getJson("/status").catch(() => ({}));
  $("budgets").hidden = budgets.length === 0;
  fill($("budget-list"), table(COLUMNS, budgets.map(rowOf), ""));
}
