// Commands about a configuration: `check` and `explain`.
import { programSlots } from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { check } from "./check.ts";
import { explain } from "./explain.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("check"), check);
  gateway.fill(programSlots.command("explain"), explain);
}
