// What a configuration decides: whose keys are valid, which models there are, and what requests
// pass first. It is replaced as one; a request keeps what it began with.
import { createKeyring, NO_CREATED_KEYS, type Keyring } from "./accounts/keyring.ts";
import type { Snapshot } from "./chat/context.ts";
import type { Clock } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Diagnose } from "./diagnose.ts";
import type { Extension } from "./extension/extension.ts";
import { soleOf } from "./extension/gateway-parts.ts";
import type { Catalog } from "./routing/catalog.ts";

export interface Snapshots {
  /** The snapshot in force. Another configuration or other keys replace it. */
  current(): Snapshot;
  /**
   * Prepares for another configuration. The returned function puts it in force, and cannot fail.
   */
  prepare(config: Config, extensions: readonly Extension[]): () => void;
  /** Stops watching for changes of the created keys. */
  close(): void;
}

export interface SnapshotOptions {
  /** The extensions of the start, which may bring keys. */
  readonly extensions: readonly Extension[];
  /** Tells which keys have expired, and stamps `loadedAt`. */
  readonly clock: Clock;
  /** Goes to the source of created keys. */
  readonly diagnose: Diagnose;
  /** Called for each configuration that is prepared, with the extensions that it needs. */
  createCatalog(config: Config, extensions: readonly Extension[]): Catalog;
}

export function createSnapshots(initial: Config, options: SnapshotOptions): Snapshots {
  const { extensions, clock, diagnose, createCatalog } = options;
  const openKeys = soleOf(extensions, "openKeys");
  const keys = openKeys?.({ dataDir: initial.data_dir, changed: renewKeyring, diagnose });
  let current = snapshotOf(initial, extensions);

  function keyringOf(config: Config): Keyring {
    return createKeyring(config, keys?.current() ?? NO_CREATED_KEYS, clock.now);
  }
  function renewKeyring(): void {
    current = { ...current, keyring: keyringOf(current.config) };
  }
  function snapshotOf(config: Config, loaded: readonly Extension[]): Snapshot {
    const guards = loaded.flatMap(({ guard }) => guard?.(config) ?? []);
    return {
      config,
      keyring: keyringOf(config),
      catalog: createCatalog(config, loaded),
      guard: (exchange) => guards.some((guard) => guard(exchange)),
      loadedAt: new Date(clock.now()).toISOString(),
    };
  }

  return {
    current: () => current,
    prepare(config, loaded) {
      const next = snapshotOf(config, loaded);
      return () => {
        current = next;
      };
    },
    close: () => keys?.close(),
  };
}
