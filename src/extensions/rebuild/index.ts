// The usage records made anew from the spend log, after files were lost, damaged or restored.
import type { Extension } from "../../core/extension/extension.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export const extension: Extension = {
  name: "rebuild",
  commands: { "books rebuild": rebuildCommand },
};
