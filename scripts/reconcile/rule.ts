// The rule by which one request is billed, of books.md: what the record must say, given what the
// provider stated and what the client saw.

import type { Entry } from "./books.ts";
import { countsOf } from "./books.ts";
import type { Asked } from "./client.ts";
import type { House, Line } from "./house.ts";
import { type Counts, costOf, NO_COUNTS, pico, priceSetting } from "./money.ts";
import { HELD, LEAVE_MS, type ModelName, TABLES } from "./plan.ts";
import type { Call } from "./provider.ts";

/** How the cost of a request is known. */
export type Basis = "provider" | "estimated" | "bounded" | "none";

export interface Verdict {
  /** Pico-units, by the provider's ledger; of a bounded estimate by the record's own counts. */
  readonly cost: bigint;
  readonly counts: Counts;
  readonly basis: Basis;
}

/** What the record may say of the tokens. `most`: any completion up to that. */
interface Expected {
  readonly basis: Basis;
  readonly counts: Counts;
  readonly most?: number;
}

/** Clocks are read in two processes, in milliseconds. */
const SLACK_MS = 50;
/** A client finds out late that its connection is dead. */
const KILL_MS = 1_000;
/** What its client left a busy gateway may open, read on and settle so much later. */
const LEFT_MS = LEAVE_MS + 5_000;

const NONE: Expected = { basis: "none", counts: NO_COUNTS };

/** An estimate: four bytes a token; what the provider stated of the prompt is kept. */
function estimate(call: Call, { promptBytes }: Asked): Counts {
  const prompt = call.early ?? { ...NO_COUNTS, prompt: Math.max(1, Math.ceil(promptBytes / 4)) };
  const completion = Math.max(Math.ceil(call.textBytes / 4), call.early?.completion ?? 0);
  return { ...prompt, completion, reasoning: 0 };
}

const figuresOf = (call: Call, asked: Asked): Expected =>
  call.stated
    ? { basis: "provider", counts: call.stated }
    : { basis: "estimated", counts: estimate(call, asked) };

const bounded = (call: Call, asked: Asked): Expected => {
  const counts = estimate(call, asked);
  return { basis: "bounded", counts, most: counts.completion };
};

/** What may be billed of a call whose client left: how much of it the gateway read is unknown. */
function whereLeft(call: Call, asked: Asked): readonly Expected[] {
  const figures = call.stated ? [figuresOf(call, asked)] : [];
  // Figures that came before any text are complete as long as there is no text.
  const early: Expected[] = call.early ? [{ basis: "provider", counts: call.early }] : [];
  return [NONE, ...figures, ...early, bounded(call, asked)];
}

/** What may stand in the record of a request whose last call at the provider was this. */
function expectations(status: string, call: Call | undefined, asked: Asked): readonly Expected[] {
  if (status === "interrupted" || !call) return status === "completed" ? [] : [NONE];
  if (status === "completed") return call.finished ? [figuresOf(call, asked)] : [];
  if (status === "cancelled") return whereLeft(call, asked);
  if (call.finished) return [];
  // Nothing of a held stream was shown, so that a broken one costs nothing.
  if (call.refused || asked.model === HELD) return [NONE];
  return call.orderly ? [figuresOf(call, asked)] : [NONE, bounded(call, asked)];
}

/** How long after its end for the client a request may still be at work in the gateway. */
const lateOf = ({ verdict }: Asked): number => (verdict === "left" ? LEFT_MS : SLACK_MS);

/** Whether a gateway or a worker was killed while this request was on its way. */
export function wasKilled({ kills }: House, asked: Asked): boolean {
  const late = lateOf(asked);
  return kills.some(
    ({ gateway, at }) =>
      gateway === asked.gateway && at > asked.startedAt - KILL_MS && at < asked.endedAt + late,
  );
}

/** Whether a worker was killed when this request began. */
export const wasHandedOver = ({ kills }: House, { startedAt, gateway }: Asked): boolean =>
  kills.some(
    (kill) => kill.worker && kill.gateway === gateway && Math.abs(kill.at - startedAt) < KILL_MS,
  );

/** The tables of prices that may have been in force when the request began. */
function tablesOf({ changes }: House, asked: Asked, calls: readonly Call[]): number[] {
  const latest = calls[0]?.at ?? asked.endedAt;
  return changes
    .filter(({ from }, index) => {
      const next = changes[index + 1]?.until ?? Infinity;
      return from <= latest + SLACK_MS && next >= asked.startedAt - SLACK_MS;
    })
    .map(({ table }) => table);
}

