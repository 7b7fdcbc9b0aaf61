// Commands about a configuration: `check` and `explain`.
import type { Extension } from "../../core/extension/extension.ts";
import { check } from "./check.ts";
import { explain } from "./explain.ts";

export const extension: Extension = { name: "commands", commands: { check, explain } };
