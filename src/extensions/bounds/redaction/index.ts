// Providers' own messages and paths in the operator's logs, /status and the ledger, without the
// secrets that may stand in them.
import type { Config } from "../../../core/config.ts";
import type { Extension, Installed } from "../../../core/extension/installer.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { passwordsIn } from "../../scale/stores/index.ts";
import { createRedact } from "./redact.ts";

export const extension: Extension = {
  name: "redaction",
  install(gateway) {
    gateway.fill(slots.redact, (config, installed) =>
      // Clients' keys are known by their SHA-256 only.
      createRedact(secretsIn(config, installed), new Set(config.keys.map(({ digest }) => digest))),
    );
  },
};

/** The secrets in the core's settings, and those that extensions name. */
export function secretsIn(config: Config, installed: Installed): readonly string[] {
  const { providers, limits } = config;
  const apiKeys = [...providers.values()].flatMap(({ api_key = [] }) => api_key);
  const added = installed.listeners(moments.secrets).flatMap(({ call }) => call(config));
  return [...apiKeys, ...passwordsIn(limits.store), ...added];
}
