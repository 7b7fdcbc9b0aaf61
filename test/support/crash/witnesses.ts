// What the clients and the provider saw against the spend log, and each of its lines for itself.

import { countsOf, type Entry } from "../../../scripts/reconcile/books.ts";
import type { Line } from "../../../scripts/reconcile/house.ts";
import { costOf, pico } from "../../../scripts/reconcile/money.ts";
import type { Books } from "./books.ts";
import type { Told } from "./clients.ts";
import { PRICES } from "./setup.ts";

const count = (counts: Map<string, number>, key: string): unknown =>
  counts.set(key, (counts.get(key) ?? 0) + 1);
const ofClient = (account: string, id: string | undefined, sentId: boolean): string =>
  JSON.stringify([account, sentId ? id : "(made by the gateway)"]);

/** What the clients and the provider saw against the spend log. */
export const checkWitnesses = (
  { entries }: Books,
  told: readonly Told[],
  seen: ReadonlySet<string>,
): string[] => [...checkCounts(entries, told, seen), ...checkReplies(entries, told)];

/** As many are opened as reached the provider at least, and as were sent at most. */
function checkCounts(
  entries: readonly Entry[],
  told: readonly Told[],
  seen: ReadonlySet<string>,
): string[] {
  const violations: string[] = [];
  const opened = new Map<string, number>();
  const sent = new Map<string, number>();
  const called = new Map<string, number>();
  for (const { open } of entries) {
    const id: string = open["gateway_request_id"];
    count(opened, ofClient(open["account"], id, !/^req_[0-9a-f]{32}$/.test(id)));
  }
  for (const { account, id, sentId, serial } of told) {
    count(sent, ofClient(account, id, sentId));
    if (seen.has(serial)) count(called, ofClient(account, id, sentId));
  }
  for (const [who, times] of called) {
    const of = opened.get(who) ?? 0;
    if (of < times)
      violations.push(`lost: ${who}: ${times} requests reached the provider, ${of} were opened`);
  }
  for (const [who, times] of opened) {
    const of = sent.get(who) ?? 0;
    if (of < times) violations.push(`doubled: ${who}: ${of} were sent, ${times} were opened`);
  }
  return violations;
}

/** What clients were told is in the books once each, also under one request id. */
function checkReplies(entries: readonly Entry[], told: readonly Told[]): string[] {
  const left = new Map<string, Line[]>();
  const place = (account: string, id: string | undefined, status: string) =>
    JSON.stringify([account, id, status]);
  for (const { settle } of entries) {
    const key = place(settle["account"], settle["gateway_request_id"], settle["status"]);
    left.set(key, [...(left.get(key) ?? []), settle]);
  }
  function find({ account, id }: Told, status: string, fits: (settle: Line) => boolean): boolean {
    const list = left.get(place(account, id, status)) ?? [];
    const at = list.findIndex(fits);
    if (at >= 0) list.splice(at, 1);
    return at >= 0;
  }
  const whole = told.filter(({ verdict }) => verdict === "whole");
  // The one error that is told of a request that was not opened is that of a gateway that stops.
  const failed = told.filter(
    ({ verdict, code }) => verdict === "error" && code !== "server_overloaded",
  );
  // Those that know their usage first: they fit fewer lines.
  const lost = whole
    .sort((a, b) => Number(!a.usage) - Number(!b.usage))
    .filter((one) => !find(one, "completed", (settle) => isWhole(settle, one)));
  lost.push(
    ...failed.filter(
      (one) =>
        !find(
          one,
          "failed",
          ({ http_status, error_code }) => http_status === one.status && error_code === one.code,
        ),
    ),
  );
  return lost.map((one) => `lost: what ${JSON.stringify(one)} was told is not in the books`);
}

const isWhole = (settle: Line, { served, usage }: Told): boolean =>
  settle["model_served"] === served &&
  settle["http_status"] === 200 &&
  (!usage || JSON.stringify(countsOf(settle["usage"], 0)) === JSON.stringify(usage));

/** Each line for itself: whose it is, and what it cost. */
export const checkEntries = ({ entries }: Books): string[] =>
  entries.flatMap((entry) => wrongWith(entry).map((what) => `${entry.open["spend_id"]}: ${what}`));

function wrongWith({ open, settle }: Entry): string[] {
  const { usage, status, cost, model_served } = settle;
  const priced = costOf(countsOf(usage, 0), PRICES[model_served ?? ""]);
  const { prompt_tokens, prompt_cache_hit_tokens, prompt_cache_miss_tokens } = usage;
  const names = ["gateway_request_id", "account", "key_id", "model_requested"];
  const isFree = cost === "0";
  const rules: readonly (readonly [boolean, string])[] = [
    ...names.map((name) => [open[name] === settle[name], `${name} was opened otherwise`] as const),
    [pico(cost) === priced, `costs ${cost}, by its figures ${priced} pico-units`],
    [usage.total_tokens === prompt_tokens + usage.completion_tokens, "total_tokens"],
    [prompt_tokens === prompt_cache_hit_tokens + prompt_cache_miss_tokens, "cache classes"],
    [/^(completed|failed|cancelled|interrupted)$/.test(status), `status ${status}`],
    [status !== "interrupted" || (isFree && usage.total_tokens === 0), "interrupted, and billed"],
    [status !== "completed" || usage.total_tokens > 0, "completed, without tokens"],
    [
      status !== "failed" || settle["first_token_ms"] !== null || isFree,
      `failed before any output, and costs ${cost}`,
    ],
  ];
  return rules.filter(([isRight]) => !isRight).map(([, what]) => what);
}
