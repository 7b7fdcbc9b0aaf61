// Limits that any number of gateways share: `"limits": { "store": "redis://..." }`.
import type { Installer } from "../../../core/extension/installer.ts";
import { configMoments, configSlots } from "../../../config/extension.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { createSharedLimiter } from "./limiter.ts";
import { isRedis, loadRedis, onError, openStoredScript } from "./store.ts";

export { onError, openStoredScript, type OnError, type StoredScript } from "./store.ts";

export const settings = [onError];

/**
 * An admission to a window of a millisecond: it shows whether the store takes what is written, too.
 */
const LOOK = ["1", "chat-gateway:report", "1", "0", "1"];

export function install(gateway: Installer): void {
  gateway.fill(configSlots.store("limits.store"), {
    // What is encoded in it can be decoded, and its path is the number of a database.
    scheme: /^rediss?:\/\/([^%/?#\s]|%[\da-f]{2})+(\/\d*)?$/i,
    expected: "a Redis or Valkey server (redis://...)",
  });
  gateway.fill(slots.limiter, ({ config, limiter, diagnose, on }) => {
    const path = "extensions/scale/redis/script.lua";
    const script = openStoredScript(config, "limits", path, diagnose);
    if (!script) return undefined;
    let isOpen = false;
    /** The last one. The store answers in the order of the questions. */
    let looking: Promise<unknown> | undefined;
    on("open", async () => {
      await script.start();
      isOpen = true;
    });
    on("report", () => {
      // Only this tells the next report whether a store answers that no request asks: budgets have
      // a connection of their own.
      if (isOpen)
        looking = script.run(LOOK, (answer) => (answer as readonly unknown[][])[2]!.length);
      return script.fault();
    });
    on("close", async () => {
      isOpen = false;
      await looking; // a connection that ends before it answers is a fault
      script.close();
    });
    return createSharedLimiter(script, limiter, onError.of(config));
  });
  gateway.on(configMoments.assertReady, (config) => {
    if (isRedis(config)) loadRedis();
  });
  gateway.on(moments.status, (faults, config) => {
    if (!isRedis(config)) return {};
    const fault = faults.find((each) => typeof each === "string") ?? null;
    return { limits: { store: "redis", fault } };
  });
}
