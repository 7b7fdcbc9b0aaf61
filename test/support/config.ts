// Configurations and gateways with every extension, for tests.

import { reloadable, startRecord } from "../../src/reload.ts";
import { dialectsOf } from "../../src/config/extension.ts";
import {
  createGateway as createCoreGateway,
  type Gateway as CoreGateway,
} from "../../src/core/app.ts";
import type { Clock } from "../../src/core/clock.ts";
import { install } from "../../src/core/extension/install.ts";
import type { Extension } from "../../src/core/extension/installer.ts";
import { checkConfig as checkCoreConfig } from "../../src/config/check.ts";
import {
  loadConfig as loadCoreConfig,
  type Loaded,
  type LoadOptions,
} from "../../src/config/load.ts";
import type { Config } from "../../src/core/config.ts";
import { createFormats } from "../../src/config/vendors.ts";
import { createSecretFiles, type Environment } from "../../src/config/secrets.ts";
import { createLoader, isNeededBy } from "../../src/config/loader.ts";
import type { Limiter } from "../../src/core/accounts/limiter.ts";
import type { Writable } from "node:stream";
import type { WriteLines } from "../../src/core/http/line-log.ts";
import { fetchTransport, type Fetch } from "../../src/core/upstream/fetch.ts";
import { extensions as entries } from "../../src/extensions.ts";
import { unhurriedClock } from "./unhurried-clock.ts";

export const loader = createLoader(entries);
export const allExtensions = await loader.load(() => true);
/** What all extensions have installed. */
export const installed = install(allExtensions);

export const formats = createFormats(installed, dialectsOf(entries));
export { VENDOR_PRESETS as VENDORS } from "../../src/config/vendors.ts";

/** The options with which a configuration that may use every extension is checked. */
export const checking = {
  env: {},
  secretFiles: createSecretFiles(""),
  extensions: allExtensions,
  installed,
  entries,
};

/** Checks a configuration that may use every extension. */
export const checkConfig = (json: unknown, env: Environment = {}, secretsOptional = false) =>
  checkCoreConfig(json, { ...checking, env, secretFiles: createSecretFiles(""), secretsOptional });

export const loadConfig = (options: Omit<LoadOptions, "loader">): Promise<Loaded> =>
  loadCoreConfig({ ...options, loader });

export interface GatewayDeps {
  /** Replaces every transport over the network. Absent: the real ones. */
  readonly fetch?: Fetch;
  /** The wall clock, in milliseconds since 1970. Absent: that of unhurried-clock.ts. */
  readonly now?: () => number;
  /** The clock of limiter and breakers, in milliseconds. Absent: as above. */
  readonly monotonic?: () => number;
  /** The timers of all deadlines. Absent: as above. */
  readonly after?: Clock["after"];
  readonly limits?: Limiter;
  readonly accessLog?: WriteLines | Writable;
  readonly diagnostics?: WriteLines | Writable;
  /** Absent: all extensions. */
  readonly extensions?: readonly Extension[];
}

export interface Gateway extends Omit<CoreGateway, "reload"> {
  reload(config: Config): void;
  /** The address of the admin listener. Undefined: there is none. */
  adminAddress(): string | undefined;
}

/** All extensions, except client APIs that the configuration does not name. */
function extensionsFor(config: Config): readonly Extension[] {
  const isLeftOut = (name: string): boolean =>
    entries.some(
      (entry) =>
        entry.name === name && entry.loadIf?.setting === "apis.*" && !isNeededBy(config, entry),
    );
  return allExtensions.filter(({ name }) => !isLeftOut(name));
}

/** Creates a gateway with the extensions of extensionsFor(). */
export function createGateway(config: Config, deps: GatewayDeps = {}): Gateway {
  const { fetch, now, monotonic, after, limits, ...logs } = deps;
  const clock = {
    now: now ?? unhurriedClock.now,
    monotonic: monotonic ?? unhurriedClock.monotonic,
    after: after ?? unhurriedClock.after,
  };
  const extensions = extensionsFor(config);
  const gateway = reloadable(
    createCoreGateway(config, {
      extensions,
      clock,
      ...(fetch && { transport: fetchTransport(fetch) }),
      ...(limits && { sharedLimiter: limits }),
      ...logs,
    }),
    config,
    extensions,
    startRecord(undefined),
  );
  return {
    ...gateway,
    reload: (changed) => gateway.reload(changed, extensionsFor(changed)),
    adminAddress: () =>
      gateway
        .announcements()
        .map((text) => /console and admin on (\S+)/.exec(text)?.[1])
        .find((address) => address !== undefined),
  };
}
