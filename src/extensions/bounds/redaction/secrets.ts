// The secrets of a configuration: what must not show in a log, wherever it stands.
import { passwordsIn } from "../../scale/stores/index.ts";
import type { Config } from "../../../core/config.ts";
import type { Installed } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";

export interface ConfigSecrets {
  /** Keys and passwords, as they are written in the configuration. */
  readonly texts: readonly string[];
  /** The SHA-256 of each client's key, in hexadecimal digits. The keys themselves are not kept. */
  readonly digests: ReadonlySet<string>;
}

/** Those of the core's settings, and those that extensions name. */
export function secretsIn(config: Config, installed: Installed): ConfigSecrets {
  const { providers, keys, limits } = config;
  const apiKeys = [...providers.values()].flatMap(({ api_key = [] }) => api_key);
  const added = installed.listeners(moments.secrets).flatMap(({ call }) => call(config));
  const texts = [...apiKeys, ...passwordsIn(limits.store), ...added];
  return { texts, digests: new Set(keys.map(({ digest }) => digest)) };
}
