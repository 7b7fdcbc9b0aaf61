// The usage records made anew from the spend log, after files were lost, damaged or restored.
import type { CommandExtension } from "../../command-line/command.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export const extension: CommandExtension = {
  name: "rebuild",
  commands: { "books rebuild": rebuildCommand },
};
