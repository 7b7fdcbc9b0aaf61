// The rule by which one request is billed, of books.md: what the record must say, given what the
// provider stated and what the client saw.

import type { Entry } from "./books.ts";
import { countsOf } from "./books.ts";
import type { Asked } from "./client.ts";
import { continuedParts, type Part } from "./continued.ts";
import { type Basis, broken, expectations } from "./expected.ts";
import type { Disturbance, House, Line } from "./house.ts";
import { type Counts, costOf, NO_COUNTS, pico, priceSetting, sum } from "./money.ts";
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

/** Whether a worker was killed when this request began. */
export const wasHandedOver = ({ kills }: House, { startedAt, gateway }: Asked): boolean =>
  kills.some(
    (kill) => kill.worker && kill.gateway === gateway && Math.abs(kill.at - startedAt) < KILL_MS,
  );

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
  // A continuation that was refused is the last call, and not billed.
  if (asked.model === CONTINUED) return undefined;
  const isLost = models.length > calls.length && mayBeLost(house, asked);
  if (isLost) return undefined;
  const { model_served: served } = settle;
  const last = calls.at(-1)?.model;
  return served !== null && settle["cost"] !== "0" && served !== last
    ? `${served} is billed, and the provider was last called for ${last}`
    : undefined;
}

/** Why the shares of the attempts are not the whole. Undefined: they are, or there are none. */
function againstShares({ settle }: Entry): string | undefined {
  const shares: Line[] = settle["attempts"].flatMap(({ share }: Line) => share ?? []);
  if (shares.length === 0) return undefined;
  const total = (name: string) => shares.reduce((tokens, share) => tokens + share[name], 0);
  const whole = [
    total("prompt_tokens") === settle["usage"].prompt_tokens,
    total("completion_tokens") === settle["usage"].completion_tokens,
    sum(shares.map(({ cost }) => pico(cost))) === pico(settle["cost"]),
  ];
  if (!whole.every((each) => each)) return "the shares of its attempts are not its sum";
  return shares.every((share) => costOfShare(share) === pico(share["cost"]))
    ? undefined
    : "the cost of an attempt does not follow from its prices and tokens";
}

/** What the tokens of an attempt cost by the prices that stand beside them. */
function costOfShare({ prices, ...share }: Line): bigint {
  if (!prices) return 0n;
  const { input_cache_miss, input_cache_hit, input_cache_write, input_cache_write_1h } = prices;
  return costOf(countsOf(share, share["cache_write_1h_tokens"] ?? 0), {
    miss: input_cache_miss.toFixed(6),
    output: prices.output.toFixed(6),
    ...(input_cache_hit !== undefined && { hit: input_cache_hit.toFixed(6) }),
    ...(input_cache_write !== undefined && { write: input_cache_write.toFixed(6) }),
    ...(input_cache_write_1h !== undefined && { write1h: input_cache_write_1h.toFixed(6) }),
  });
}

/** The sum of what is billed of several calls. */
const together = (parts: readonly Part[]): Counts =>
  parts
    .map(({ expected }) => expected.counts)
    .reduce(
      (a, b) => ({
        prompt: a.prompt + b.prompt,
        hit: a.hit + b.hit,
        write: a.write + b.write,
        write1h: a.write1h + b.write1h,
        completion: a.completion + b.completion,
        reasoning: a.reasoning + b.reasoning,
      }),
      NO_COUNTS,
    );

/** All ways to make a total of numbers, each of which is at most one of these. */
function sumsOf(total: number, [most, ...others]: readonly number[]): readonly number[][] {
  if (most === undefined) return total === 0 ? [[]] : [];
  return Array.from({ length: Math.min(most, total) + 1 }, (_, first) =>
    sumsOf(total - first, others).map((rest) => [first, ...rest]),
  ).flat();
}

