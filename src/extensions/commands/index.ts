// Commands about a configuration: `check` and `explain`.
import type { CommandExtension } from "../../command-line/command.ts";
import { check } from "./check.ts";
import { explain } from "./explain.ts";

export const extension: CommandExtension = { name: "commands", commands: { check, explain } };
