// The billed requests that sums are made of, one by one. The listener reads all records of the span
// for a page of them, so they are asked for only when somebody wants them.
import { $, button, clearSelection, fill, h, isNarrow, link, table, tell } from "./dom.js";
import { getJson, withQuery } from "./net.js";
import { moment, money, number, secondText, shortId } from "./words.js";

/** Billed requests of a page. */
const size = () => (isNarrow() ? 10 : 25);

let filter = {};
let count = 0; // of all of them, when they were asked for
let page = 0;
let asking = 0; // only the answer to the last question counts

const COLUMNS = [
  { name: "Ended", kind: "tight" },
  { name: "Request" },
  { name: "Account" },
  { name: "Model" },
  { name: "Status" },
  { name: "Tokens", kind: "n" },
  { name: "Cost", kind: "n" },
];

const row = (record) => [
  moment(record.ended_at),
  link(
    `#requests/${encodeURIComponent(record.gateway_request_id)}`,
    h("span", { class: "id" }, shortId(record.gateway_request_id)),
  ),
  record.account,
  record.model,
  record.status,
  `${number(record.prompt_tokens)} + ${number(record.completion_tokens)}`,
  money(record.cost, record.currency),
];

/** Shows the first page of the records that fit a filter; `requests` is how many there are. */
export function showRecords(wanted, requests) {
  filter = wanted;
  count = requests;
  page = 0;
  return load();
}

/** Shows none: those that stood there are not known to be of what is chosen. */
export function clearRecords() {
  asking += 1;
  tell($("records-time"), "");
  fill($("records"));
}

function go(step) {
  clearSelection();
  page += step;
  load();
}

/** They come in the order in which they ended, so the last page is asked for first. */
async function load() {
  const mine = asking + 1;
  asking = mine;
  const rows = size();
  const from = count - rows * (page + 1);
  try {
    const { records } = await getJson(withQuery("/usage", { ...filter, skip: Math.max(0, from) }));
    if (mine !== asking) return;
    draw(records.slice(0, Math.max(0, Math.min(rows, rows + from))).reverse());
  } catch (error) {
    if (mine !== asking) return;
    clearRecords();
    tell($("records-time"), error.message);
  }
}

function draw(shown) {
  const pages = Math.ceil(count / size());
  const pager = h(
    "p",
    { class: "pager" },
    h("span", { class: "soft" }, `page ${number(page + 1)} of ${number(pages)}`),
    button("Newer", () => go(-1), { disabled: page === 0 }),
    button("Older", () => go(1), { disabled: page + 1 >= pages }),
  );
  tell($("records-time"), `as of ${secondText(Date.now())}`);
  fill($("records"), table(COLUMNS, shown.map(row), "There are none."), pages < 2 ? null : pager);
}
