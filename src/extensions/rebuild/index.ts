// The usage records made anew from the spend log, after files were lost, damaged or restored.
import type { ProgramExtension } from "../../command-line/command.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export const extension: ProgramExtension = {
  name: "rebuild",
  commands: { "books rebuild": rebuildCommand },
};
