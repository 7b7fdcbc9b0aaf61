// What every client library of chat completions must be able to do with the gateway, whatever
// provider is behind it: stated once. Each library brings an adapter, which says what came of a call
// in words that all have.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { within } from "../support/wait.ts";
import {
  AFTER_CALLS,
  assertLeft,
  BAD_ENDINGS,
  BEFORE_BAD_ENDING,
  CALLS,
  callsVia,
  DIALECTS,
  modelName,
  REASONING,
  RESTRICTED_KEY,
  startFullLab,
  startLab,
  statuses,
  TALKERS,
  TEXT,
  type Lab,
} from "./lab.ts";

export const QUESTION = "What time is it in Oslo?";

/** A call of the library. Absent: a whole reply, and nothing special. */
export interface Asked {
  readonly model: string;
  readonly stream?: boolean;
  readonly thinking?: boolean;
  readonly temperature?: number;
  readonly key?: string;
  readonly requestId?: string;
  /** How often the library may try again. */
  readonly retries?: number;
}

export interface Reply {
  readonly model: unknown;
  readonly text: string | null | undefined;
  /** Undefined: none. */
  readonly thoughts: string | undefined;
  readonly finish: unknown;
  /** Tokens: prompt, completion, their sum, cached, reasoning. */
  readonly usage: readonly (number | undefined)[];
  /** Of a stream: how many events had text. */
  readonly pieces: number;
}

export interface Adapter {
  ask(lab: Lab, asked: Asked): Promise<Reply>;
  /** Offers get_time, calls it as often as it is wanted: the names of the calls, and the answer. */
  loop(lab: Lab, model: string, stream: boolean): Promise<string[]>;
  /**
   * Asks a model that makes CALLS, as a stream and whole, and sends the results back: the calls of
   * the stream as their fragments add up, those of the whole reply, and the answer.
   */
  parallel(lab: Lab, model: string): Promise<Parallel>;
  /** The replies in JSON: without a schema, and each way by that of an opening. */
  json(lab: Lab, model: string): Promise<{ loose: unknown; strict: readonly unknown[] }>;
  /** Tells each text of a stream. Rejects if the stream breaks off, or is left. */
  read(lab: Lab, model: string, told: (text: string, leave: () => void) => void): Promise<void>;
  /** Asserts that the library says so of a stream that broke off. */
  assertBroken(error: any): void;
  /** What the library says of a refusal. */
  refusal(error: any): Refusal;
  /** Milliseconds that the library waits before it tries again, if nobody says. Absent: little. */
  readonly ownPauseMs?: number;
}
export interface Refusal {
  readonly status: unknown;
  readonly code: unknown;
  readonly param: unknown;
  readonly id: unknown;
}
export interface Parallel {
  readonly streamed: readonly { id: unknown; name: unknown; arguments: unknown }[];
  readonly whole: readonly { id: unknown; args: unknown }[];
  readonly answer: unknown;
}

interface Failure extends Partial<Asked>, Omit<Refusal, "id"> {
  /** What is configured. Absent: nothing special. */
  readonly over?: object;
}

const FAILURES: readonly Failure[] = [
  { status: 400, code: "invalid_value", param: "temperature", temperature: 3 },
  { status: 401, code: "invalid_api_key", param: null, key: "sk-nobody" },
  { status: 403, code: "model_not_allowed", param: "model", key: RESTRICTED_KEY, model: "exact" },
  { status: 404, code: "model_not_found", param: "model", model: "no-such-model" },
  { status: 429, code: "rate_limit_exceeded", param: null, over: { limits: { rpm: 0 } } },
  ...DIALECTS.map((behind) => ({
    status: 503,
    code: "upstream_error",
    param: "model",
    model: modelName(behind, "broken"),
  })),
];

