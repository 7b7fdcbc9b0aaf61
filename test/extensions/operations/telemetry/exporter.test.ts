// Spans on their way to the collector: batches, bounds, retries and the end, by a clock that the
// test moves.

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { describe, it } from "node:test";
import {
  BATCH,
  CLOSE_MS,
  createExporter,
  DELAY_MS,
  MAX_QUEUED,
  MAX_RETRIES,
  MAX_WAIT_MS,
  SEND_MS,
  REPORT_MS,
  type SendResult,
} from "../../../../src/extensions/operations/telemetry/exporter.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";

const SENT: SendResult = { kind: "sent", rejected: 0 };
const later = (afterMs?: number): SendResult => ({ kind: "later", detail: "later", afterMs });
const REFUSED: SendResult = { kind: "refused", detail: "status 400" };

interface Sending {
  readonly spans: readonly string[];
  answer(result: SendResult): Promise<void>;
}

/** A collector that answers when the test says, or by `answers`, the last of which stays. */
function bench(...answers: readonly SendResult[]) {
  const clock = createFakeClock();
  const sendings: Sending[] = [];
  const told: Readonly<Record<string, unknown>>[] = [];
  const exporter = createExporter({
    clock,
    diagnose: (event) => told.push(event),
    send: (spans, signal) =>
      new Promise((resolve) => {
        const answer = async (result: SendResult): Promise<void> => {
          resolve(result);
          await turn();
        };
        signal.addEventListener("abort", () => resolve(later()));
        sendings.push({ spans, answer });
        const planned = answers[Math.min(sendings.length, answers.length) - 1];
        if (planned) resolve(planned);
      }),
  });
  async function advance(ms: number): Promise<void> {
    clock.advance(ms);
    await turn();
  }
  function add(count: number): void {
    for (let at = 0; at < count; at += 1) exporter.add(`"${at}"`);
  }
  return { clock, sendings, told, exporter, advance, add };
}

