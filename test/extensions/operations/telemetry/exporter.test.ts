// Spans sent to the collector: batches, limits, retries and shutdown, on a clock that the test
// moves.

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { describe, it } from "node:test";
import {
  BATCH,
  CLOSE_MS,
  createExporter,
  DELAY_MS,
  DELAYED_MS,
  MAX_HELD,
  MAX_WAIT_MS,
  RETRY_MS,
  SEND_MS,
  REPORT_MS,
  type SendResult,
  type SpanSender,
} from "../../../../src/extensions/operations/telemetry/exporter.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";

const SENT: SendResult = { rejected: 0, detail: "" };
const REFUSED: SendResult = { rejected: Infinity, detail: "status 400" };
const later = (afterMs?: number): SendResult => ({
  rejected: Infinity,
  detail: "later",
  isTemporary: true,
  afterMs,
});

/** A collector that answers when the test says, or with `answers`, repeating the last. */
function bench(...answers: readonly SendResult[]) {
  const clock = createFakeClock();
  const batches: (readonly string[])[] = [];
  const open: ((result: SendResult) => void)[] = [];
  const told: Readonly<Record<string, unknown>>[] = [];
  const send: SpanSender = (spans, signal) =>
    new Promise((resolve) => {
      batches.push(spans);
      open.push(resolve);
      signal.addEventListener("abort", () => resolve(later()));
      const planned = answers[Math.min(batches.length, answers.length) - 1];
      if (planned || signal.aborted) resolve(planned ?? later());
    });
  const exporter = createExporter(send, clock, (event) => told.push(event));
  return {
    clock,
    told,
    exporter,
    sizes: () => batches.map((spans) => spans.length),
    report: exporter.report,
    logged: () => told.reduce((sum, { spans }) => sum + Number(spans ?? 0), 0),
    async answer(result: SendResult): Promise<void> {
      open.at(-1)!(result);
      await turn();
    },
    async advance(ms: number): Promise<void> {
      clock.advance(ms);
      await turn();
    },
    async add(count: number): Promise<void> {
      for (let at = 0; at < count; at += 1) exporter.add(`"${at}"`);
      await turn();
    },
  };
}