/** The calls with completions that are known: bounded ones share what the others leave of the sum. */
function settleBounds(parts: readonly Part[], actual: Counts): readonly (readonly Part[])[] {
  const open = parts.filter(({ expected }) => expected.most !== undefined);
  const known = together(parts.filter((part) => !open.includes(part))).completion;
  const most = open.map(({ expected }) => expected.most!);
  return sumsOf(actual.completion - known, most).map((completions) =>
    parts.map((part) => {
      const completion = completions[open.indexOf(part)];
      if (completion === undefined) return part;
      const counts = { ...part.expected.counts, completion };
      return { ...part, expected: { ...part.expected, counts } };
    }),
  );
}

/** How all these calls together are known. */
function basisOf(parts: readonly Part[]): Basis {
  const bases = parts.map(({ expected }) => expected.basis);
  if (bases.every((basis) => basis === "none")) return "none";
  if (bases.every((basis) => basis === "provider")) return "provider";
  return bases.includes("bounded") ? "bounded" : "estimated";
}

/** All that may have been billed, with every completion known. */
function candidates(house: House, entry: Entry, asked: Asked, actual: Counts) {
  const { status, model_served: model } = entry.settle;
  const calls = house.calls.get(asked.serial) ?? [];
  const last = calls.at(-1);
  const isBroken = last ? last.troubles.length > 0 : mayBeLost(house, asked);
  const expected = [
    ...expectations(status, last, asked, house.isReference),
    ...(isBroken && status !== "interrupted" ? broken(last, asked) : []),
  ];
  const sets =
    asked.model === CONTINUED && asked.stream && last
      ? continuedParts(status, calls, asked)
      : expected.map((each) => [{ model, expected: each }]);
  return sets.flatMap((parts) => settleBounds(parts, actual));
}

/** What these calls cost together, at the prices of one table. */
const costAt = (table: number, parts: readonly Part[]): bigint =>
  sum(
    parts.map(({ model, expected }) =>
      costOf(expected.counts, model === null ? undefined : TABLES[table]?.[model]),
    ),
  );

/** Whether what a client was told is what was recorded, as far as it was told. */
const states = (told: Partial<Counts> | undefined, actual: Counts): boolean =>
  Object.entries(told ?? {}).every(([name, count]) => actual[name as keyof Counts] === count);

/** Whether an entry is right for a request: what it costs, or why it is not right. */
export function judgeEntry(house: House, entry: Entry, asked: Asked): Verdict | string {
  const calls = house.calls.get(asked.serial) ?? [];
  const { settle } = entry;
  const against =
    againstOpening(house, entry, asked) ??
    againstClient(house, settle, asked) ??
    againstCalls(house, entry, asked) ??
    againstShares(entry);
  if (against !== undefined) return against;

  const actual = countsOf(settle["usage"], settle["usage"].cache_write_1h_tokens ?? 0);
  const source: string = settle["usage_source"];
  const fitting = candidates(house, entry, asked, actual).filter(
    (parts) =>
      source === basisOf(parts).replace("bounded", "estimated") &&
      JSON.stringify(together(parts)) === JSON.stringify(actual),
  );
  if (fitting.length === 0) {
    const recorded = `${settle["status"]} with ${source} figures ${JSON.stringify(actual)}`;
    return `${recorded}, and the calls were ${JSON.stringify(calls)}`;
  }
  if (settle["status"] !== "interrupted" && !states(asked.usage, actual))
    return `the client was told ${JSON.stringify(asked.usage)}, recorded ${JSON.stringify(actual)}`;

  const stated = JSON.stringify(settle["prices"]);
  const model = settle["model_served"] as ModelName | null;
  const tables = tablesOf(house, entry, asked).filter((table) => {
    const price = model === null ? undefined : TABLES[table]?.[model];
    return stated === (price ? JSON.stringify(priceSetting(price)) : "null");
  });
  // A recovery of the books knows no prices.
  if (settle["status"] === "interrupted") tables.push(0);
  const cost = pico(settle["cost"]);
  const right = fitting.find((parts) => tables.some((table) => costAt(table, parts) === cost));
  const ledger = fitting.flatMap((parts) => tables.map((table) => costAt(table, parts)));
  return right
    ? { cost, counts: together(right), basis: basisOf(right) }
    : `costs ${settle["cost"]} at ${stated}, by the ledger ${ledger} pico-units`;
}
