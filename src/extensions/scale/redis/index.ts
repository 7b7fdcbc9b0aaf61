// Limits that several gateways share, in Redis or Valkey: `"limits": { "store": "redis://..." }`.
import { loadPeer } from "../stores/index.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { configMoments, configSlots, type ConfigExtension } from "../../../config/extension.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { literal, withDefault } from "../../../core/schema/checker.ts";
import { createSharedLimiter, type OnError } from "./limiter.ts";
import { createSharedWindows } from "./shared-windows.ts";
import {
  createStoredScript,
  type RedisPackage,
  type StoredScript,
  type StoreEvents,
} from "./store.ts";

export type { StoredScript } from "./store.ts";
export type { OnError } from "./limiter.ts";

/** The behaviour while Redis cannot be reached: each gateway limits by itself, or refuses. */
export const onError = defineSetting<OnError>(
  "limits.on_error",
  "local",
  () => withDefault(literal("local", "refuse"), "local"),
  { fixed: true },
);

const isRedis = (address: string): boolean => address !== "memory";

/**
 * A script of another extension at the server of the limits. Undefined: the configuration names no
 * server. Throws a ValidationError if the package is missing.
 */
export const openStoredScript = (
  { limits }: Config,
  script: string,
  events: StoreEvents,
): StoredScript | undefined =>
  isRedis(limits.store) ? createStoredScript(loadRedis(), limits.store, script, events) : undefined;

const loadRedis = (): RedisPackage => loadPeer("redis", "limits.store");

export const extension: ConfigExtension = {
  name: "redis",
  settings: [onError],
  install(gateway) {
    gateway.fill(configSlots.store("limits.store"), {
      scheme: /^rediss?:\/\/./,
      expected: "a Redis or Valkey server (redis://...)",
    });
    gateway.fill(slots.limiter, ({ config, limiter, diagnose, on }) => {
      if (!isRedis(config.limits.store)) return undefined;
      const meanwhile = onError.of(config);
      const events = storeEvents(meanwhile, diagnose);
      const windows = createSharedWindows(loadRedis(), config.limits.store, events);
      on("open", windows.start);
      on("report", windows.fault);
      on("close", windows.close);
      return createSharedLimiter(windows, limiter, meanwhile);
    });
    gateway.on(configMoments.assertReady, ({ limits }) => {
      if (isRedis(limits.store)) loadRedis();
    });
    gateway.on(moments.status, (faults, { limits }) => {
      if (!isRedis(limits.store)) return {};
      const fault = faults.find((each) => typeof each === "string") ?? null;
      return { limits: { store: "redis", fault } };
    });
  },
};

const storeEvents = (meanwhile: OnError, diagnose: Diagnose): StoreEvents => ({
  failed(message) {
    const fate = meanwhile === "local" ? "each gateway limits by itself" : "requests are refused";
    const detail = `${fate} until it can be asked: ${message}`;
    diagnose({ event: "limits_store_failed", level: "error", detail });
  },
  recovered: () => diagnose({ event: "limits_store_recovered", level: "info" }),
});
