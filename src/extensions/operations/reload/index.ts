// Watches the configuration file of a running gateway, and the files of its secrets: a change is
// put in force within a second. SIGHUP works without this extension.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { watchFile } from "../../scale/data-files/index.ts";

export const extension: ProgramExtension = {
  name: "reload",
  watchConfig: (file, state, changed) => watchFile(file, changed, { seen: state }),
};
