// Mistakes in a configuration that its shape does not show: members that stand twice, a vendor
// without its key, an address that repeats what is appended to it.
import { configMoments } from "../../../config/extension.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { repeatedMembers } from "./duplicates.ts";
import { ruleIssues } from "./rules.ts";

export function install(gateway: Installer): void {
  gateway.on(configMoments.textIssues, repeatedMembers);
  gateway.on(configMoments.issues, ruleIssues);
}
