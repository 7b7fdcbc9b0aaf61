// A first configuration: the command `init`.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { initCommand } from "./init-command.ts";

export const extension: ProgramExtension = { name: "init", commands: { init: initCommand } };
