// The first process of several: it serves none of the public port itself. It has the workers, the
// windows and slots of all, what exists once in the installation (the admin listener), and the
// logs: several writers on one pipe would interleave their lines.
import { createKeyring, NO_CREATED_KEYS } from "../../../core/accounts/keyring.ts";
import { createLimiter } from "../../../core/accounts/limiter.ts";
import { assertFits } from "../../../config/demo-key.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Extension, KeySource } from "../../../core/extension/extension.ts";
import type { RunningGateway } from "../../../core/app.ts";
import type { SuperviseOptions } from "../../../command-line/processes.ts";
import { soleOf, startObservations } from "../../../core/extension/gateway-parts.ts";
import { createLogs } from "../../../core/logs.ts";
import { admitForWorkers } from "./limiter.ts";
import type { ConfigMessage } from "./messages.ts";
import { createWorkerPool } from "./worker-pool.ts";

/** `workers`: how many processes serve. */
export function createSupervisor(
  initial: Config,
  workers: number,
  options: SuperviseOptions,
): RunningGateway {
  const { extensions, stopRequested } = options;
  const clock = systemClock;
  const observations = startObservations(extensions);
  const logs = createLogs(options, clock, observations.observer);
  const { diagnose } = logs;
  const limiter = createLimiter(clock.monotonic);
  const stopAdmitting = admitForWorkers(limiter);
  const atStart = messageOf(initial, extensions);
  const pool = createWorkerPool({ atStart, logs, clock, stopRequested });
  const keySources = openKeySources(initial, extensions);
  let current = initial;
  const host = soleOf(
    extensions,
    "createHost",
  )?.({
    config: initial,
    current: () => current,
    extensions,
    clock,
    diagnose,
    reports: pool.reports,
    observed: observations.report,
    accounts() {
      const created = keySources[0]?.current() ?? NO_CREATED_KEYS;
      return createKeyring(current, created, clock.now).accounts();
    },
    used: limiter.used,
  });

  async function drain(): Promise<void> {
    await pool.stop();
    await host?.close();
    stopAdmitting();
    for (const source of keySources) source.close();
    logs.flush();
  }

  return {
    async listen() {
      try {
        const address = await pool.start(); // if this one cannot, none can
        const others = Array.from({ length: workers - 1 }, pool.start);
        await Promise.all([...others, host?.listen(address)]);
        return address;
      } catch (error) {
        await drain();
        throw error;
      }
    },
    announcements: () => host?.announcements() ?? [],
    diagnose,
    drain,
    reload(config, loaded) {
      assertFits(config, initial);
      soleOf(loaded, "secure")?.(config, "server"); // throws if the certificate cannot be used
      current = config;
      pool.configure(messageOf(config, loaded));
    },
  };
}

/**
 * Only for the list of accounts. A keys.json that cannot be read any more is reported by the
 * workers, which authenticate by it.
 */
const openKeySources = (
  { data_dir: dataDir }: Config,
  extensions: readonly Extension[],
): readonly KeySource[] => {
  const silent = { dataDir, changed: () => undefined, diagnose: () => undefined };
  return extensions.flatMap(({ openKeys }) => (openKeys ? [openKeys(silent)] : []));
};

const messageOf = (config: Config, extensions: readonly Extension[]): ConfigMessage => ({
  config,
  extensions: extensions.map(({ name }) => name),
});
