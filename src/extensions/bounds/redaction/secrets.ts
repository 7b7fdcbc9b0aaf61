// The secrets of a configuration: what must not show in a log, wherever it stands.
import { passwordsIn } from "../../scale/stores/index.ts";
import type { Config } from "../../../core/config.ts";
import type { Installed } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";

/** Those of the core's settings, and those that extensions name. Clients' keys are not kept. */
export function secretsIn(config: Config, installed: Installed) {
  const { providers, keys, limits } = config;
  const apiKeys = [...providers.values()].flatMap(({ api_key = [] }) => api_key);
  const added = installed.listeners(moments.secrets).flatMap(({ call }) => call(config));
  const texts = [...apiKeys, ...passwordsIn(limits.store), ...added];
  /** `digests`: the SHA-256 of each client's key, in hexadecimal digits. */
  return { texts, digests: new Set(keys.map(({ digest }) => digest)) };
}
