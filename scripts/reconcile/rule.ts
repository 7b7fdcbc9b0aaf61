// The rule by which one request is billed, of books.md: what the record must say, given what the
// provider stated and what the client saw.

import type { Entry } from "./books.ts";
import { countsOf } from "./books.ts";
import type { Asked } from "./client.ts";
import { type Basis, type Expected, lostStep, type Step, stepsOf } from "./expected.ts";
import type { Disturbance, House, Line } from "./house.ts";
import { type Counts, costOf, pico, priceSetting, sum } from "./money.ts";
import { CONTINUED, LEAVE_MS, type ModelName, TABLES } from "./plan.ts";

export interface Verdict {
  /** Pico-units, by the provider's ledger; of a bounded estimate by the record's own counts. */
  readonly cost: bigint;
  readonly counts: Counts;
  readonly basis: Basis;
}

/** Clocks are read in two processes, in milliseconds. */
const SLACK_MS = 50;
/** A client finds out late that its connection is dead. */
const KILL_MS = 1_000;
/** A power failure takes the last second of the books, and the time that it took to write them. */
const LOST_MS = 1_200;
/** What its client left a busy gateway may open, read on and settle so much later. */
const LEFT_MS = LEAVE_MS + 5_000;

/** How long after its end for the client a request may still be at work in the gateway. */
function lateOf({ disturbances }: House, asked: Asked): number {
  const { verdict, startedAt, endedAt, troubles = [] } = asked;
  const late = verdict === "left" ? LEFT_MS : SLACK_MS;
  // The gateway stood still, or the request did on its way.
  const still = disturbances.filter(
    ({ kind, from, until }) => kind === "freeze" && from < endedAt + late && until > startedAt,
  );
  return [...still, ...troubles].reduce((total, { from, until }) => total + until - from, late);
}

/** Whether a gateway or a worker was killed while this request was on its way. */
export function wasKilled(house: House, asked: Asked): boolean {
  const late = lateOf(house, asked);
  return house.kills.some(
    ({ gateway, at }) =>
      gateway === asked.gateway && at > asked.startedAt - KILL_MS && at < asked.endedAt + late,
  );
}

/** Whether the world failed in this way while this request was on its way, or just after. */
export function wasDisturbed(house: House, kind: Disturbance["kind"], asked: Asked): boolean {
  const late = lateOf(house, asked) + LOST_MS;
  return house.disturbances.some(
    (each) =>
      each.kind === kind &&
      each.until + KILL_MS > asked.startedAt &&
      each.from < asked.endedAt + late,
  );
}

/**
 * Whether a call may be lost on its way to the provider. The reference edition takes a request for
 * sent when it gives it to Node's fetch, which may not have sent it yet when the client leaves.
 */
const mayBeLost = (house: House, asked: Asked): boolean =>
  wasDisturbed(house, "provider", asked) || (house.isReference && asked.verdict === "left");

/** The tables of prices that may have been in force when the request began. */
function tablesOf(house: House, { open }: Entry, asked: Asked): number[] {
  const { calls, changes } = house;
  // Of a request that its client has left the opening may come late, and the provider hear nothing.
  const latest = calls.get(asked.serial)?.[0]?.at ?? Date.parse(open["time"]);
  return changes
    .filter(({ from }, index) => {
      const next = changes[index + 1]?.until ?? Infinity;
      return from <= latest + SLACK_MS && next >= asked.startedAt - SLACK_MS;
    })
    .map(({ table }) => table);
}

/** Why this request was not opened like this. Undefined: it was. */
function againstOpening(house: House, { open }: Entry, asked: Asked): string | undefined {
  const same = [open["key_id"], open["model_requested"], open["stream"]].join();
  const own = [asked.keyId, asked.model, asked.stream].join();
  if (same !== own) return `opened for ${same}, asked for ${own}`;
  const openedAt = Date.parse(open["time"]);
  return openedAt < asked.startedAt - SLACK_MS || openedAt > asked.endedAt + lateOf(house, asked)
    ? `opened at ${openedAt}, asked from ${asked.startedAt} to ${asked.endedAt}`
    : undefined;
}

