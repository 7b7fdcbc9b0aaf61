// Removes secrets from the providers' messages and paths that the operator's logs, /status and the
// ledger quote.
import type { Config } from "../../../core/config.ts";
import { section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Installed, Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import { boolean, withDefault } from "../../../core/schema/checker.ts";
import { passwordsIn } from "../../scale/stores/index.ts";
import { createRedact } from "./redact.ts";

/**
 * What the operator's logs may quote. If `provider_messages` is false, neither messages, which may
 * quote a prompt, nor paths of providers are quoted.
 */
const logs = defineSetting("logs", { provider_messages: true }, () =>
  section({ provider_messages: withDefault(boolean(), true) }),
);

export const settings = [logs];

export function install(gateway: Installer): void {
  gateway.fill(slots.redact, (config, installed) => {
    if (!logs.of(config).provider_messages) return undefined;
    // Clients' keys are known by their SHA-256 only.
    const clientKeys = new Set(config.keys.map(({ digest }) => digest));
    return createRedact(secretsIn(config, installed), clientKeys);
  });
}

/** The secrets in the core's settings, and those that extensions report. */
export function secretsIn(config: Config, installed: Installed): readonly string[] {
  const { providers, limits } = config;
  const apiKeys = [...providers.values()].flatMap(({ api_key = [] }) => api_key);
  const added = installed.listeners(hooks.secrets).flatMap(({ call }) => call(config));
  return [...apiKeys, ...passwordsIn(limits.store), ...added];
}
