// All faults, by the id of the check that must notice; where a check has several, a slash and what
// is wrong follow the id.

import type { Fault } from "../wrong-gateway.ts";
import { compatibleFaults } from "./compatible.ts";
import { messagesFaults } from "./messages.ts";
import { responsesFaults } from "./responses.ts";
import { robustFaults } from "./robust.ts";
import { specFaults } from "./spec.ts";

export const FAULTS: ReadonlyMap<string, Fault> = new Map([
  ...specFaults,
  ...compatibleFaults,
  ...robustFaults,
  ...messagesFaults,
  ...responsesFaults,
]);