export function talks(adapter: Adapter): void {
  for (const behind of DIALECTS) {
    const named = (name: string) => modelName(behind, name);
    describe(`${behind} behind the gateway`, () => {
      for (const name of TALKERS)
        it(`${name}: a streamed reply is the whole reply in pieces`, async (t) => {
          const lab = await startLab(t);
          const whole = await adapter.ask(lab, { model: named(name) });
          const { pieces, ...streamed } = await adapter.ask(lab, {
            model: named(name),
            stream: true,
          });
          assert.ok(pieces > 5);
          if (name === "exact") assert.equal(whole.text, TEXT);
          assert.deepEqual([whole.model, whole.finish], [named(name), "stop"]);
          assert.deepEqual({ ...streamed, pieces: whole.pieces }, whole);
          assert.equal(whole.thoughts, undefined);
          if (name === "exact") assert.deepEqual(whole.usage, [20, 7, 27, 8, 3]);
        });

      for (const stream of [false, true])
        it(`${stream ? "streamed" : "whole"}: goes round its tool loop`, async (t) => {
          const lab = await startLab(t);
          const said = await adapter.loop(lab, named("demo-chat"), stream);
          assert.deepEqual(said, ["get_time", "The tool says: 14:05"]);
        });

      it("parallel calls arrive byte for byte in interleaved fragments, and their results go back", async (t) => {
        const lab = await startLab(t);
        const { streamed, whole, answer } = await adapter.parallel(lab, named("parallel"));
        assert.deepEqual(streamed, callsVia(behind, true));
        const parsed = CALLS.map((call) => ({ id: call.id, args: JSON.parse(call.arguments) }));
        assert.deepEqual(whole, parsed);
        assert.equal(answer, AFTER_CALLS);
        const results = lab.provider(behind).heard.at(-1)!.messages.slice(2);
        assert.deepEqual(
          results.map(({ role, tool_call_id, content }) => [role, tool_call_id, content]),
          [
            ["tool", CALLS[0].id, "14:05"],
            ["tool", CALLS[1].id, "08:05"],
          ],
        );
      });

      it("JSON mode and structured output", async (t) => {
        const { loose, strict } = await adapter.json(await startLab(t), named("demo-chat"));
        assert.equal((loose as { question?: unknown }).question, QUESTION);
        for (const each of strict) assert.deepEqual(each, { city: "Oslo", hours: 7, open: true });
      });

      it("thinking is asked for, and its text surfaces whole and streamed", async (t) => {
        const lab = await startLab(t);
        for (const stream of [false, true]) {
          const asked = { model: named("exact"), thinking: true, stream };
          const { thoughts, text } = await adapter.ask(lab, asked);
          assert.deepEqual([thoughts, text], [REASONING, TEXT]);
        }
        const { heard } = lab.provider(behind);
        assert.ok(heard.length >= 2);
        for (const { thinking } of heard) assert.deepEqual(thinking, { type: "enabled" });
      });

      it("leaving in mid-stream closes the provider's connection", async (t) => {
        const lab = await startLab(t);
        let text = "";
        const reading = adapter.read(lab, named("endless"), (piece, leave) => {
          text += piece;
          if (text === BEFORE_BAD_ENDING) leave();
        });
        await within(reading, "the stream that was left").catch(() => undefined);
        assert.equal(text, BEFORE_BAD_ENDING);
        await assertLeft(lab, behind);
      });

      for (const name of BAD_ENDINGS)
        it(`${name}: a stream that breaks off is an error, never a reply`, async (t) => {
          const lab = await startLab(t);
          let text = "";
          const reading = adapter.read(lab, named(name), (piece) => {
            text += piece;
          });
          await assert.rejects(reading, (error) => {
            adapter.assertBroken(error);
            return true;
          });
          assert.equal(text, BEFORE_BAD_ENDING);
        });
    });
  }

  for (const { status, code, param, over = {}, model = "demo-chat", ...asked } of FAILURES)
    it(`status ${status} of ${model}, whole and streamed`, async (t) => {
      const lab = await startLab(t, over);
      const requestId = `my-${code}`;
      for (const stream of [false, true])
        await assert.rejects(adapter.ask(lab, { model, requestId, stream, ...asked }), (error) => {
          assert.deepEqual(adapter.refusal(error), { status, code, param, id: requestId });
          assert.doesNotMatch(JSON.stringify(error) + String(error), /own words/);
          return true;
        });
    });

  it("comes back after a 429 when the gateway said, under the same id", async (t: TestContext) => {
    const lab = await startFullLab(t);
    const began = performance.now();
    const asked = { model: "exact", retries: 1, requestId: "again" };
    const { text } = await within(adapter.ask(lab, asked), "the retry");
    assert.equal(text, TEXT);
    const paused = performance.now() - began;
    const { ownPauseMs = Infinity } = adapter;
    const told = `Retry-After of 1 second was obeyed, not ${paused} ms`;
    assert.ok(paused > 990 && paused < ownPauseMs, told);
    assert.deepEqual(await statuses(lab, 3), [200, 429, 200]);
    const ids = lab.access.slice(1).map((line) => line["request_id"]);
    assert.deepEqual(ids, ["again", "again"]);
  });
}
