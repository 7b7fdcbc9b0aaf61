// All checks, in the order in which they are reported.

import type { Check } from "../suite.ts";
import { answerChecks } from "./answers.ts";
import { compatibleChecks } from "./compatible.ts";
import { contentChecks } from "./content.ts";
import { figureChecks } from "./figures.ts";
import { httpChecks } from "./http.ts";
import { messagesChecks } from "./messages.ts";
import { responsesChecks } from "./responses.ts";
import { robustChecks } from "./robust.ts";
import { specChecks } from "./spec.ts";
import { streamChecks } from "./streams.ts";

export { RULES } from "./kit.ts";

export const CHECKS: readonly Check[] = [
  ...specChecks,
  ...compatibleChecks,
  ...httpChecks,
  ...answerChecks,
  ...robustChecks,
  ...streamChecks,
  ...figureChecks,
  ...contentChecks,
  ...messagesChecks,
  ...responsesChecks,
];