/** Why the text is not what the provider has written. Undefined: it is, or it was continued. */
function againstText({ calls }: House, { serial, model, text }: Asked): string | undefined {
  const written = calls.get(serial)?.at(-1)?.text;
  return model === CONTINUED || text === written
    ? undefined
    : `the text ${JSON.stringify(text)}, and ${JSON.stringify(written)} was written`;
}

/** Why this is not the end of a whole reply. Undefined: it is. */
function againstWhole(settle: Line, asked: Asked): string | undefined {
  const { status, http_status, model_served } = settle;
  const recorded = `${status} ${http_status} ${model_served}`;
  // The other streams name their model at their start, and another may go on with them.
  const isFixed = asked.api === "chat" || asked.model !== CONTINUED;
  const own = `completed 200 ${isFixed ? asked.served : model_served}`;
  return recorded === own ? undefined : `${own}, and ${recorded}`;
}

/** Why this end is not what the client saw. Undefined: it is. */
function againstClient(house: House, settle: Line, asked: Asked): string | undefined {
  const { status, http_status, error_code } = settle;
  const { verdict } = asked;
  // A power failure has taken the settle line, and not the open line.
  if (status === "interrupted" && wasDisturbed(house, "power", asked)) return undefined;
  if (asked.foreign !== undefined) return `it has ${asked.foreign} of another request`;
  if (verdict === "whole") return againstText(house, asked) ?? againstWhole(settle, asked);
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
function againstCalls(house: House, { settle }: Entry, asked: Asked): string | undefined {
  const calls = house.calls.get(asked.serial) ?? [];
  if (settle["status"] === "interrupted") return undefined;
  const models: string[] = settle["attempts"].map(({ model }: Line) => model);
  let at = 0;
  for (const model of models) if (calls[at]?.model === model) at += 1;
  if (at < calls.length)
    return `the provider was called for ${calls.map(({ model }) => model)}, attempts: ${models}`;
  return undefined;
}

/** What a record bills of one attempt, and at which prices. */
interface Part {
  readonly model: string | null;
  readonly counts: Counts;
  readonly cost: bigint;
  /** JSON. */
  readonly prices: string;
}

/** The share of each attempt that has one, or else the request as a whole. */
function partsOf({ attempts, ...whole }: Line): readonly Part[] {
  const partOf = (model: string | null, usage: Line, { cost, prices = null }: Line): Part => ({
    model,
    counts: countsOf(usage, usage["cache_write_1h_tokens"] ?? 0),
    cost: pico(cost),
    prices: JSON.stringify(prices),
  });
  const shared: Line[] = attempts.filter(({ share }: Line) => share);
  if (shared.length > 0) return shared.map(({ model, share }) => partOf(model, share, share));
  const { model_served, usage, usage_source } = whole;
  return usage_source === "none" ? [] : [partOf(model_served, usage, whole)];
}

/** Whether the parts of a record come to what it says of the whole request. */
function isSum(parts: readonly Part[], actual: Counts, cost: string): boolean {
  const names = Object.keys(actual) as (keyof Counts)[];
  const totalOf = (name: keyof Counts) =>
    parts.reduce((total, { counts }) => total + counts[name], 0);
  return (
    names.every((name) => totalOf(name) === actual[name]) &&
    sum(parts.map((part) => part.cost)) === pico(cost)
  );
}

/** Whether this may be billed of a call. */
function isWay({ model, counts }: Part, step: Step, { counts: expected, most }: Expected): boolean {
  const completion = most === undefined ? expected.completion : counts.completion;
  return (
    (step.model === undefined || step.model === model) &&
    counts.completion <= (most ?? Infinity) &&
    JSON.stringify(counts) === JSON.stringify({ ...expected, completion })
  );
}

/** All ways in which these parts are what is billed of these calls: how each part is known. */
function explanations(
  [part, ...parts]: readonly Part[],
  [step, ...steps]: readonly Step[],
): readonly Basis[][] {
  if (!step) return part ? [] : [[]];
  return step.ways.flatMap((way): readonly Basis[][] => {
    if (way.basis === "none") return explanations(part ? [part, ...parts] : [], steps);
    if (!part || !isWay(part, step, way)) return [];
    return explanations(parts, steps).map((bases) => [way.basis, ...bases]);
  });
}

/** How all parts together are known. */
function basisOf(bases: readonly Basis[]): Basis {
  if (bases.length === 0) return "none";
  if (bases.every((basis) => basis === "provider")) return "provider";
  return bases.includes("bounded") ? "bounded" : "estimated";
}

/** How the ledger explains a record with these parts. Undefined: it does not. */
function explained(house: House, { settle }: Entry, asked: Asked, parts: readonly Part[]) {
  const { status, attempts, usage_source: source } = settle;
  const calls = house.calls.get(asked.serial) ?? [];
  const steps = stepsOf(status, calls, asked, house.isReference);
  const isLost = attempts.length > calls.length && mayBeLost(house, asked);
  const all = isLost ? [...steps, lostStep(asked)] : steps;
  if (status === "completed" && all.length === 0) return undefined;
  return explanations(parts, all)
    .map(basisOf)
    .find((basis) => source === basis.replace("bounded", "estimated"));
}

const priceOf = (table: number, model: string | null) => TABLES[table]?.[model as ModelName];

/** The member `prices` of what is billed by a table, as JSON. */
function settingOf(table: number, model: string | null): string {
  const price = priceOf(table, model);
  return JSON.stringify(price ? priceSetting(price) : null);
}

const costBy = (table: number, { counts, model }: Part): bigint =>
  costOf(counts, priceOf(table, model));

/** Whether what a client was told is what was recorded, as far as it was told. */
const states = (told: Partial<Counts> | undefined, actual: Counts): boolean =>
  Object.entries(told ?? {}).every(([name, count]) => actual[name as keyof Counts] === count);

/** Whether an entry is right for a request: what it costs, or why it is not right. */
export function judgeEntry(house: House, entry: Entry, asked: Asked): Verdict | string {
  const { settle } = entry;
  const against =
    againstOpening(house, entry, asked) ??
    againstClient(house, settle, asked) ??
    againstCalls(house, entry, asked);
  if (against !== undefined) return against;

  const { status, cost } = settle;
  const parts = partsOf(settle);
  const actual = countsOf(settle["usage"], settle["usage"].cache_write_1h_tokens ?? 0);
  if (!isSum(parts, actual, cost)) return "the shares of its attempts are not its sum";
  const basis = explained(house, entry, asked, parts);
  if (basis === undefined) {
    const recorded = `${status} with ${settle["usage_source"]} figures ${JSON.stringify(actual)}`;
    return `${recorded}, and the calls were ${JSON.stringify(house.calls.get(asked.serial))}`;
  }
  const verdict = { cost: pico(cost), counts: actual, basis };
  // A recovery of the books knows no prices, and no client was told what it says.
  if (status === "interrupted") return verdict;
  if (!states(asked.usage, actual))
    return `the client was told ${JSON.stringify(asked.usage)}, recorded ${JSON.stringify(actual)}`;
  const stated = JSON.stringify(settle["prices"]);
  const tables = tablesOf(house, entry, asked);
  const isRight = (table: number): boolean =>
    stated === settingOf(table, settle["model_served"]) &&
    parts.every((part) => part.prices === settingOf(table, part.model)) &&
    parts.every((part) => part.cost === costBy(table, part));
  const ledger = tables.map((table) => parts.map((part) => costBy(table, part)));
  return tables.some(isRight)
    ? verdict
    : `costs ${cost} at ${stated}, by the ledger ${ledger} pico-units`;
}
