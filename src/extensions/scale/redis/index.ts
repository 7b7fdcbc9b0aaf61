// Limits that any number of gateways share: `"limits": { "store": "redis://..." }`.
import type { Installer } from "../../../core/extension/installer.ts";
import { configHooks, configSlots } from "../../../config/extension.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import { createSharedLimiter } from "./limiter.ts";
import { isRedis, loadRedis, onError, openStoredScript } from "./store.ts";

export { onError, openStoredScript, type OnError, type StoredScript } from "./store.ts";

export const settings = [onError];

/** Admits one request to a window of one millisecond, to test whether the store accepts writes. */
const HEALTH_CHECK = ["1", "chat-gateway:report", "1", "0", "1"];

export function install(gateway: Installer): void {
  gateway.fill(configSlots.store("limits.store"), {
    // Percent-encodings must be valid. The path is a database number.
    scheme: /^rediss?:\/\/([^%/?#\s]|%[\da-f]{2})+(\/\d*)?$/i,
    expected: "a Redis or Valkey server (redis://...)",
  });
  gateway.fill(slots.limiter, ({ config, limiter, diagnose, on }) => {
    const path = "extensions/scale/redis/script.lua";
    const script = openStoredScript(config, "limits", path, diagnose);
    if (!script) return undefined;
    let isOpen = false;
    /** The last health check. Answers come in order, so earlier checks have settled before it. */
    let healthCheck: Promise<unknown> | undefined;
    on("open", async () => {
      await script.start();
      isOpen = true;
    });
    on("report", () => {
      // Without requests, only this detects a failure of the store. The next report has the result.
      if (isOpen)
        healthCheck = script.run(
          HEALTH_CHECK,
          (answer) => (answer as readonly unknown[][])[2]!.length,
        );
      return script.fault();
    });
    on("close", async () => {
      isOpen = false;
      await healthCheck; // closing the connection during the check would make it fail
      script.close();
    });
    return createSharedLimiter(script, limiter, onError.of(config));
  });
  gateway.on(configHooks.assertReady, (config) => {
    if (isRedis(config)) loadRedis();
  });
  gateway.on(hooks.status, (faults, config) => {
    if (!isRedis(config)) return {};
    const fault = faults.find((report) => typeof report === "string") ?? null;
    return { limits: { store: "redis", fault } };
  });
}
