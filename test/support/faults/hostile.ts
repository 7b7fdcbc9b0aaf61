// Faults for the checks of the level `robust` about what one client or one provider can cost all
// others, by the check's id less the level.

import type { Fault } from "../wrong-gateway.ts";
import { both, health, mends, named, ownId, raw, status } from "./kit.ts";
import { each, error, marked, whole } from "./robust.ts";

/**
 * /healthz is answered late, as by a process that has other work to do: later than the checks wait.
 */
const stalled = (name: string): Fault => ({
  when: both(health, ownId(`robust.${name}`)),
  answer: (answer) => answer,
  lateMs: 3_000,
});

const COSTS = ["blanks", "call-ids", "schema-keys", "reply-keys", "image-url"];

const hostile: Record<string, Fault> = {
  ...each(
    COSTS.map((name) => `cost.${name}`),
    (name) => ({ [`${name}/stalled`]: stalled(name) }),
  ),
  "cost.blanks/status": raw("GARBAGE", (answer) =>
    answer.replace(/^HTTP\/1.1 \d+/, "HTTP/1.1 500"),
  ),
  ...each(
    COSTS.slice(1).map((name) => `cost.${name}`),
    (name) => ({ [`${name}/failed`]: whole(name, status(500)) }),
  ),
  unread: whole("unread", status(503)),
  "names.model/status": whole("names.model", status(500)),
  "names.model/code": whole(
    "names.model",
    error("code", () => "invalid_value"),
  ),
  "names.tools/refused": whole("names.tools", status(400)),
  "names.tools/lost": mends(marked("names.tools"), {
    tools: ["constructor", "toString"].map((name) => ({
      type: "function",
      function: { name, parameters: { type: "object", properties: {} } },
    })),
  }),
};

export const hostileFaults = named("robust", hostile);
