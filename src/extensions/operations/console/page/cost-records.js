// The billed requests that sums are made of, one by one. The listener reads all records of the span
// for a page of them, so they are asked for only when somebody wants them.
import { $, numeric, fill, h, link, pager, pageSize, table, tell } from "./dom.js";
import { getJson, storyOf, view, withQuery } from "./net.js";
import { moment, money, number, secondText, shortId } from "./words.js";

const COLUMNS = [
  { name: "Ended", kind: "tight", of: (record) => moment(record.ended_at) },
  {
    name: "Request",
    of: ({ gateway_request_id: id }) => link(storyOf(id), h("span", { class: "id" }, shortId(id))),
  },
  { name: "Account", of: ({ account }) => account },
  { name: "Model", of: ({ model }) => model },
  { name: "Status", of: ({ status }) => status },
  numeric(
    "Tokens",
    (record) => `${number(record.prompt_tokens)} + ${number(record.completion_tokens)}`,
  ),
  numeric("Cost", ({ cost, currency }) => money(cost, currency)),
];

/** Shows the first page of the records that fit a filter; `count` is how many there are. */
export const showRecords = (filter, count) => records({ filter, count, page: 0 });

const records = view({
  /** They come in the order in which they ended, so the last page is asked for first. */
  async load({ filter, count, page }) {
    const end = count - pageSize() * page;
    const skip = Math.max(0, end - pageSize());
    const { records: found } = await getJson(withQuery("/usage", { ...filter, skip }));
    return found.slice(0, Math.max(0, end - skip)).reverse();
  },
  draw(shown, place) {
    const go = (page) => records({ ...place, page });
    tell($("records-time"), `as of ${secondText(Date.now())}`);
    fill(
      $("records"),
      table(COLUMNS, shown, "There are none."),
      pager(place.page, place.count, go),
    );
  },
  fail(message) {
    tell($("records-time"), message);
    fill($("records"));
  },
});
