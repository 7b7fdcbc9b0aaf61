// One fault of a provider, tried by the model's name and by an alias.

import assert from "node:assert/strict";
import { it } from "node:test";
import { user } from "../../support/gateway.ts";
import type { Behaviour } from "../../support/provider.ts";
import { unhurriedClock } from "../../support/unhurried-clock.ts";
import { PATIENCE_MS as ANSWER_MS } from "../../support/wait.ts";
import { bench, outcome, type Bench } from "./two-providers.ts";

export interface Row {
  readonly fault: string;
  readonly behaviour: () => Behaviour;
  readonly only?: "whole" | "streamed";
  /** How often the faulty model's provider is called. */
  readonly tries: number;
  /**
   * What a client of the model gets: "ok", an error's code, or the code of an error inside the
   * stream.
   */
  readonly named: string;
  /** What a client of the alias gets: the serving model, or an error as above. */
  readonly alias: string;
  /** Whether the other candidate's provider is called as well. */
  readonly falls: boolean;
  readonly retryAfter?: string;
  /** If the fault is silence: the timeout to shorten. The others stay long for a busy machine. */
  readonly deadline?: "first_token_ms" | "idle_ms" | "closing_ms";
}

/** The behaviour is created anew for each request. */
export const fault = (
  name: string,
  [tries, named, alias]: readonly [tries: number, named: string, alias: string],
  behaviour: () => Behaviour,
  more: Partial<Row> = {},
): Row => ({ fault: name, behaviour, tries, named, alias, falls: alias === "b", ...more });

/**
 * The deadlines of an attempt whose fault is not silence. They are longer than the tests wait for a
 * response, so such a fault must be noticed without a deadline.
 */
const PATIENCE_MS = 10 * ANSWER_MS;
const PATIENCE = { first_token_ms: PATIENCE_MS, idle_ms: PATIENCE_MS, closing_ms: PATIENCE_MS };
const BRIEF_MS = 150;

/** Checks the log's lines about a fault: one for each attempt, and one for a reply that was cut. */
function assertDiagnosed({ named, tries }: Row, { gateway }: Bench, requestId: string | null) {
  const { diagnostics } = gateway;
  assert.ok(!JSON.stringify(diagnostics).includes("sk-provider"));
  if (named === "ok") return;
  const isCut = named.startsWith("in-band");
  const failed = diagnostics.filter(({ event }) => event === "attempt_failed");
  assert.deepEqual(
    failed.map((line) => [line["model"], line["provider"], line["code"]]),
    isCut ? [] : Array.from({ length: tries }, () => ["a", "lab", named]),
  );
  const cut = diagnostics.find(({ event }) => event === "reply_cut");
  assert.equal(cut?.["request_id"], isCut ? requestId : undefined);
}

/**
 * A client that names the faulty model gets no fallback, and waits only if the fault is silence.
 */
async function assertByName(row: Row, streaming: boolean, made: Bench) {
  const { named, retryAfter, tries } = row;
  const from = performance.now();
  const direct = await outcome(made.gateway, "a", streaming);
  const took = performance.now() - from;
  if (named.endsWith("upstream_timeout")) assert.ok(took >= BRIEF_MS - 10, `${took} ms`);
  assert.equal(direct.got, named);
  if (retryAfter !== undefined) assert.equal(direct.retryAfter, retryAfter);
  const { first, second } = made;
  assert.deepEqual(
    [first.asked.length, second.asked.length],
    [tries, 0],
    "a named model has no fallback",
  );
  assertDiagnosed(row, made, direct.requestId);
}

async function assertByAlias(row: Row, streaming: boolean, { gateway, first, second }: Bench) {
  assert.equal((await outcome(gateway, "x", streaming)).got, row.alias);
  assert.deepEqual([first.asked.length, second.asked.length], [row.tries, row.falls ? 1 : 0]);
  for (const asked of first.asked) assert.equal(asked.body["model"], "a");
  const after = await gateway.chat({ model: "b", messages: user("hi") });
  assert.equal(after.status, 200, "the gateway serves on");
}

/** A clock on which a second takes 50 ms: a refusal's body is awaited for one second. */
const brisk = {
  after: (ms: number, listener: () => void) =>
    unhurriedClock.after(ms === 1_000 ? 50 : ms, listener),
};

/** Tries the fault whole and streamed, if it has both forms. */
export function tryFault(row: Row): void {
  for (const streaming of [false, true]) {
    if (row.only !== undefined && streaming !== (row.only === "streamed")) continue;
    it(`${row.fault}${streaming ? ", streamed" : ""}`, async (t) => {
      const { deadline, behaviour } = row;
      const timeouts = deadline ? { ...PATIENCE, [deadline]: BRIEF_MS } : PATIENCE;
      const over = { providers: { lab: { timeouts } } };
      await assertByName(row, streaming, await bench(t, behaviour(), over, brisk));
      await assertByAlias(row, streaming, await bench(t, behaviour(), over, brisk));
    });
  }
}
