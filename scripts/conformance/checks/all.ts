// All checks, in the order in which they are reported.

import type { Check } from "../suite.ts";
import { compatibleChecks } from "./compatible.ts";
import { contentChecks } from "./content.ts";
import { messagesChecks } from "./messages.ts";
import { responsesChecks } from "./responses.ts";
import { robustChecks } from "./robust.ts";
import { specChecks } from "./spec.ts";

export const CHECKS: readonly Check[] = [
  ...specChecks,
  ...compatibleChecks,
  ...robustChecks,
  ...contentChecks,
  ...messagesChecks,
  ...responsesChecks,
];
