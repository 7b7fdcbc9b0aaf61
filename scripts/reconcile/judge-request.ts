// Judges one request: how the gateway handled it, and whether its entry in the spend log follows,
// by the rules of books.md, from the provider's ledger and what the client saw.

import { isDeepStrictEqual } from "node:util";
import {
  type Basis,
  type BillableCall,
  billableCallsOf,
  type BillingOption,
  lostCall,
} from "./billable.ts";
import { countsOf, type Entry } from "./books.ts";
import type { ClientRequest } from "./client.ts";
import type { Disturbance, Evidence, JsonObject } from "./evidence.ts";
import type { Findings } from "./judge.ts";
import { addUp, type Counts, costOf, pico, sum } from "./money.ts";
import { CONTINUED, LEAVE_MS, priceFor } from "./plan.ts";
import type { Call } from "./provider.ts";

/** An entry with its request, and what was billed. */
export type Match = ReturnType<typeof judgeEntry>;

/** Two processes read the clock, in milliseconds. */
const SLACK_MS = 50;
/** How late a client may notice that its connection is dead. */
const DEAD_MS = 1_000;
/** A power failure loses the last second of the books, and the time that writing them took. */
const LOST_MS = 1_200;
/** How late a busy gateway may settle a request whose client has left. */
const LEFT_MS = LEAVE_MS + 5_000;

/** A client's request, and what is known about it. */
export type RequestCase = ReturnType<typeof caseOf>;

/** The case of a request. */
export function caseOf(evidence: Evidence, request: ClientRequest, { check, equal }: Findings) {
  const { serial, account, outcome, status } = request;
  const name = `request ${serial} of ${account} (${outcome} ${status})`;
  /** Findings that name the request. */
  const findings: Pick<Findings, "check" | "equal"> = {
    check: (isRight, violation) => check(isRight, () => `${name} ${violation()}`),
    equal: (actual, expected, what) => equal(actual, expected, `${name}: ${what}`),
  };
  /** The calls of the provider for this request, in their order. */
  const calls: readonly Call[] = evidence.calls.get(serial) ?? [];
  return { evidence, request, calls, findings };
}

/** Whether a disturbance concerned the gateway that a request was sent to. */
const concerns = ({ gateway }: Disturbance, request: ClientRequest): boolean =>
  gateway === undefined || gateway === request.gateway;

/** For how many milliseconds after its end at the client the gateway may still handle a request. */
function latenessOf({ evidence, request }: RequestCase): number {
  const { outcome, startedAt, endedAt, interruptions = [] } = request;
  const usual = outcome === "left" ? LEFT_MS : SLACK_MS;
  const freezes = evidence.disturbances.filter(
    (each) =>
      each.kind === "freeze" &&
      concerns(each, request) &&
      each.from < endedAt + usual &&
      each.until > startedAt,
  );
  const pauses = [...freezes, ...interruptions].map(({ from, until }) => until - from);
  return pauses.reduce((total, ms) => total + ms, usual);
}

/**
 * Whether there was such a disturbance while a request was in flight, or just after. "kill": its
 * gateway or one of the workers was killed.
 */
function wasDisturbed(about: RequestCase, kind: Disturbance["kind"]): boolean {
  const { evidence, request } = about;
  const late = latenessOf(about) + (kind === "kill" ? 0 : LOST_MS);
  return evidence.disturbances.some(
    (each) =>
      each.kind.startsWith(kind) &&
      concerns(each, request) &&
      each.until + DEAD_MS > request.startedAt &&
      each.from < request.endedAt + late,
  );
}

/** The indexes of the price tables that may have been in force when the request began. */
function tablesOf({ evidence, request, calls }: RequestCase, { open }: Entry): number[] {
  // If the client has left, the gateway may open the request late and never call the provider.
  const latest = calls[0]?.at ?? Date.parse(open["time"]);
  return evidence.changes
    .filter(({ from }, index) => {
      const next = evidence.changes[index + 1]?.until ?? Infinity;
      return from <= latest + SLACK_MS && next >= request.startedAt - SLACK_MS;
    })
    .map(({ table }) => table);
}

/** What a record bills for one attempt, and at which prices. */
const shareOf = (model: string | null, usage: JsonObject, { cost, prices = null }: JsonObject) => ({
  model,
  counts: countsOf(usage),
  cost: pico(cost),
  prices: prices as JsonObject | null,
});
type Share = ReturnType<typeof shareOf>;

