// Reloads the configuration of a running gateway when its file or one of its secret files changes,
// or on SIGHUP. All or nothing: if the new configuration is invalid, the error is logged and the
// old one stays active.
import { isDeepStrictEqual } from "node:util";
import { assertFits } from "./config/check.ts";
import type { ConfigExtension } from "./config/extension.ts";
import { issuesAsJson, loadConfig, secretFilesBeside, type LoadOptions } from "./config/load.ts";
import type { SecretFiles } from "./config/secrets.ts";
import { valueAt } from "./config/setting.ts";
import { systemClock } from "./core/clock.ts";
import type { Config } from "./core/config.ts";
import { start, type Extension } from "./core/extension/installer.ts";
import { hooks } from "./core/extension/places.ts";
import type { RunningGateway } from "./core/app.ts";
import { ValidationError } from "./core/schema/checker.ts";
import type { Watch } from "./command-line/processes.ts";

/**
 * The same gateway, with a `reload` that throws if the new configuration cannot replace `initial`.
 * It logs the reload, and names the changed settings that need a restart.
 */
export const reloadable = <G extends RunningGateway>(
  gateway: G,
  initial: Config,
  loaded: readonly ConfigExtension[],
  record: ReloadRecord,
): G => ({
  ...gateway,
  reload(config: Config, extensions: readonly ConfigExtension[]) {
    assertFits(config, initial);
    gateway.reload(config, extensions);
    // An extension whose section was deleted is not in `extensions`, but its settings changed too.
    const all = [...new Set([...loaded, ...extensions])];
    record.restart = [...new Set(changedFixedSettings(initial, config, all))];
    const detail = `read at start only: ${record.restart.join(", ")}`;
    if (record.restart.length > 0)
      gateway.diagnose({ event: "restart_needed", level: "warn", detail });
    gateway.diagnose({ event: "reloaded", level: "info" });
  },
});

/** The core's settings that only a restart changes. */
const FIXED = [
  "server.host",
  "server.port",
  "server.receive_ms",
  "server.send_ms",
  "data_dir",
  "limits.store",
].map((path) => ({ path, of: valueAt(path) }));
/** A reload renews certificates, but cannot switch a listener between HTTP and HTTPS. */
const HAS_TLS = {
  path: "server.tls",
  of: (config: object) => valueAt("server.tls")(config) !== undefined,
};

/** The names of the settings that need a restart and differ between two configurations. */
function changedFixedSettings(
  before: Config,
  after: Config,
  extensions: readonly ConfigExtension[],
): string[] {
  const added = extensions.flatMap(({ settings = [] }) => settings.filter(({ fixed }) => fixed));
  return [...FIXED, HAS_TLS, ...added]
    .filter((setting) => !isDeepStrictEqual(setting.of(before), setting.of(after)))
    .map(({ path }) => path);
}

/** Why a reload failed, as GET /status shows it. */
interface ReloadFault {
  /** When it failed, in ISO 8601. */
  readonly time: string;
  /** The field of the first fault: `server.drain_ms`. Empty: the file as a whole is at fault. */
  readonly path: string;
  /** The error, without any secret. */
  readonly message: string;
  /** The number of faults, including this one. */
  readonly count: number;
}

/** The result of the last reload of one process. */
export interface ReloadRecord {
  /** The configuration file in force. Null: the built-in configuration. */
  file: string | null;
  /** When the configuration in force was loaded, in ISO 8601. */
  loadedAt: string;
  /** Null: the last reload succeeded, or there was none. */
  fault: ReloadFault | null;
  /** The settings that have changed since the start and need a restart. */
  restart: readonly string[];
}

const timeNow = (): string => new Date(systemClock.now()).toISOString();

/** The record of a gateway that has just started. */
export const startRecord = (file: string | undefined): ReloadRecord => ({
  file: file ?? null,
  loadedAt: timeNow(),
  fault: null,
  restart: [],
});

/**
 * Adds `config_file`, `config_loaded_at`, `config_fault` and `restart_needed` to GET /status. Each
 * process reports its own fault, because a worker may fail where the primary does not.
 */
export const reloadStatus = (record: ReloadRecord): Extension => ({
  name: "last-reload",
  install(gateway) {
    gateway.on(start, (context) => context.on("report", () => record));
    gateway.on(hooks.status, (reports) => {
      const records = [record, ...(reports as readonly (ReloadRecord | undefined)[])];
      return {
        config_file: record.file,
        config_loaded_at: record.loadedAt,
        config_fault: records.find((each) => each?.fault)?.fault ?? null,
        restart_needed: records.find((each) => each?.restart.length)?.restart ?? [],
      };
    });
  },
});

/** A gateway, and the result of its last reload. */
export interface Reloading {
  readonly gateway: Pick<RunningGateway, "reload" | "diagnose">;
  readonly record: ReloadRecord;
}

/**
 * Returns a function that reads the configuration again and puts it in force, or reports its
 * errors. Reloads run one after another, so the last one counts. The files that the last reload
 * read are watched; before the first reload, those of `options.secretFiles`. A file that has
 * changed since it was read causes another reload.
 */
export function createReloader(
  { gateway, record }: Reloading,
  options: LoadOptions,
  watch: Watch,
): () => Promise<void> {
  // Once a file was read, its absence is an error: the demo configuration, whose key everybody
  // knows, must not replace it.
  let file = options.file;
  let last = Promise.resolve();
  let watchers: readonly { close(): void }[] = [];

  function watchFiles(files: SecretFiles): void {
    for (const watcher of watchers) watcher.close();
    watchers = files.all().map(({ path, state }) => watch(path, state, again));
  }

  async function reload(): Promise<void> {
    const secretFiles = secretFilesBeside(file);
    await reportFailure({ gateway, record }, async () => {
      const loaded = await loadConfig({ ...options, file, secretFiles });
      file ??= loaded.source;
      gateway.reload(loaded.config, loaded.extensions);
      record.file = loaded.source ?? null;
      record.loadedAt = timeNow();
    });
    // Also after a failed reload: correcting a secret's file must reload the configuration.
    watchFiles(secretFiles);
  }

  function again(): Promise<void> {
    last = last.then(reload);
    return last;
  }

  if (options.secretFiles) watchFiles(options.secretFiles);
  return again;
}

/**
 * Runs `work`, which reloads. If it fails, the error is logged, and stays in the record until a
 * reload succeeds.
 */
export async function reportFailure(
  { gateway, record }: Reloading,
  work: () => void | Promise<void>,
): Promise<void> {
  try {
    await work();
    record.fault = null;
  } catch (error) {
    const faults =
      error instanceof ValidationError
        ? issuesAsJson(error)
        : [{ path: "", message: (error as Error).message }];
    const time = timeNow();
    const { path = "", message = "" } = faults[0] ?? {};
    record.fault = { time, path, message, count: faults.length };
    const detail = "the previous configuration stays in force";
    gateway.diagnose({ event: "reload_failed", level: "error", detail, faults });
  }
}
