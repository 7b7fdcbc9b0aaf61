// How a running gateway is, for its operator in a terminal: the commands `status` and `top`.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { statusCommand } from "./status-command.ts";
import { topCommand } from "./top-command.ts";

export const extension: ProgramExtension = {
  name: "status",
  commands: { status: statusCommand, top: topCommand },
};
