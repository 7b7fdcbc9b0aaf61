// The books of a gateway whose database does not answer.

import type { Extension } from "../../../../src/core/extension/installer.ts";
import { install } from "../../../../src/core/extension/install.ts";
import { usageStoreSlot } from "../../../../src/extensions/money/records/index.ts";
import type { UsageStore } from "../../../../src/extensions/money/records/index.ts";
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import type { GatewayContext } from "../../../../src/core/extension/installer.ts";
import { slots } from "../../../../src/core/extension/places.ts";
import * as books from "../../../../src/extensions/money/books/index.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { waitFor } from "../../../support/wait.ts";

it("begin a segment without waiting long for a database that hangs", async () => {
  const hang = (): Promise<never> => new Promise(() => undefined);
  const store = { cursor: hang, inspect: hang, close: async () => undefined };
  const slow: Extension = {
    name: "slow",
    install: (gateway) => gateway.fill(usageStoreSlot, () => store as unknown as UsageStore),
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
  await waitFor(() => clock.pending() > 0, "the store to be asked");
  clock.advance(500);
  const segments = () =>
    readdirSync(join(data_dir, "spend")).filter((name) => name.endsWith(".jsonl"));
  await waitFor(() => segments().length > 0, "the first segment");
  const timer = setInterval(() => clock.advance(5_000), 1);
  await opening;
  await events.get("close")?.();
  clearInterval(timer);
  assert.deepEqual(segments(), ["2026-01-31.0001.jsonl"]);
});
