// Requests from the books (receipts, lines of the spend log, usage records) in the form of the
// history's entries.
import { getJson, withQuery } from "./views.js";

/** The requests of the books with this id. */
export async function findInBooks(id) {
  const { receipts, spend, records } = await getJson(withQuery("/trace", { request_id: id }));
  const found = new Map();
  for (const part of [...receipts, ...spend, ...records]) {
    const usageId = part.usage_id ?? part.spend_id;
    found.set(usageId, { ...found.get(usageId), ...part.usage, ...part });
  }
  return [...found.values()].map((known) => ({ ...known, ...asInMemory(known), id }));
}

/** The outcome, as in an entry of the history. */
function outcomeOf({ status, http_status: httpStatus }) {
  if (status === "completed") return "ok";
  if (status === "cancelled") return "cancelled";
  return httpStatus >= 400 && httpStatus < 500 ? "4xx" : "5xx";
}

/** The members that an entry of the history names differently. Without an end it is running. */
const asInMemory = (known) => ({
  started: Date.parse(known.started_at ?? known.time),
  ended: known.ended_at === undefined ? null : Date.parse(known.ended_at),
  duration_ms: Date.parse(known.ended_at) - Date.parse(known.started_at),
  outcome: outcomeOf(known),
  status: known.http_status ?? known.status,
  key: known.key_id,
  asked_model: known.model_requested,
  code: known.error_code ?? null,
  cached_tokens: known.prompt_cache_hit_tokens,
  attempts: known.attempts ?? [],
});
