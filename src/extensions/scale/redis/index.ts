// Limits that any number of gateways share: `"limits": { "store": "redis://..." }`.
import type { GatewayPart } from "../../../core/extension/extension.ts";
import type { ConfigExtension } from "../../../config/extension.ts";
import { createSharedLimiter } from "./limiter.ts";
import { isRedis, loadRedis, onError, openStoredScript } from "./store.ts";

export { onError, openStoredScript, type OnError, type StoredScript } from "./store.ts";

export const extension: ConfigExtension = {
  name: "redis",
  settings: [onError],
  store: {
    setting: "limits.store",
    scheme: /^rediss?:\/\/./,
    expected: "a Redis or Valkey server (redis://...)",
  },
  assertReady(config) {
    if (isRedis(config)) loadRedis();
  },
  start({ config, limiter, diagnose }): GatewayPart {
    const path = "extensions/scale/redis/script.lua";
    const script = openStoredScript(config, "limits", path, diagnose);
    if (!script) return {};
    return {
      limiter: createSharedLimiter(script, limiter, onError.of(config)),
      open: script.start,
      close: script.close,
      report: script.fault,
    };
  },
  status(faults, config) {
    if (!isRedis(config)) return {};
    const fault = faults.find((each) => typeof each === "string") ?? null;
    return { limits: { store: "redis", fault } };
  },
};
