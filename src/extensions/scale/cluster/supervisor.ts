// The primary. It serves no public requests itself. It manages the workers, the limiter for
// all of them, the parts that exist once (the admin listener), and the logs: several writers on one
// pipe would interleave their lines.
import { createKeyring, NO_CREATED_KEYS } from "../../../core/accounts/keyring.ts";
import { createLimiter } from "../../../core/accounts/limiter.ts";
import { assertFits } from "../../../config/check.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import { install } from "../../../core/extension/install.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { modelServices, slots } from "../../../core/extension/places.ts";
import type { RunningGateway } from "../../../core/app.ts";
import type { SuperviseOptions } from "../../../command-line/processes.ts";
import { createLogs } from "../../../core/logs.ts";
import { admitForWorkers } from "./limiter.ts";
import type { ConfigMessage } from "./worker.ts";
import { relayBroadcasts } from "./broadcast.ts";
import { createWorkerPool } from "./worker-pool.ts";

/** `workers`: how many processes serve. */
export function createSupervisor(
  initial: Config,
  workers: number,
  options: SuperviseOptions,
): RunningGateway {
  const { extensions, stopped } = options;
  const clock = systemClock;
  const installed = install(extensions);
  const logs = createLogs(options, clock, installed);
  const { diagnose } = logs;
  const limiter = createLimiter(clock.monotonic);
  const stopAdmitting = admitForWorkers(limiter);
  const stopRelaying = relayBroadcasts();
  const atStart = messageOf(initial, extensions);
  const pool = createWorkerPool({ atStart, logs, clock, stopped });
  // Only for the list of accounts. Workers authenticate with keys.json, so they report if it cannot
  // be read any more.
  const silent = { changed: () => undefined, diagnose: () => undefined };
  const keySource = installed.filled(slots.keySource)?.({ dataDir: initial.data_dir, ...silent });
  let current = initial;
  const host = installed.filled(slots.host)?.({
    config: initial,
    current: () => current,
    installed,
    clock,
    diagnose,
    reports: pool.reports,
    droppedLines: logs.dropped,
    accounts() {
      const created = keySource?.current() ?? NO_CREATED_KEYS;
      return createKeyring(current, created, clock.now).accounts();
    },
    used: limiter.used,
  });

  async function drain(): Promise<void> {
    await pool.stop();
    await host?.close();
    stopAdmitting();
    stopRelaying();
    keySource?.close();
    logs.flush();
  }

  return {
    async listen() {
      try {
        const address = await pool.start(); // if one worker cannot listen, none can
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
      const installation = install(loaded);
      // These throw if a certificate cannot be used, as they would in each worker.
      installation.filled(slots.secure)?.(config, "server");
      const { reach } = modelServices(config, installation, { clock, diagnose });
      for (const [provider, settings] of config.providers)
        reach({ provider, dialect: settings.dialect, settings, config }, noTransport);
      current = config;
      pool.configure(messageOf(config, loaded));
    },
  };
}

/** The primary calls no provider. */
const noTransport = (): Promise<never> => Promise.reject(new Error("workers call providers"));

const messageOf = (config: Config, extensions: readonly Extension[]): ConfigMessage => ({
  config,
  extensions: extensions.map(({ name }) => name),
});
