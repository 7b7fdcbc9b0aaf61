// The parts that depend on the configuration: the keyring, the catalog of models, and the guards. A
// reload replaces all of them at once. A request keeps the snapshot that it began with.
import { createKeyring, NO_CREATED_KEYS, type Keyring } from "./accounts/keyring.ts";
import type { Snapshot } from "./chat/context.ts";
import type { Config } from "./config.ts";
import type { Installed } from "./extension/installer.ts";
import { modelServices, hooks, slots, type HostSources } from "./extension/places.ts";
import type { Breaker } from "./routing/breaker.ts";
import { createCatalog } from "./routing/catalog.ts";
import type { CatalogServices } from "./routing/model.ts";

type SharedServices = "transport" | "fingerprint" | "createBreaker";
/** `installed`: the extensions that were loaded at the start. One of them may create keys. */
type SnapshotOptions = Pick<CatalogServices, SharedServices> &
  Pick<HostSources, "installed" | "clock" | "diagnose">;

export function createSnapshots(initial: Config, options: SnapshotOptions) {
  const { clock, diagnose } = options;
  const breakers = new Map<string, Breaker>();
  const openKeySource = options.installed.filled(slots.keySource);
  const keys = openKeySource?.({ dataDir: initial.data_dir, changed: renewKeyring, diagnose });
  let current = snapshotOf(initial, options.installed);

  function keyringOf(config: Config): Keyring {
    return createKeyring(config, keys?.current() ?? NO_CREATED_KEYS, clock.now);
  }
  function renewKeyring(): void {
    current = { ...current, keyring: keyringOf(current.config) };
  }
  function snapshotOf(config: Config, installed: Installed): Snapshot {
    const guards = installed.listeners(hooks.guards).flatMap(({ call }) => call(config) ?? []);
    return {
      config,
      keyring: keyringOf(config),
      catalog: createCatalog(config, {
        ...options,
        ...modelServices(config, installed, options),
        breakers,
      }),
      guard: (exchange) => guards.some((guard) => guard(exchange)),
    };
  }

  return {
    /** The snapshot in force. A reload, or a change of the created keys, replaces it. */
    current: (): Snapshot => current,
    /** Builds the snapshot of another configuration. The returned function puts it in force. */
    prepare(config: Config, installed: Installed): () => void {
      const next = snapshotOf(config, installed);
      return () => {
        current = next;
      };
    },
    /** Stops watching the created keys. */
    close: (): void => keys?.close(),
  };
}
