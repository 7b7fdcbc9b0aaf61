// Commands about a configuration: `check` and `explain`.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { check } from "./check.ts";
import { explain } from "./explain.ts";

export const extension: ProgramExtension = { name: "commands", commands: { check, explain } };
