// The view Requests: pages of running and ended requests, with filters in the URL; and the details
// of one request. Recent requests come from the history, older ones from the books.
import { $, fill, h, id, link, soft, table, tell, tone } from "./dom.js";
import { findInBooks } from "./from-books.js";
import { storyElement } from "./story.js";
import { addView, getJson, now, storyOf, withQuery } from "./views.js";
import { money, number, plural, requestState, span, when } from "./words.js";

/** Requests on one page. */
const REQUESTS_PAGE = 25;

/** The requested model and, if it differs, the one that served. */
const modelText = ({ asked_model: asked, model }) =>
  asked && model && model !== asked ? [asked, soft(`→ ${model}`)] : (asked ?? model);

const REQUESTS = [
  ["Time", ({ ended, started }) => when(ended ?? started)],
  ["Request", ({ id: request }) => link(storyOf(request), id(request.slice(0, 60)))],
  ["Status", (entry) => tone(requestState(entry))],
  ["Account", "account"],
  ["Model", modelText],
  ["Took", ({ started, duration_ms: ms }) => span(ms ?? now() - started), "n"],
  ["Prompt tokens", "prompt_tokens", "n"],
  ["Completion", "completion_tokens", "n"],
  ["Cost", ({ cost, currency }) => cost && money(cost, currency), "n"],
];

/** Links to the previous and next page of a list. The page begins after `skip` of `count` items. */
export function pager({ name, query }, { skip, size, count }) {
  const to = (text, place) => link(withQuery(`#${name}`, { ...query, skip: place }), text);
  return h(
    "p",
    { class: "pager" },
    skip > 0 && to("Previous", Math.max(0, skip - size)),
    skip + size < count && to("Next", skip + size),
  );
}

/** The requests with this id: from the history, and older ones from the books. */
async function findRequests(request) {
  const { requests } = await getJson(withQuery("/requests", { id: request, limit: 100 }));
  const exact = requests.filter((entry) => entry.id === request);
  const inBooks = await findInBooks(request).catch((error) => {
    if (exact.length === 0) throw error;
    return [];
  });
  // Skip the last ones in the books: these are the requests of the history that were opened there.
  const opened = exact.filter(({ stream }) => stream !== null).length;
  return [...exact, ...inBooks.slice(0, Math.max(0, inBooks.length - opened)).reverse()];
}

function drawStory(entries, request) {
  const nothing = `The gateway knows nothing about ${request}. The access log may have it.`;
  fill(
    $("story"),
    h("p", link("#requests", "← All requests")),
    entries.length > 0 ? entries.map(storyElement) : h("p", { class: "card" }, nothing),
  );
  return entries.some(({ ended }) => ended === null) ? 0 : undefined;
}

function drawList({ requests, count, running }, place) {
  const skip = Number(place.query.skip ?? 0);
  tell($("found"), `${plural(count, "request")}, ${number(running)} running now.`);
  fill(
    $("found-requests"),
    table(REQUESTS, requests, "No requests match."),
    pager(place, { skip, size: REQUESTS_PAGE, count }),
  );
  return skip === 0 ? 0 : undefined;
}

addView("requests", {
  load: ({ id: request, query }) =>
    request === ""
      ? getJson(withQuery("/requests", { limit: REQUESTS_PAGE, ...query }))
      : findRequests(request),
  draw(loaded, place) {
    const isStory = place.id !== "";
    $("request-list").hidden = isStory;
    $("story").hidden = !isStory;
    return isStory ? drawStory(loaded, place.id) : drawList(loaded, place);
  },
});
