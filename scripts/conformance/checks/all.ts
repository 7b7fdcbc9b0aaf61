// All checks: each file states its own, in the order in which they are reported.

import "./spec.ts";
import "./compatible.ts";
import "./http.ts";
import "./answers.ts";
import "./robust.ts";
import "./streams.ts";
import "./content.ts";
import "./messages.ts";
import "./responses.ts";

export { CHECKS, RULES } from "./kit.ts";
