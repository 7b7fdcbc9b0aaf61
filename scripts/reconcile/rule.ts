// The rule by which one request is billed, of books.md: what its lines in the spend log must say,
// given what the provider stated and what the client saw.

import { isDeepStrictEqual } from "node:util";
import { countsOf, type Entry } from "./books.ts";
import type { Asked } from "./client.ts";
import { type Basis, lostStep, type Step, stepsOf, type Way } from "./expected.ts";
import type { Disturbance, House, Line } from "./house.ts";
import type { Findings } from "./judge.ts";
import { addUp, type Counts, costOf, pico, sum } from "./money.ts";
import { CONTINUED, LEAVE_MS, priceFor } from "./plan.ts";

/** An entry with its request, and what it comes to. */
export type Match = ReturnType<typeof judgeEntry>;

/** Clocks are read in two processes, in milliseconds. */
const SLACK_MS = 50;
/** A client finds out late that its connection is dead. */
const DEAD_MS = 1_000;
/** A power failure takes the last second of the books, and the time that it took to write them. */
const LOST_MS = 1_200;
/** How much later a busy gateway may settle a request whose client has left. */
const LEFT_MS = LEAVE_MS + 5_000;

/** Whether the world failed the gateway that was asked, or all. */
const isOfGateway = ({ gateway }: Disturbance, asked: Asked): boolean =>
  (gateway ?? asked.gateway) === asked.gateway;

/** How long after its end for the client a request may still be at work in the gateway. */
function lateOf({ disturbances }: House, asked: Asked): number {
  const { verdict, startedAt, endedAt, troubles = [] } = asked;
  const late = verdict === "left" ? LEFT_MS : SLACK_MS;
  // The gateway stood still, or the request did on its way.
  const still = disturbances.filter(
    (each) =>
      each.kind === "freeze" &&
      isOfGateway(each, asked) &&
      each.from < endedAt + late &&
      each.until > startedAt,
  );
  return [...still, ...troubles].reduce((total, { from, until }) => total + until - from, late);
}

/**
 * Whether the world failed in this way while this request was on its way, or just after. "kill": its
 * gateway or a worker of it was killed.
 */
export function wasDisturbed(house: House, kind: Disturbance["kind"], asked: Asked): boolean {
  const late = lateOf(house, asked) + (kind === "kill" ? 0 : LOST_MS);
  return house.disturbances.some(
    (each) =>
      each.kind.startsWith(kind) &&
      isOfGateway(each, asked) &&
      each.until + DEAD_MS > asked.startedAt &&
      each.from < asked.endedAt + late,
  );
}

/** The tables of prices that may have been in force when the request began. */
function tablesOf({ calls, changes }: House, { open }: Entry, asked: Asked): number[] {
  // Of a request that its client has left the opening may come late, and the provider hear nothing.
  const latest = calls.get(asked.serial)?.[0]?.at ?? Date.parse(open["time"]);
  return changes
    .filter(({ from }, index) => {
      const next = changes[index + 1]?.until ?? Infinity;
      return from <= latest + SLACK_MS && next >= asked.startedAt - SLACK_MS;
    })
    .map(({ table }) => table);
}

/** What a record bills of one attempt, and at which prices. */
const partOf = (model: string | null, usage: Line, { cost, prices = null }: Line) => ({
  model,
  counts: countsOf(usage),
  cost: pico(cost),
  prices: prices as Line | null,
});
type Part = ReturnType<typeof partOf>;

/** The share of each attempt that has one, or else the request as a whole. */
function partsOf({ attempts, ...whole }: Line): readonly Part[] {
  const shared: Line[] = attempts.filter(({ share }: Line) => share);
  if (shared.length > 0) return shared.map(({ model, share }) => partOf(model, share, share));
  const { model_served, usage, usage_source } = whole;
  return usage_source === "none" ? [] : [partOf(model_served, usage, whole)];
}

