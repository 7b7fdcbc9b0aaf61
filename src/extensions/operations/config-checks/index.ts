// Mistakes in a configuration that its shape does not show: members that stand twice, a vendor
// without its key, an address that repeats what is appended to it.
import type { ConfigExtension } from "../../../config/extension.ts";
import { repeatedMembers } from "./duplicates.ts";
import { ruleIssues } from "./rules.ts";

export { lacksKey, usesVendorsAddress } from "./rules.ts";

export const extension: ConfigExtension = {
  name: "config-checks",
  textIssues: repeatedMembers,
  issues: ruleIssues,
};
