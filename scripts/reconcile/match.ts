// Requests and their entries in the spend log: each entry must be that of one request, and each
// request that reached the provider or got an answer must have one.

import type { Entry } from "./books.ts";
import type { Asked } from "./client.ts";
import type { Findings } from "./findings.ts";
import type { House } from "./house.ts";
import { judgeEntry, type Match, wasDisturbed } from "./rule.ts";

/** Refusals by the gateway itself, before anything is opened. */
const REFUSALS = ["insufficient_balance", "rate_limit_exceeded", "server_overloaded"];

/** An error of the Messages API has no code, so that only its status tells. */
const REFUSING = [402, 429, 503, 529];

function isRefused(house: House, asked: Asked): boolean {
  const isCalled = house.calls.has(asked.serial);
  if (asked.verdict !== "error") return false;
  // A gateway that stops ends what takes too long.
  if (isCalled && wasDisturbed(house, "stop", asked)) return false;
  return asked.code === undefined
    ? REFUSING.includes(asked.status) && !isCalled
    : REFUSALS.includes(asked.code);
}

/** Each request for itself: refused ones cost nobody anything, and only kills cut. */
function judgeRequest(house: House, asked: Asked, isRecorded: boolean, findings: Findings): void {
  const { serial, verdict, code, foreign, status } = asked;
  const name = `request ${serial} of ${asked.account} (${verdict} ${status})`;
  const isCalled = house.calls.has(serial);
  const refused = isRefused(house, asked);
  const isAnswered = verdict === "whole" || (verdict === "error" && !refused);
  findings.check(
    isRecorded || !(isCalled || isAnswered) || wasDisturbed(house, "power", asked),
    () => `${name} has no record`,
  );
  findings.check(
    !refused || !isCalled,
    () => `${name} was refused with ${code}, and the provider was called`,
  );
  findings.check(verdict !== "hung", () => `${name} got no answer`);
  findings.equal(foreign, undefined, `${name} has something of another request`);
  // It may have been on its way to a gateway that was closing its idle connections.
  const isTooLate = status === 0 && !isCalled && wasDisturbed(house, "stop", asked);
  const isCut = verdict === "cut" && !isTooLate && !wasDisturbed(house, "kill", asked);
  findings.check(!isCut, () => `${name} was cut by no kill`);
}

export function matchAll(house: House, entries: readonly Entry[], findings: Findings): Match[] {
  const requests = new Map(house.asked.map((asked) => [asked.id, asked]));
  const recorded = new Set<Asked>();
  const matches: Match[] = [];
  for (const entry of entries) {
    const { gateway_request_id: id, spend_id } = entry.open;
    const asked = requests.get(id);
    const isRight = asked !== undefined && !recorded.has(asked);
    findings.check(
      isRight,
      () => `${spend_id} is of no request that was sent, or its second: ${id}`,
    );
    if (!isRight) continue;
    recorded.add(asked);
    matches.push(judgeEntry(house, entry, asked, findings));
  }
  for (const asked of house.asked) judgeRequest(house, asked, recorded.has(asked), findings);
  return matches;
}
