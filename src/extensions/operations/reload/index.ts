// Watches the configuration file and the secret files of a running gateway: a change takes effect
// within a second. SIGHUP works without this extension.
import { programSlots } from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { watchFile } from "../../scale/data-files/index.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.watchConfig, (file, state, changed) =>
    watchFile(file, changed, { knownState: state }),
  );
}
