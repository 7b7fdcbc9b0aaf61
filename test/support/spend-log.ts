// A spend log on a clock that the test moves, without a gateway around it.

import { join } from "node:path";
import type { TestContext } from "node:test";
import { createSpendLog } from "../../src/extensions/money/ledger/index.ts";
import { settleText } from "../../src/extensions/money/records/index.ts";
import { NO_USAGE } from "../../src/core/ledger/meter.ts";
import { createFakeClock } from "./fake-clock.ts";
import { folder } from "./folder.ts";

export const NOON = Date.parse("2026-01-31T12:00:00.000Z");

export async function startSpendLog(
  t: TestContext,
  { segmentBytes = 1024 ** 2, dataDir = folder(), namesTaken = [] as readonly string[] } = {},
) {
  const clock = createFakeClock(NOON);
  const events: Readonly<Record<string, unknown>>[] = [];
  const fencings: string[] = [];
  const log = createSpendLog({
    dir: join(dataDir, "spend"),
    dataDir,
    segmentBytes,
    clock,
    diagnose: (event) => events.push(event),
    namesTaken: async () => namesTaken,
    fenced: (message) => fencings.push(message),
  });
  await log.start();
  let isClosed = false;
  const close = async () => {
    if (!isClosed) await log.close();
    isClosed = true;
  };
  t.after(() => {
    const closing = close();
    const timer = setInterval(() => clock.advance(2_000), 1); // what is left unsettled is left
    return closing.finally(() => clearInterval(timer));
  });
  const open = (gateway_request_id = "r") =>
    log.open({
      time: new Date(clock.now()).toISOString(),
      gateway_request_id,
      account: "acme",
      key_id: "k",
      model_requested: "m",
      stream: false,
    });
  /** Writes the settle line. */
  const settle = (entry: ReturnType<typeof open>) =>
    entry.settle(
      settleText(entry.record, clock.now(), {
        status: "completed",
        httpStatus: 200,
        errorCode: null,
        finishReason: "stop",
        attempts: [],
        firstTokenMs: null,
        modelServed: "m",
        provider: "lab",
        usage: NO_USAGE.usage,
        usageSource: "provider",
        cost: "0",
        currency: "USD",
      }),
    );
  /** One request, from its beginning to its end. */
  const request = async () => {
    const entry = open();
    await entry.opened;
    await settle(entry);
    return entry;
  };
  /** The events' names. */
  const told = () => events.map(({ event }) => event);
  return { dataDir, clock, log, events, told, fencings, open, settle, request, close };
}
