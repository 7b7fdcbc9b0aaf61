// A spend log with a clock that the test moves, without a gateway.

import type { TestContext } from "node:test";
import { createSpendLog } from "../../src/extensions/money/ledger/index.ts";
import type { LedgerEntry, Settlement } from "../../src/core/ledger/ledger.ts";
import { NO_USAGE } from "../../src/core/ledger/meter.ts";
import { createFakeClock } from "./fake-clock.ts";
import { folder } from "./folder.ts";

export const NOON = Date.parse("2026-01-31T12:00:00.000Z");

/** How every request ends. */
export const SETTLEMENT: Omit<Settlement, "endedAt"> = {
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
};

export async function startSpendLog(
  t: TestContext,
  { segmentBytes = 1024 ** 2, dataDir = folder(), namesTaken = [] as readonly string[] } = {},
) {
  const clock = createFakeClock(NOON);
  const events: Readonly<Record<string, unknown>>[] = [];
  const fencings: string[] = [];
  const log = createSpendLog({
    dataDir,
    segmentBytes,
    clock,
    diagnose: (event) => events.push(event),
    namesTaken: () => namesTaken,
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
    const timer = setInterval(() => clock.advance(2_000), 1); // closing waits for open requests
    return closing.finally(() => clearInterval(timer));
  });
  const open = (requestId = "r", holdId?: string) =>
    log.open({
      requestId,
      account: "acme",
      keyId: "k",
      modelRequested: "m",
      stream: false,
      holdId,
    });
  /** Writes the settle line. */
  const settle = (entry: LedgerEntry) => entry.settle({ ...SETTLEMENT, endedAt: clock.now() });
  /** Opens and settles one request. */
  const request = async () => {
    const entry = open();
    await entry.opened;
    await settle(entry);
    return entry;
  };
  /** The names of the diagnostic events. */
  const told = () => events.map(({ event }) => event);
  return { dataDir, clock, log, events, told, fencings, open, settle, request, close };
}