describe("spans for the collector", () => {
  it("are sent together after a delay", async () => {
    const { sizes, add, advance, report, clock } = bench(SENT);
    await add(3);
    await advance(DELAY_MS - 1);
    assert.deepEqual(sizes(), []);
    await advance(1);
    assert.deepEqual(sizes(), [3]);
    assert.deepEqual(report(), { sent: 3, dropped: 0 });
    assert.equal(clock.pending(), 0);
  });

  it("leave no listener on a signal that outlives their batch", async (t) => {
    const { add, advance } = bench(SENT);
    const any = t.mock.method(AbortSignal, "any");
    await add(1);
    await advance(DELAY_MS);
    assert.equal(any.mock.callCount(), 0, "AbortSignal.any leaks in Node 22");
  });

  it("are sent at once when a batch is full, one batch at a time; the rest waits for the delay", async () => {
    const { sizes, add, answer, advance, report } = bench();
    await add(2 * BATCH + 10);
    assert.deepEqual(sizes(), [BATCH]);
    await answer(SENT);
    assert.deepEqual(sizes(), [BATCH, BATCH]);
    await answer(SENT);
    assert.deepEqual(sizes(), [BATCH, BATCH]);
    await advance(DELAY_MS);
    await answer(SENT);
    assert.deepEqual(report(), { sent: 2 * BATCH + 10, dropped: 0 });
  });

  it("beyond the limit are dropped and counted, which is reported at once and then once a minute", async () => {
    const { told, logged, add, answer, advance, report, clock, exporter } = bench();
    await add(MAX_HELD + 7);
    assert.deepEqual(report(), { sent: 0, dropped: 7 });
    const detail = "the collector is too slow";
    assert.deepEqual(told, [{ event: "telemetry_dropped", level: "warn", spans: 1, detail }]);
    await answer(SENT);
    await add(BATCH + 1);
    assert.deepEqual(report(), { sent: BATCH, dropped: 8 });
    await advance(REPORT_MS - 1);
    assert.equal(logged(), 1);
    const closed = exporter.close();
    await advance(1);
    assert.equal(logged(), 8, "without further drops");
    await advance(CLOSE_MS);
    await closed;
    assert.equal(logged(), report().dropped);
    assert.equal(clock.pending(), 0);
  });

  it("are sent again while the collector is unavailable, and further ones beyond the limit are dropped", async () => {
    const { sizes, add, advance, report, told } = bench(later(), later(), later(), SENT);
    await add(1);
    await advance(DELAY_MS);
    assert.deepEqual(told, [{ event: "telemetry_delayed", level: "warn", detail: "later" }]);
    await add(MAX_HELD);
    assert.deepEqual(report(), { sent: 0, dropped: 1 });
    assert.equal(told[1]?.["detail"], "later");
    await advance(RETRY_MS - 1);
    assert.deepEqual(sizes(), [1]);
    for (const ms of [1, RETRY_MS, RETRY_MS]) await advance(ms);
    assert.deepEqual(sizes().slice(0, 4), [1, BATCH, BATCH, BATCH]);
    assert.deepEqual(report(), { sent: MAX_HELD, dropped: 1 });
    assert.equal(told.length, 2, "the same reason is not told again");
  });

  it("that wait are logged once an hour, also if the reasons alternate or a batch was sent", async () => {
    const away = { ...later(), detail: "away" };
    const { add, advance, told } = bench(later(), away, later(), away, SENT, away, SENT);
    await add(1);
    await advance(DELAY_MS);
    for (let sent = 0; sent < 4; sent += 1) await advance(RETRY_MS);
    assert.deepEqual(
      told.map(({ detail }) => detail),
      ["later"],
    );
    await advance(DELAYED_MS);
    await add(1);
    await advance(DELAY_MS);
    assert.deepEqual(
      told.map(({ detail }) => detail),
      ["later", "away"],
    );
  });

  it("are sent again when the collector asks, after one second to ten minutes, however many arrived", async () => {
    const answers = [later(30_000), later(MAX_WAIT_MS * 9), later(0), SENT];
    const { sizes, add, advance } = bench(...answers);
    await add(1);
    await advance(DELAY_MS);
    await add(BATCH);
    await advance(29_999);
    assert.deepEqual(sizes(), [1]);
    await advance(1);
    assert.deepEqual(sizes(), [1, BATCH]);
    await advance(MAX_WAIT_MS);
    assert.deepEqual(sizes(), [1, BATCH, BATCH]);
    await advance(999);
    assert.deepEqual(sizes(), [1, BATCH, BATCH]);
    await advance(1);
    assert.deepEqual(sizes(), [1, BATCH, BATCH, BATCH]);
  });

  it("that the collector rejects are dropped, whatever count it returns; others are still sent", async () => {
    const rejecting = (rejected: number): SendResult => ({ rejected, detail: "" });
    const { add, advance, report } = bench(REFUSED, SENT, rejecting(2), rejecting(1e9));
    for (const [count, sent, dropped] of [
      [2, 0, 2],
      [3, 3, 2],
      [5, 6, 4],
      [4, 6, 8],
    ] as const) {
      await add(count);
      await advance(DELAY_MS);
      assert.deepEqual(report(), { sent, dropped });
    }
  });

  it("have a timeout for the collector's response", async () => {
    const { sizes, add, advance } = bench();
    await add(1);
    for (const ms of [DELAY_MS, SEND_MS, RETRY_MS, DELAY_MS]) await advance(ms);
    assert.deepEqual(sizes(), [1, 1], "sent again");
  });
});

describe("the end of the process", () => {
  it("does not wait for a retry, and tries no batch twice", async () => {
    const { sizes, add, advance, exporter, clock } = bench(later());
    await add(1);
    await advance(DELAY_MS);
    await add(BATCH + 1);
    await exporter.close();
    assert.deepEqual(sizes(), [1, BATCH, 2], "the first once more, each of the others once");
    assert.deepEqual(exporter.report(), { sent: 0, dropped: BATCH + 2 });
    assert.equal(clock.pending(), 0);
  });

  it("gives a silent collector two seconds, then drops and reports the spans", async () => {
    const { sizes, logged, add, advance, exporter, clock } = bench();
    await add(BATCH + 3);
    const closed = exporter.close();
    await turn();
    await advance(CLOSE_MS);
    await closed;
    assert.deepEqual(sizes(), [BATCH]);
    assert.deepEqual(exporter.report(), { sent: 0, dropped: BATCH + 3 });
    assert.equal(logged(), BATCH + 3);
    assert.equal(clock.pending(), 0);
  });
});