/** Whether this may be billed of a call. */
function isWay({ model, counts }: Part, step: Step, way: Way): boolean {
  const most = way.counts.completion;
  const completion = way.basis === "bounded" ? counts.completion : most;
  return (
    (step.model ?? model) === model &&
    completion <= most &&
    JSON.stringify(counts) === JSON.stringify({ ...way.counts, completion })
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
function explained(house: House, settle: Line, asked: Asked, parts: readonly Part[]) {
  const { status, attempts, usage_source: source } = settle;
  const calls = house.calls.get(asked.serial) ?? [];
  const steps = stepsOf(status, calls, asked, house.isReference);
  // The reference edition takes a request for sent when it gives it to Node's fetch, which may not
  // have sent it yet when the client leaves.
  const mayBeLost =
    wasDisturbed(house, "provider", asked) || (house.isReference && asked.verdict === "left");
  const isLost = attempts.length > calls.length && mayBeLost;
  const all = isLost ? [...steps, lostStep(asked)] : steps;
  if (status === "completed" && all.length === 0) return undefined;
  return explanations(parts, all)
    .map(basisOf)
    .find((basis) => source === basis.replace("bounded", "estimated"));
}

/** Whether each part costs what its tokens cost by a table, and states the prices of it. */
function isBilledBy(table: number, settle: Line, parts: readonly Part[]): boolean {
  const { status, model_served: served, prices: stated } = settle;
  // A reply that failed has the model and the price of the part that broke first or, if the gateway
  // stopped it, of the last one.
  const ofServed = parts.filter(({ model }) => model === served);
  const candidates = status === "failed" ? ofServed : parts.slice(-1);
  const possible = candidates.length > 0 ? candidates : [undefined];
  return (
    possible.some((part) =>
      isDeepStrictEqual(stated, priceFor(table, served, part?.counts.prompt ?? 0)),
    ) &&
    parts.every(({ model, counts, cost, prices }) => {
      const price = priceFor(table, model, counts.prompt);
      return isDeepStrictEqual(prices, price) && cost === costOf(counts, price);
    })
  );
}

/** The end that the client saw must be the one that was recorded. */
function judgeEnd(house: House, settle: Line, asked: Asked, found: Found): void {
  const { status, http_status, error_code, model_served } = settle;
  const { verdict, served, code, text, model, api } = asked;
  const isKilled = wasDisturbed(house, "kill", asked) || wasDisturbed(house, "power", asked);
  if (status === "interrupted") found.check(isKilled, () => "interrupted by no kill");
  // A power failure has taken the settle line, and not the open line.
  if (status === "interrupted" && wasDisturbed(house, "power", asked)) return;
  if (status === "cancelled") found.equal(verdict, "left", "cancelled");
  if (verdict === "error") {
    const recorded = [status, http_status, code && error_code];
    found.equal(recorded, ["failed", asked.status, code], "the end that was recorded");
  }
  if (verdict !== "whole") return;
  // The other streams name their model at their start, and another may go on with them.
  const isFixed = api === "chat" || model !== CONTINUED;
  const recorded = [status, http_status, isFixed && model_served];
  found.equal(recorded, ["completed", 200, isFixed && served], "the end that was recorded");
  if (model === CONTINUED) return;
  found.equal(text, house.calls.get(asked.serial)?.at(-1)?.text, "the text of the reply");
}

/** Findings that name a request. */
type Found = Pick<Findings, "check" | "equal">;

/** A request in a violation. */
export const nameOf = ({ serial, account, verdict, status }: Asked): string =>
  `request ${serial} of ${account} (${verdict} ${status})`;

/** Judges the lines of a request. */
export function judgeEntry(house: House, entry: Entry, asked: Asked, findings: Findings) {
  const { open, settle } = entry;
  const { status, cost, usage_source, attempts } = settle;
  const calls = house.calls.get(asked.serial) ?? [];
  const name = nameOf(asked);
  const found: Found = {
    check: (right, violation) => findings.check(right, () => `${name}: ${violation()}`),
    equal: (actual, expected, what) => findings.equal(actual, expected, `${name}: ${what}`),
  };
  const about = [open["account"], open["key_id"], open["model_requested"], open["stream"]];
  found.equal(about, [asked.account, asked.keyId, asked.model, asked.stream], "opened");
  const openedAt = Date.parse(open["time"]);
  const { startedAt, endedAt } = asked;
  found.check(
    openedAt >= startedAt - SLACK_MS && openedAt <= endedAt + lateOf(house, asked),
    () => `opened at ${openedAt}, asked from ${startedAt} to ${endedAt}`,
  );
  judgeEnd(house, settle, asked, found);

  const parts = partsOf(settle);
  const counts = countsOf(settle["usage"]);
  const total = [addUp(parts.map((part) => part.counts)), sum(parts.map((part) => part.cost))];
  found.equal([counts, pico(cost)], total, "its parts together");
  const basis = explained(house, settle, asked, parts);
  found.check(basis !== undefined, () => {
    const recorded = `${status} with ${usage_source} figures ${JSON.stringify(counts)}`;
    return `${recorded}, and the calls were ${JSON.stringify(calls)}`;
  });
  /** `basis`: undefined if the ledger does not explain it, which was found. */
  const match = { entry, asked, cost: pico(cost), counts, basis };
  // A recovery of the books knows no attempts and no prices, and no client was told what it says.
  if (status === "interrupted") return match;
  let at = 0;
  for (const { model } of attempts) if (calls[at]?.model === model) at += 1;
  found.equal(calls.slice(at), [], "calls that are not among its attempts");
  const told = Object.entries(asked.usage ?? {});
  found.equal(
    told,
    told.map(([name]) => [name, counts[name as keyof Counts]]),
    "what the client was told",
  );
  found.check(
    tablesOf(house, entry, asked).some((table) => isBilledBy(table, settle, parts)),
    () => `costs ${cost} at ${JSON.stringify(settle["prices"])}, not by the ledger`,
  );
  return match;
}
