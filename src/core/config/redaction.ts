// The secrets of a configuration: what must not show in a log, wherever it stands.
import type { Config } from "./schema.ts";

export interface ConfigSecrets {
  /** Keys and passwords, as they are written in the configuration. */
  readonly texts: readonly string[];
  /** The SHA-256 of each client's key, in hexadecimal digits. The keys themselves are not kept. */
  readonly digests: ReadonlySet<string>;
}

export function secretsIn({ providers, keys, admin, limits, usage }: Config): ConfigSecrets {
  const apiKeys = [...providers.values()].map(({ api_key }) => api_key);
  const passwords = [limits.store, usage.store].flatMap(passwordsIn);
  const texts = [...apiKeys, admin?.password, ...passwords].filter((text) => text !== undefined);
  return { texts, digests: new Set(keys.map(({ digest }) => digest)) };
}

/**
 * The password in the address of a store, as it is written there and as it is decoded. Empty in
 * `memory` or `file`.
 */
function passwordsIn(address: string): string[] {
  const written = URL.canParse(address) ? new URL(address).password : "";
  try {
    return [written, decodeURIComponent(written)];
  } catch {
    return [written]; // a stray `%`
  }
}
