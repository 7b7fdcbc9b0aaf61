// Requests of the books, as the history has those of the last day: made of usage records, receipts and
// lines of the spend log.
import { getJson, withQuery } from "./net.js";

/** The requests of the books with this id. */
export async function findInBooks(id) {
  const { records, receipts, spend } = await getJson(withQuery("/trace", { request_id: id }));
  const byId = new Map(records.map((record) => [record.usage_id, { record }]));
  for (const receipt of receipts)
    byId.set(receipt.spend_id, { ...byId.get(receipt.spend_id), receipt });
  for (const line of spend) byId.set(line.spend_id, { ...byId.get(line.spend_id), line });
  return [...byId.values()].map((known) => fromBooks(id, known));
}

/** How a request of the books ended, as those of memory have it. */
function outcomeIn(status, httpStatus) {
  if (httpStatus >= 400 && httpStatus < 499) return "4xx";
  return { completed: "ok", cancelled: "cancelled" }[status] ?? "5xx";
}

/** What the account is told of it, as a line of the spend log has it. It outlives the line. */
const lineOf = (receipt) =>
  receipt && {
    ...receipt,
    time: receipt.ended_at,
    model_served: receipt.model,
    duration_ms: Date.parse(receipt.ended_at) - Date.parse(receipt.started_at),
    attempts: receipt.attempts.map((attempt) => ({
      ...attempt,
      provider: "–",
      outcome: attempt.outcome === "ok" ? "completed" : attempt.outcome,
    })),
  };

/** When it began and ended. A request that was only opened runs, or was interrupted. */
function timesIn(record, line) {
  if (record) return { started: Date.parse(record.started_at), ended: Date.parse(record.ended_at) };
  const time = Date.parse(line.time);
  if (line.type === "open") return { started: time, ended: null };
  return { started: time - line.duration_ms, ended: time };
}

/** An entry like those of memory, of what the books have of a request; null is what they have not. */
function fromBooks(id, { record, line: found, receipt }) {
  const line = found ?? lineOf(receipt) ?? {};
  const known = { ...line, ...record };
  const usage = { ...record, ...line.usage };
  return {
    ...known,
    ...usage,
    id,
    ...timesIn(record, line),
    outcome: outcomeIn(known.status, line.http_status),
    status: line.http_status ?? known.status,
    key: known.key_id ?? null,
    asked_model: line.model_requested ?? null,
    model: line.model_served ?? record?.model ?? null,
    stream: line.stream ?? null,
    code: line.error_code ?? null,
    asked: null,
    cached_tokens: usage.prompt_cache_hit_tokens,
    cost: known.cost ?? null,
    attempts: line.attempts ?? [],
    prices: receipt?.prices,
  };
}