/** The share of each attempt that has one. If none has, the request as a whole. */
function sharesOf({ attempts, ...whole }: JsonObject): readonly Share[] {
  const shared: JsonObject[] = attempts.filter(({ share }: JsonObject) => share);
  if (shared.length > 0) return shared.map(({ model, share }) => shareOf(model, share, share));
  const { model_served, usage, usage_source } = whole;
  return usage_source === "none" ? [] : [shareOf(model_served, usage, whole)];
}

/** Whether a share states these figures for a call. */
function isOption({ model, counts }: Share, call: BillableCall, option: BillingOption): boolean {
  const most = option.counts.completion;
  const completion = option.basis === "bounded" ? counts.completion : most;
  return (
    (call.model ?? model) === model &&
    completion <= most &&
    isDeepStrictEqual(counts, { ...option.counts, completion })
  );
}

/** All assignments of the shares, in their order, to the calls: the basis of each share. */
function assignments(
  [share, ...shares]: readonly Share[],
  [call, ...calls]: readonly BillableCall[],
): readonly Basis[][] {
  if (!call) return share ? [] : [[]];
  return call.options.flatMap((option): readonly Basis[][] => {
    if (option.basis === "none") return assignments(share ? [share, ...shares] : [], calls);
    if (!share || !isOption(share, call, option)) return [];
    return assignments(shares, calls).map((bases) => [option.basis, ...bases]);
  });
}

/** The basis of several shares together. */
function commonBasis(bases: readonly Basis[]): Basis {
  if (bases.length === 0) return "none";
  if (bases.every((basis) => basis === "provider")) return "provider";
  return bases.includes("bounded") ? "bounded" : "estimated";
}

/** The basis of a record with these shares. Undefined: the ledger does not explain the record. */
function basisOf(about: RequestCase, settle: JsonObject, shares: readonly Share[]) {
  const { evidence, request, calls } = about;
  const { status, attempts, usage_source: source } = settle;
  const billable = billableCallsOf(status, calls, request, evidence.isReference);
  // The reference edition counts a request as sent when it hands it to Node's fetch, which may not
  // have sent it yet when the client leaves.
  const mayBeLost =
    wasDisturbed(about, "provider") || (evidence.isReference && request.outcome === "left");
  const isLost = attempts.length > calls.length && mayBeLost;
  const all = isLost ? [...billable, lostCall(request)] : billable;
  if (status === "completed" && all.length === 0) return undefined;
  return assignments(shares, all)
    .map(commonBasis)
    .find((basis) => source === basis.replace("bounded", "estimated"));
}

/** Whether each share costs what its tokens cost by a price table, and states those prices. */
function isBilledBy(table: number, settle: JsonObject, shares: readonly Share[]): boolean {
  const { status, model_served: served, prices: stated } = settle;
  // A failed reply states the model and the price of the share that broke first or, if the gateway
  // stopped it, of the last one.
  const ofServed = shares.filter(({ model }) => model === served);
  const candidates = status === "failed" ? ofServed : shares.slice(-1);
  const possible = candidates.length > 0 ? candidates : [undefined];
  return (
    possible.some((share) =>
      isDeepStrictEqual(stated, priceFor(table, served, share?.counts.prompt ?? 0)),
    ) &&
    shares.every(({ model, counts, cost, prices }) => {
      const price = priceFor(table, model, counts.prompt);
      return isDeepStrictEqual(prices, price) && cost === costOf(counts, price);
    })
  );
}

/** The entry must record the end that the client saw. */
function judgeEnd(about: RequestCase, settle: JsonObject): void {
  const { request, calls, findings } = about;
  const { status, http_status, error_code, model_served } = settle;
  const { outcome, served, code, text, model, api } = request;
  const wasPowerLost = wasDisturbed(about, "power");
  if (status === "interrupted") {
    findings.check(wasPowerLost || wasDisturbed(about, "kill"), () => "interrupted by no kill");
    // The client may have seen the end: the power failure may have lost the settle line alone.
    if (wasPowerLost) return;
  }
  if (status === "cancelled") findings.equal(outcome, "left", "cancelled");
  if (outcome === "error") {
    const recorded = [status, http_status, code && error_code];
    findings.equal(recorded, ["failed", request.status, code], "the end that was recorded");
  }
  if (outcome !== "complete") return;
  // Streams of the other APIs name the model at their start, and another model may continue them.
  const isFixed = api === "chat" || model !== CONTINUED;
  const recorded = [status, http_status, isFixed && model_served];
  findings.equal(recorded, ["completed", 200, isFixed && served], "the end that was recorded");
  if (model !== CONTINUED) findings.equal(text, calls.at(-1)?.text, "the text of the reply");
}