/** Why this request was not opened like this. Undefined: it was. */
function againstOpening({ open }: Entry, asked: Asked): string | undefined {
  const same = [open["key_id"], open["model_requested"], open["stream"]].join();
  const own = [asked.keyId, asked.model, asked.stream].join();
  if (same !== own) return `opened for ${same}, asked for ${own}`;
  const openedAt = Date.parse(open["time"]);
  return openedAt < asked.startedAt - SLACK_MS || openedAt > asked.endedAt + lateOf(asked)
    ? `opened at ${openedAt}, asked from ${asked.startedAt} to ${asked.endedAt}`
    : undefined;
}

/** Why this end is not what the client saw. Undefined: it is. */
function againstClient(house: House, settle: Line, asked: Asked): string | undefined {
  const { status, http_status, error_code, model_served } = settle;
  const { verdict } = asked;
  if (verdict === "whole") {
    const recorded = `${status} ${http_status} ${model_served}`;
    return recorded === `completed 200 ${asked.served}` ? undefined : `whole, and ${recorded}`;
  }
  if (verdict === "error") {
    const recorded = `${status} ${http_status} ${asked.code && error_code}`;
    const own = `failed ${asked.status} ${asked.code}`;
    return recorded === own ? undefined : `${own}, and ${recorded}`;
  }
  if (status === "cancelled" && verdict !== "left") return "cancelled, and nobody left";
  if (status === "interrupted" && !wasKilled(house, asked)) return "interrupted by no kill";
  return undefined;
}

/** Why these attempts are not the calls that the provider saw. Undefined: they are. */
function againstCalls({ settle }: Entry, calls: readonly Call[]): string | undefined {
  if (settle["status"] === "interrupted") return undefined;
  const models: string[] = settle["attempts"].map(({ model }: Line) => model);
  let at = 0;
  for (const model of models) if (calls[at]?.model === model) at += 1;
  if (at < calls.length)
    return `the provider was called for ${calls.map(({ model }) => model)}, attempts: ${models}`;
  const { model_served: served } = settle;
  const last = calls.at(-1)?.model;
  return served !== null && settle["cost"] !== "0" && served !== last
    ? `${served} is billed, and the provider was last called for ${last}`
    : undefined;
}

function fitsCounts(actual: Counts, { counts, most }: Expected): boolean {
  const { completion } = actual;
  const right = most === undefined ? completion === counts.completion : completion <= most;
  return (
    right &&
    actual.reasoning === counts.reasoning &&
    actual.prompt === counts.prompt &&
    actual.hit === counts.hit &&
    actual.write === counts.write &&
    actual.write1h === counts.write1h
  );
}

/** Whether what a client was told is what was recorded, as far as it was told. */
const states = (told: Partial<Counts> | undefined, actual: Counts): boolean =>
  Object.entries(told ?? {}).every(([name, count]) => actual[name as keyof Counts] === count);

/** Whether an entry is right for a request: what it costs, or why it is not right. */
export function judgeEntry(house: House, entry: Entry, asked: Asked): Verdict | string {
  const calls = house.calls.get(asked.serial) ?? [];
  const { settle } = entry;
  const against =
    againstOpening(entry, asked) ??
    againstClient(house, settle, asked) ??
    againstCalls(entry, calls);
  if (against !== undefined) return against;

  const actual = countsOf(settle["usage"], settle["usage"].cache_write_1h_tokens ?? 0);
  const source: string = settle["usage_source"];
  const expected = expectations(settle["status"], calls.at(-1), asked).find(
    (one) =>
      source === (one.basis === "bounded" ? "estimated" : one.basis) && fitsCounts(actual, one),
  );
  if (!expected) {
    const recorded = `${settle["status"]} with ${source} figures ${JSON.stringify(actual)}`;
    return `${recorded}, and the calls were ${JSON.stringify(calls)}`;
  }
  if (!states(asked.usage, actual))
    return `the client was told ${JSON.stringify(asked.usage)}, recorded ${JSON.stringify(actual)}`;

  const counts = expected.basis === "bounded" ? actual : expected.counts;
  const model = settle["model_served"] as ModelName | null;
  const stated = JSON.stringify(settle["prices"]);
  const costs = tablesOf(house, asked, calls).map((table) => {
    const price = model === null ? undefined : TABLES[table]?.[model];
    const configured = price ? JSON.stringify(priceSetting(price)) : "null";
    return stated === configured ? costOf(counts, price) : undefined;
  });
  // A recovery of the books knows no prices.
  if (settle["status"] === "interrupted") costs.push(0n);
  const right = costs.find((cost) => cost === pico(settle["cost"]));
  return right === undefined
    ? `costs ${settle["cost"]} at ${stated}, by the ledger ${costs} pico-units`
    : { cost: right, counts, basis: expected.basis };
}
