// Every way in which a stream breaks, with every mode of recovery and every kind of reply: what the
// client sees, what is requested, and what is billed.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  askScene,
  BREAKS,
  broken,
  FIGURES,
  goesOn,
  inTurn,
  said,
  seen,
  SHOWN,
  texts,
  WHOLE,
} from "../../../support/recovered.ts";
import type { Behaviour } from "../../../support/provider.ts";

type Mode = "none" | "hold" | "continue" | "continue without prefill";

interface Kind {
  readonly request?: object;
  /** What the first attempt sends before it breaks. */
  readonly before: readonly object[];
  /** What another attempt sends. */
  readonly again: Behaviour;
  /** Whether the shown text can be joined. Absent: no. */
  readonly joinable?: boolean;
  readonly text: string;
  readonly finish?: string;
}

const thought = { reasoning_content: "Let me think." };
const json = '{"animal": "fox", "legs": 4}';
const call = (args: string, more: object = {}) => ({
  tool_calls: [{ index: 0, ...more, function: { name: "f", arguments: args } }],
});
const named = { id: "call_1", type: "function" };
const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }];

const shown = { before: texts(SHOWN), again: goesOn, text: WHOLE };
const KINDS: Readonly<Record<string, Kind>> = {
  text: { ...shown, joinable: true },
  "reasoning hidden": { ...shown, before: [thought, ...shown.before], joinable: true },
  "reasoning shown": {
    ...shown,
    request: { thinking: { type: "enabled" } },
    before: [thought, ...shown.before],
  },
  "tool call": {
    request: { tools, tool_choice: "auto" },
    before: [...shown.before, call('{"a":', named)],
    again: said([...shown.before, call('{"a":1}', named)], "tool_calls"),
    text: SHOWN,
    finish: "tool_calls",
  },
  JSON: {
    request: { response_format: { type: "json_object" } },
    before: [{ content: json.slice(0, 12) }],
    again: said([{ content: json }]),
    text: json,
  },
  logprobs: { ...shown, request: { logprobs: true } },
};

const textOf = (deltas: readonly object[]): string =>
  deltas.map((delta) => (delta as { content?: string }).content ?? "").join("");
/** The estimated tokens of an attempt's deltas without figures: four bytes per token. */
const estimated = (deltas: readonly object[]): number =>
  Math.ceil(deltas.flatMap((delta) => Object.values(delta)).join("").length / 4);
/** The tokens of the prompt "hi". */
const PROMPT = 1;

function settingsOf({ mode, where, breakName }: Row) {
  const recovery = mode === "continue without prefill" ? "continue" : mode;
  const own = { prefill: mode === "continue" ? "plain" : "none" };
  const isAlias = where === "alias";
  return {
    providers: { lab: { timeouts: { idle_ms: breakName === "stall" ? 40 : 5_000 } } },
    models: { m: { ...own, ...(!isAlias && { recovery }) }, n: own },
    aliases: isAlias ? { x: { models: ["m", "n"], recovery } } : {},
    // Only a retry hides a failure of a model that is requested by its own name.
    retry: { max_retries: mode === "hold" && !isAlias ? 1 : 0, backoff_ms: 1 },
  };
}

for (const mode of ["none", "hold", "continue", "continue without prefill"] as const)
  for (const where of ["canonical", "alias"] as const)
    describe(`recovery ${mode}, ${where} name`, () => {
      for (const [kindName, kind] of Object.entries(KINDS))
        for (const breakName of Object.keys(BREAKS)) {
          // If nothing is continued, each kind is tried with one break, and one kind with each
          // break.
          const isTried = mode === "hold" || mode === "continue";
          if (!isTried && kindName !== "text" && breakName !== "reset") continue;
          it(`${kindName}, ${breakName}`, (t) => check({ t, mode, where, kind, breakName }));
        }
    });

interface Row {
  readonly t: Parameters<typeof askScene>[0];
  readonly mode: Mode;
  readonly where: "canonical" | "alias";
  readonly kind: Kind;
  readonly breakName: string;
}