/** Judges the entry of a request. */
export function judgeEntry(about: RequestCase, entry: Entry) {
  const { request, calls, findings } = about;
  const { open, settle } = entry;
  const { status, cost, usage_source, attempts } = settle;
  const opened = [open["account"], open["key_id"], open["model_requested"], open["stream"]];
  const { account, keyId, model, stream, startedAt, endedAt } = request;
  findings.equal(opened, [account, keyId, model, stream], "opened");
  const openedAt = Date.parse(open["time"]);
  findings.check(
    openedAt >= startedAt - SLACK_MS && openedAt <= endedAt + latenessOf(about),
    () => `was opened at ${openedAt}, and sent from ${startedAt} to ${endedAt}`,
  );
  judgeEnd(about, settle);

  const shares = sharesOf(settle);
  const counts = countsOf(settle["usage"]);
  const total = [addUp(shares.map((share) => share.counts)), sum(shares.map((each) => each.cost))];
  findings.equal([counts, pico(cost)], total, "the sum of its shares");
  const basis = basisOf(about, settle, shares);
  findings.check(basis !== undefined, () => {
    const recorded = `${status} with ${usage_source} figures ${JSON.stringify(counts)}`;
    return `is ${recorded}, and the calls were ${JSON.stringify(calls)}`;
  });
  /** `basis`: undefined if the ledger does not explain the entry, which is a violation already. */
  const match = { entry, request, cost: pico(cost), counts, basis };
  // Entries that a recovery settled have no attempts and prices, and no client got their figures.
  if (status === "interrupted") return match;
  let matched = 0;
  for (const attempt of attempts) if (calls[matched]?.model === attempt.model) matched += 1;
  findings.equal(calls.slice(matched), [], "calls that are not among its attempts");
  const usage = Object.entries(request.usage ?? {});
  const billed = usage.map(([name]) => [name, counts[name as keyof Counts]]);
  findings.equal(usage, billed, "the usage that the client got");
  findings.check(
    tablesOf(about, entry).some((table) => isBilledBy(table, settle, shares)),
    () => `costs ${cost} at ${JSON.stringify(settle["prices"])}, not by the ledger`,
  );
  return match;
}

/** Codes of errors with which the gateway rejects a request before it opens an entry. */
const REJECTING_CODES = ["insufficient_balance", "rate_limit_exceeded", "server_overloaded"];

/** Their statuses, because errors of the Messages API have no code. */
const REJECTING_STATUSES = [402, 429, 503, 529];

/** Whether the gateway rejected a request before it opened an entry. */
function isRejected(about: RequestCase): boolean {
  const { code, outcome, status } = about.request;
  const isCalled = about.calls.length > 0;
  if (outcome !== "error") return false;
  // A gateway that stops ends requests that take too long with one of these codes.
  if (isCalled && wasDisturbed(about, "stop")) return false;
  return code === undefined
    ? REJECTING_STATUSES.includes(status) && !isCalled
    : REJECTING_CODES.includes(code);
}

/** Rejected requests must cost nothing, and only a kill may cut a request short. */
export function judgeHandling(about: RequestCase, isRecorded: boolean): void {
  const { findings, calls } = about;
  const { outcome, code, foreign, status } = about.request;
  const isCalled = calls.length > 0;
  const rejected = isRejected(about);
  const isAnswered = outcome === "complete" || (outcome === "error" && !rejected);
  const needsRecord = (isCalled || isAnswered) && !wasDisturbed(about, "power");
  findings.check(isRecorded || !needsRecord, () => "has no record");
  findings.check(!rejected || !isCalled, () => `was rejected with ${code} after a call`);
  findings.check(outcome !== "hung", () => "got no response");
  findings.equal(foreign, undefined, "got something of another request");
  // The gateway may have closed the idle connection while the request was on its way.
  const wasClosedFirst = status === 0 && !isCalled && wasDisturbed(about, "stop");
  const isCut = outcome === "cut" && !wasClosedFirst && !wasDisturbed(about, "kill");
  findings.check(!isCut, () => "was cut by no kill");
}
