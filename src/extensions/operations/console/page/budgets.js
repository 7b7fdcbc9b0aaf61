// The budgets of accounts and keys, a part of Costs: what is spent, held and left. It is not there
// where nobody has a budget.
import { $, numeric, fill, h, link, meter, table } from "./dom.js";
import { getJson, withQuery } from "./net.js";
import { exactMoney } from "./words.js";

const amount = (name, member) => numeric(name, (row) => exactMoney(row[member], row.currency));

const COLUMNS = [
  {
    name: "Whose",
    of: ({ account, key_id: key }) =>
      account ?? h("span", { class: "id" }, link(withQuery("#keys", { find: key }), key)),
  },
  { name: "A", of: ({ period }) => period },
  amount("Spent", "spent"),
  amount("Held", "held"),
  amount("Left", "left"),
  amount("Of", "amount"),
  { name: "", of: (row) => meter(row.amount > 0 ? row.spent / row.amount : 1) },
  { name: "Renewed (UTC)", of: ({ ends }) => ends?.slice(0, 16).replace("T", " ") ?? "never" },
];

/** Asks how the budgets stand, and draws them. What cannot be asked is not shown. */
export async function loadBudgets() {
  const { budgets = [] } = await getJson("/status").catch(() => ({}));
  $("budgets").hidden = budgets.length === 0;
  fill($("budget-list"), table(COLUMNS, budgets, ""));
}
