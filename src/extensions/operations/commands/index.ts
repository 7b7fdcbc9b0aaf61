// Commands about a configuration: `check` and `explain`.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { check } from "./check.ts";
import { explain } from "./explain.ts";

export const extension: Extension = {
  name: "commands",
  install(gateway) {
    gateway.fill(programSlots.command("check"), check);
    gateway.fill(programSlots.command("explain"), explain);
  },
};