/** `code`: of the error that broke the stream. */
type Result = Awaited<ReturnType<typeof askScene>> & { readonly row: Row; readonly code: string };

async function check(row: Row): Promise<void> {
  const { t, mode, where, kind, breakName } = row;
  const scene = await askScene(t, {
    models: { m: inTurn(broken(kind.before, breakName), kind.again), n: kind.again },
    config: settingsOf(row),
    request: kind.request ?? {},
    model: where === "alias" ? "x" : "m",
  });
  const code = breakName === "stall" ? "upstream_timeout" : "upstream_error";
  const result = { ...scene, row, code };
  if (mode === "hold") await checkHeld(result);
  else if (mode === "continue" && kind.joinable) await checkJoined(result);
  else await checkBroken(result);
}

async function checkHeld({ row, answer, settlement, attempts, code }: Result): Promise<void> {
  const { where, breakName, kind } = row;
  // The same model is not tried again after a silence.
  if (where === "canonical" && breakName === "stall") {
    const { errorCode, cost } = settlement;
    assert.deepEqual([answer.status, errorCode, cost, attempts], [503, code, "0", [`m ${code}`]]);
    return;
  }
  const server = where === "alias" ? "n" : "m";
  assert.deepEqual(attempts, [`m ${code}`, `${server} completed`]);
  const { text, joints, models, finish, usage } = seen(answer);
  assert.deepEqual([text, joints, models], [kind.text, [], [server]]);
  assert.deepEqual([finish, usage.total_tokens], [kind.finish ?? "stop", FIGURES.total_tokens]);
  assert.equal(settlement.cost, where === "alias" ? "0.00034" : "0.000034");
  assert.equal(settlement.recovery, undefined);
  assert.ok(settlement.attempts.every(({ share }) => share === undefined));
}

async function checkBroken(result: Result): Promise<void> {
  const { row, answer, settlement, access, attempts, provider, code } = result;
  const { text, error, joints } = seen(answer);
  assert.deepEqual([text, error, joints], [textOf(row.kind.before), code, []]);
  assert.deepEqual([attempts, provider.asked.length], [[`m ${code}`], 1]);
  assert.deepEqual([settlement.recovery, settlement.usageSource], [undefined, "estimated"]);
  assert.ok(!("recovery" in access) && !("attempts" in access));
}

async function checkJoined(result: Result): Promise<void> {
  const { row, answer, settlement, access, attempts, provider, code } = result;
  const used = estimated(row.kind.before);
  const got = seen(answer);
  const whatIsSeen = [got.text, got.error, got.finish, got.joints, got.models];
  assert.deepEqual(whatIsSeen, [WHOLE, undefined, "stop", [SHOWN], ["m"]]);
  assert.deepEqual(attempts, [`m ${code}`, "m completed"]);
  assert.ok(provider.asked.every(({ body }) => body["model"] === "m"));
  const share = { prompt_tokens: PROMPT, completion_tokens: used, cost: micro(PROMPT + 2 * used) };
  assert.deepEqual(
    settlement.attempts.map(({ share }: { readonly share?: any }) => ({
      prompt_tokens: share.prompt_tokens,
      completion_tokens: share.completion_tokens,
      cost: share.cost,
    })),
    [share, { prompt_tokens: 20, completion_tokens: 7, cost: "0.000034" }],
  );
  assert.equal(got.usage.prompt_tokens, PROMPT + FIGURES.prompt_tokens);
  assert.equal(got.usage.completion_tokens, used + FIGURES.completion_tokens);
  assert.equal(settlement.usage.total_tokens, got.usage.total_tokens);
  const cost = micro(PROMPT + 2 * used + 34);
  assert.deepEqual([settlement.recovery, settlement.cost], ["continued", cost]);
  const { recovery, attempts: logged, cost: paid } = access;
  assert.deepEqual([recovery, logged, paid], ["continued", attempts, cost]);
}

/** Millionths of a dollar in the format of the books. */
const micro = (millionths: number): string => (millionths / 1e6).toFixed(6).replace(/0+$/, "");
