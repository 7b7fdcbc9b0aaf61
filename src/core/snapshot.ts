// What a configuration decides: whose keys are valid, which models there are, and what requests
// pass first. It is replaced as one; a request keeps what it began with.
import { createKeyring, NO_CREATED_KEYS, type Keyring } from "./accounts/keyring.ts";
import type { Snapshot } from "./chat/context.ts";
import type { Config } from "./config.ts";
import type { Installed } from "./extension/installer.ts";
import { modelServices, moments, slots, type HostSources } from "./extension/places.ts";
import type { Breaker } from "./routing/breaker.ts";
import { createCatalog } from "./routing/catalog.ts";
import type { CatalogServices } from "./routing/model.ts";

type SourcesOfCatalogs = "transport" | "fingerprint" | "createBreaker" | "capable";
/** `installed`: the extensions of the start, which may bring keys. */
type SnapshotOptions = Pick<CatalogServices, SourcesOfCatalogs> &
  Pick<HostSources, "installed" | "clock" | "diagnose">;

export function createSnapshots(initial: Config, options: SnapshotOptions) {
  const { clock, diagnose } = options;
  const breakers = new Map<string, Breaker>();
  const openKeys = options.installed.filled(slots.keySource);
  const keys = openKeys?.({ dataDir: initial.data_dir, changed: renewKeyring, diagnose });
  let current = snapshotOf(initial, options.installed);

  function keyringOf(config: Config): Keyring {
    return createKeyring(config, keys?.current() ?? NO_CREATED_KEYS, clock.now);
  }
  function renewKeyring(): void {
    current = { ...current, keyring: keyringOf(current.config) };
  }
  function snapshotOf(config: Config, installed: Installed): Snapshot {
    const guards = installed.listeners(moments.guards).flatMap(({ call }) => call(config) ?? []);
    return {
      config,
      keyring: keyringOf(config),
      catalog: createCatalog(config, {
        ...options,
        ...modelServices(config, installed, options),
        breakers,
      }),
      guard: (exchange) => guards.some((guard) => guard(exchange)),
      loadedAt: new Date(clock.now()).toISOString(),
    };
  }

  return {
    /** The snapshot in force. Another configuration or other keys replace it. */
    current: (): Snapshot => current,
    /**
     * Prepares for another configuration. The returned function puts it in force, and cannot fail.
     */
    prepare(config: Config, installed: Installed): () => void {
      const next = snapshotOf(config, installed);
      return () => {
        current = next;
      };
    },
    /** Stops watching for changes of the created keys. */
    close: (): void => keys?.close(),
  };
}
