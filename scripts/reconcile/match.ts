// Finds the request of each entry in the spend log. Clients repeat request ids and some never learn
// theirs, so that several entries and several requests share one; a maximum matching then decides
// whether each can have one of its own.

import type { Entry } from "./books.ts";
import type { Asked } from "./client.ts";
import type { Findings } from "./findings.ts";
import type { House } from "./house.ts";
import { judgeEntry, type Verdict, wasDisturbed, wasKilled } from "./rule.ts";

/** An entry with its request, and what it costs. */
export interface Match {
  readonly entry: Entry;
  readonly asked: Asked;
  readonly verdict: Verdict;
}

/** Refusals by the gateway itself, before anything is opened. */
const REFUSALS = ["insufficient_balance", "rate_limit_exceeded", "server_overloaded"];

/** An error of the Messages API has no code, so that only its status tells. */
const REFUSING = [402, 429, 503, 529];

const isRefused = (house: House, asked: Asked): boolean => {
  const { calls } = house;
  const { serial, verdict, code, status } = asked;
  if (verdict !== "error") return false;
  // A gateway that stops ends what takes too long.
  if (calls.has(serial) && wasDisturbed(house, "stop", asked)) return false;
  return code === undefined
    ? REFUSING.includes(status) && !calls.has(serial)
    : REFUSALS.includes(code);
};

/** Whether a request must be in the books: the provider was called, or there was an answer. */
function mustBeThere(house: House, asked: Asked): boolean {
  if (wasDisturbed(house, "power", asked)) return false;
  if ((house.calls.get(asked.serial)?.length ?? 0) > 0) return true;
  return asked.verdict === "whole" || (asked.verdict === "error" && !isRefused(house, asked));
}

interface Group {
  readonly entries: Entry[];
  readonly requests: Asked[];
}

/** Entries and requests by account and request id; what has an unknown id is together. */
function groupsOf(house: House, entries: readonly Entry[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  function groupOf(account: string, id: string | undefined): Group {
    const name = JSON.stringify([account, id]);
    const group = groups.get(name) ?? { entries: [], requests: [] };
    groups.set(name, group);
    return group;
  }
  const known = new Set(house.asked.map(({ sentId, id }) => sentId ?? id));
  for (const asked of house.asked)
    groupOf(asked.account, asked.sentId ?? asked.id).requests.push(asked);
  for (const entry of entries) {
    const { account, gateway_request_id: id } = entry.open;
    groupOf(account, known.has(id) ? id : undefined).entries.push(entry);
  }
  return groups;
}

/** A maximum matching by augmenting paths. What `first` has is matched before the rest. */
function matchGroup(house: House, { entries, requests }: Group, first: readonly Asked[]) {
  const verdicts = new Map(
    requests.map((asked) => [asked, entries.map((entry) => judgeEntry(house, entry, asked))]),
  );
  const requestOf = new Map<number, Asked>();
  function place(asked: Asked, tried: Set<number>): boolean {
    for (const [at, verdict] of verdicts.get(asked)!.entries()) {
      if (typeof verdict === "string" || tried.has(at)) continue;
      tried.add(at);
      const other = requestOf.get(at);
      if (other && !place(other, tried)) continue;
      requestOf.set(at, asked);
      return true;
    }
    return false;
  }
  const rest = requests.filter((asked) => !first.includes(asked));
  const unplaced = [...first, ...rest].filter((asked) => !place(asked, new Set()));
  return { requestOf, verdicts, unplaced };
}

/** All entries with their requests. Each must have exactly one, and the reverse. */
export function matchAll(house: House, entries: readonly Entry[], findings: Findings): Match[] {
  const matches: Match[] = [];
  for (const [name, group] of groupsOf(house, entries)) {
    const must = group.requests.filter((asked) => mustBeThere(house, asked));
    const { requestOf, verdicts, unplaced } = matchGroup(house, group, must);
    for (const asked of must) {
      findings.check(!unplaced.includes(asked), () => {
        const reasons = verdicts.get(asked)!.filter((each) => typeof each === "string");
        const why = reasons.slice(0, 2).join("; ") || "there is none";
        const what = `request ${asked.serial} of ${name} (${asked.verdict} ${asked.status})`;
        return `${what} has no right record: ${why}`;
      });
    }
    group.entries.forEach((entry, at) => {
      const asked = requestOf.get(at);
      const verdict = asked && verdicts.get(asked)![at];
      const isRight = verdict !== undefined && typeof verdict !== "string";
      findings.check(isRight, () => {
        const reasons = [...verdicts.values()].map((each) => each[at]).slice(0, 3);
        const what = `record ${entry.open["spend_id"]} of ${name}`;
        return `${what} belongs to no request that was sent: ${reasons.join("; ")}`;
      });
      if (isRight) matches.push({ entry, asked: asked!, verdict });
    });
  }
  return matches;
}

/** Whether the request was on its way to a gateway that was closing its idle connections. */
const wasTooLate = (house: House, asked: Asked): boolean =>
  asked.status === 0 && !house.calls.has(asked.serial) && wasDisturbed(house, "stop", asked);

/** Each request for itself: refused ones cost nobody anything, and only kills cut. */
export function judgeRequests(house: House, findings: Findings): void {
  for (const asked of house.asked) {
    const { serial, verdict, code } = asked;
    if (isRefused(house, asked))
      findings.check(
        !house.calls.has(serial),
        () => `request ${serial} was refused with ${code}, and the provider was called`,
      );
    if (verdict === "cut")
      findings.check(
        wasKilled(house, asked) || wasTooLate(house, asked),
        () => `request ${JSON.stringify(asked)} was cut by no kill`,
      );
    findings.check(verdict !== "hung", () => `request ${serial} got no answer`);
  }
}