describe("spans for the collector", () => {
  it("wait for others, and no longer than the delay", async () => {
    const { sendings, add, advance, exporter } = bench(SENT);
    add(3);
    await advance(DELAY_MS - 1);
    assert.equal(sendings.length, 0);
    await advance(1);
    assert.deepEqual(
      sendings.map(({ spans }) => spans),
      [['"0"', '"1"', '"2"']],
    );
    assert.deepEqual(exporter.report(), { sent: 3, dropped: 0 });
  });

  it("go at once when a batch is full, one batch at a time", async () => {
    const { sendings, add, advance, clock, exporter } = bench();
    add(2 * BATCH + 10);
    assert.deepEqual(
      sendings.map(({ spans }) => spans.length),
      [BATCH],
    );
    await sendings[0]!.answer(SENT);
    assert.deepEqual(
      sendings.map(({ spans }) => spans.length),
      [BATCH, BATCH],
    );
    await sendings[1]!.answer(SENT);
    assert.equal(sendings.length, 2, "the rest waits for others");
    await advance(DELAY_MS);
    await sendings[2]!.answer(SENT);
    assert.deepEqual(exporter.report(), { sent: 2 * BATCH + 10, dropped: 0 });
    assert.equal(clock.pending(), 0);
  });

  it("beyond the bound are dropped, counted, and told at once and then once a minute", async () => {
    const { sendings, told, add, advance, exporter } = bench();
    add(BATCH + MAX_QUEUED + 7);
    assert.equal(sendings.length, 1);
    assert.deepEqual(exporter.report(), { sent: 0, dropped: 7 });
    assert.deepEqual(
      told.map(({ event, level, spans }) => [event, level, spans]),
      [["telemetry_dropped", "warn", 1]],
    );
    await sendings[0]!.answer(SENT);
    await sendings[1]!.answer(SENT);
    add(5 * BATCH);
    const { dropped } = exporter.report();
    await advance(REPORT_MS);
    assert.equal(told.length >= 2, true);
    const counted = told.reduce((sum, { spans }) => sum + Number(spans), 0);
    assert.ok(counted >= dropped, "every dropped span is told");
  });

  it("are sent again after a second, two, four and eight, then dropped", async () => {
    const { sendings, add, advance, exporter, told } = bench(later());
    add(1);
    await advance(DELAY_MS);
    for (let retry = 0; retry < MAX_RETRIES; retry += 1) {
      assert.equal(sendings.length, retry + 1);
      await advance(1_000 * 2 ** retry * 0.5 - 1);
      assert.equal(sendings.length, retry + 1, "not before half of the time");
      await advance(1_000 * 2 ** retry * 0.5 + 1);
    }
    assert.equal(sendings.length, MAX_RETRIES + 1);
    assert.deepEqual(exporter.report(), { sent: 0, dropped: 1 });
    assert.equal(told[0]?.["detail"], "later");
  });

  it("are sent again when the collector says, at most after ten minutes", async () => {
    const { sendings, add, advance } = bench(later(30_000), later(MAX_WAIT_MS * 9), SENT);
    add(1);
    await advance(DELAY_MS);
    await advance(29_999);
    assert.equal(sendings.length, 1);
    await advance(1);
    assert.equal(sendings.length, 2);
    await advance(MAX_WAIT_MS);
    assert.equal(sendings.length, 3);
  });

  it("that the collector refuses are dropped, and the next batch goes its way", async () => {
    const { add, advance, exporter } = bench(REFUSED, SENT);
    add(2);
    await advance(DELAY_MS);
    add(3);
    await advance(DELAY_MS);
    assert.deepEqual(exporter.report(), { sent: 3, dropped: 2 });
  });

  it("of a partial success count as sent and as dropped, whatever number it says", async () => {
    const { add, advance, exporter } = bench(
      { kind: "sent", rejected: 2 },
      { kind: "sent", rejected: 1e9 },
    );
    add(5);
    await advance(DELAY_MS);
    assert.deepEqual(exporter.report(), { sent: 3, dropped: 2 });
    add(4);
    await advance(DELAY_MS);
    assert.deepEqual(exporter.report(), { sent: 3, dropped: 6 });
  });

  it("have a deadline for the collector's answer", async () => {
    const { sendings, add, advance } = bench();
    add(1);
    await advance(DELAY_MS);
    await advance(SEND_MS);
    await advance(1_000);
    assert.equal(sendings.length, 2, "sent again");
  });
});

describe("the end of the process", () => {
  it("sends what is held", async () => {
    const { sendings, add, exporter, clock } = bench(SENT);
    add(BATCH - 1);
    await exporter.close();
    assert.equal(sendings.length, 1);
    assert.deepEqual(exporter.report(), { sent: BATCH - 1, dropped: 0 });
    assert.equal(clock.pending(), 0, "no timer keeps the process alive");
  });

  it("does not wait for a retry, and tries no batch twice", async () => {
    const { sendings, add, advance, exporter, clock } = bench(later());
    add(1);
    await advance(DELAY_MS);
    add(BATCH + 1);
    await exporter.close();
    assert.equal(sendings.length, 4, "the first batch once more, and each of the others once");
    assert.deepEqual(exporter.report(), { sent: 0, dropped: BATCH + 2 });
    assert.equal(clock.pending(), 0);
  });

  it("gives a collector that is silent two seconds, then drops and tells", async () => {
    const { sendings, told, add, exporter, clock } = bench();
    add(BATCH + 3);
    const closed = exporter.close();
    await turn();
    clock.advance(CLOSE_MS);
    await closed;
    assert.equal(sendings.length, 1);
    assert.deepEqual(exporter.report(), { sent: 0, dropped: BATCH + 3 });
    const counted = told.reduce((sum, { spans }) => sum + Number(spans), 0);
    assert.equal(counted, BATCH + 3);
    assert.equal(clock.pending(), 0);
  });

  it("without spans sends nothing", async () => {
    const { sendings, exporter } = bench();
    await exporter.close();
    assert.equal(sendings.length, 0);
  });
});
