// Watches the configuration file of a running gateway: a change is put in force within a second.
// SIGHUP works without this extension.
import type { ProgramExtension } from "../../command-line/command.ts";
import { watchFile } from "../data-files/index.ts";

export const extension: ProgramExtension = {
  name: "reload",
  watchConfig: (file, digest, changed) => watchFile(file, changed, { seen: digest }),
};
