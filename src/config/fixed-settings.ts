// Settings that are read once, at start: after a reload that changes one of them the operator is
// told to restart.
import type { ConfigExtension } from "./extension.ts";
import type { Config } from "../core/config.ts";
import { valueAt } from "./setting.ts";

const CORE = [
  "server.host",
  "server.port",
  "server.receive_ms",
  "server.send_ms",
  "data_dir",
  "limits.store",
];

/** The names of the settings that are fixed and differ between two configurations. */
export function changedFixedSettings(
  before: Config,
  after: Config,
  extensions: readonly ConfigExtension[],
): string[] {
  const core = CORE.map((path) => ({ path, of: valueAt(path.split(".")) }));
  const added = extensions.flatMap(({ settings = [] }) => settings.filter(({ fixed }) => fixed));
  return [...core, ...added]
    .filter((setting) => JSON.stringify(setting.of(before)) !== JSON.stringify(setting.of(after)))
    .map(({ path }) => path);
}
