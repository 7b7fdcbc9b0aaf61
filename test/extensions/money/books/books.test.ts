// The books of a gateway whose database does not respond.

import { install } from "../../../../src/core/extension/install.ts";
import { usageStoreSlot, type UsageStore } from "../../../../src/extensions/money/records/index.ts";
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import type { Extension, GatewayContext } from "../../../../src/core/extension/installer.ts";
import { slots } from "../../../../src/core/extension/places.ts";
import * as books from "../../../../src/extensions/money/books/index.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { waitFor } from "../../../support/wait.ts";

/** Opens books with this store at noon, on a clock that the test moves. */
function openBooks(store: Partial<UsageStore>) {
  const slow: Extension = {
    name: "slow",
    install: (gateway) => gateway.fill(usageStoreSlot, () => store as UsageStore),
  };
  const data_dir = folder();
  const clock = createFakeClock(Date.parse("2026-01-31T12:00:00Z"));
  const config = {
    ...{ data_dir, currency: "USD", usage: { store: "slow:", sync_ms: 5_000 } },
    spend: { keep_days: 400, segment_bytes: 1024 },
  };
  const events = new Map<string, () => Promise<void>>();
  const on = (event: string, listener: () => Promise<void>) => events.set(event, listener);
  const installed = install([slow, { name: "books", ...books }]);
  const context = { config, clock, diagnose: () => undefined, installed, on };
  installed.filled(slots.ledger)?.(context as unknown as GatewayContext);
  const opening = events.get("open")?.();
  const spendDir = join(data_dir, "spend");
  const segments = () =>
    existsSync(spendDir) ? readdirSync(spendDir).filter((name) => name.endsWith(".jsonl")) : [];
  async function close(): Promise<void> {
    const timer = setInterval(() => clock.advance(5_000), 1);
    await opening;
    await events.get("close")?.();
    clearInterval(timer);
  }
  return { clock, segments, close };
}

const hang = (): Promise<never> => new Promise(() => undefined);

it("start a segment without waiting long for a database that hangs", async () => {
  const { clock, segments, close } = openBooks({
    cursor: hang,
    inspect: hang,
    close: async () => undefined,
  });
  await waitFor(() => clock.pending() > 0, "the store to be asked");
  clock.advance(500);
  await waitFor(() => segments().length > 0, "the first segment");
  await close();
  // The segment's number, from the seconds of the day, is new.
  assert.deepEqual(segments(), ["2026-01-31.53201.jsonl"]);
});

it("give no segment a name that usage records refer to", async () => {
  const known = { first: "", bytes: 0, lines: 0, unsettled: 0 };
  const { segments, close } = openBooks({
    cursor: async () => ({ "2026-01-31.0004.jsonl": known }),
    inspect: hang,
    close: async () => undefined,
  });
  await close();
  assert.deepEqual(segments(), ["2026-01-31.0005.jsonl"]);
});
