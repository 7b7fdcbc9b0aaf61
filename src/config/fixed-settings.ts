// Settings that are read once, at start: after a reload that changes one of them the operator is
// told to restart.
import type { ConfigExtension } from "./extension.ts";
import type { Config } from "../core/config.ts";

interface FixedSetting {
  readonly name: string;
  readonly valueIn: (config: Config) => unknown;
}

const CORE: readonly FixedSetting[] = [
  { name: "server.host", valueIn: ({ server }) => server.host },
  { name: "server.port", valueIn: ({ server }) => server.port },
  { name: "server.receive_ms", valueIn: ({ server }) => server.receive_ms },
  { name: "server.send_ms", valueIn: ({ server }) => server.send_ms },
  { name: "data_dir", valueIn: ({ data_dir }) => data_dir },
  { name: "limits.store", valueIn: ({ limits }) => limits.store },
];

/** The names of the settings that are fixed and differ between two configurations. */
export function changedFixedSettings(
  before: Config,
  after: Config,
  extensions: readonly ConfigExtension[],
): string[] {
  const added = extensions.flatMap(({ settings = [] }) =>
    settings
      .filter(({ fixed }) => fixed)
      .map(
        (setting): FixedSetting => ({
          name: setting.path,
          valueIn: (config) => setting.of(config),
        }),
      ),
  );
  const text = ({ valueIn }: FixedSetting, config: Config) => JSON.stringify(valueIn(config));
  return [...CORE, ...added]
    .filter((setting) => text(setting, before) !== text(setting, after))
    .map(({ name }) => name);
}
