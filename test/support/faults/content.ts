// Faults for the checks of the level `robust` about what one request says or asks for, by the
// check's id less the level.

import type { Answer, Fault } from "../wrong-gateway.ts";
import {
  blocks,
  body,
  both,
  chunks,
  header,
  increment,
  mends,
  named,
  status,
  type Change,
} from "./kit.ts";
import { each, error, marked, says, stream, whole } from "./robust.ts";

const bad = (name: string): Fault["when"] => both(marked(name), says("bad"));
/** Refused, as by a gateway that has closed the model to everybody. */
const closed = (name: string): Fault => ({
  when: both(marked(name), says("Say something.")),
  answer: status(503),
});
const limited =
  (edit: (answer: Answer) => Answer) =>
  (answer: Answer): Answer =>
    answer.status === 429 ? edit(answer) : answer;
const ABSURD: Change = (value) => value && Number.MAX_SAFE_INTEGER;

const content: Record<string, Fault> = {
  "filtered.reply/whole": whole("filtered.reply", status(503)),
  "filtered.reply/finish": stream(
    "filtered.reply",
    chunks("choices[].finish_reason", (value) => value && "stop"),
  ),
  "filtered.reply/error": stream(
    "filtered.reply",
    blocks((events) => [...events, 'data: {"error":{"message":"It was filtered."}}']),
  ),
  "filtered.reply/model": whole(
    "filtered.reply",
    body("model", () => "good:filtered.reply"),
  ),
  "filtered.reply/again": { when: marked("filtered.reply"), twice: true },
  "filtered.reply/other": {
    when: marked("filtered.reply"),
    knock: { path: "", model: "good:filtered.reply" },
  },
  "filtered.available/closed": closed("filtered.available"),
  "filtered.available/fault": { when: bad("filtered.available"), answer: status(503) },
  "failed-calls.available/closed": closed("failed-calls.available"),
  "failed-calls.available/blame": { when: bad("failed-calls.available"), answer: status(400) },

  "effort.sent/lost": mends(marked("effort.sent"), { reasoning_effort: undefined }),
  "effort.sent/none": mends(marked("effort.sent"), { reasoning_effort: "none" }),
  "effort.sent/depth": mends(marked("effort.sent"), { reasoning_effort: "low" }),
  "effort.hidden/shown": mends(marked("effort.hidden"), { thinking: { type: "enabled" } }),
  "effort.hidden/whole": whole(
    "effort.hidden",
    body("choices[].message.reasoning_content", () => "Hm."),
  ),
  ...each(["temperature", "top_p"], (name) => ({
    [`defaults.sampling/${name}`]: mends(marked("defaults.sampling"), { [name]: 0.5 }),
  })),

  ...each(["usage.absurd", "usage.sum"], (name) => ({
    [`${name}/whole`]: whole(name, body("usage.total_tokens", increment)),
    [`${name}/stream`]: stream(
      name,
      chunks("usage.total_tokens", (value) => value && 0),
    ),
    [`${name}/absurd`]: whole(name, (answer) =>
      ["prompt_tokens", "total_tokens"].reduce(
        (edited, field) => body(`usage.${field}`, ABSURD)(edited),
        answer,
      ),
    ),
  })),

  "limit.in-flight/admitted": whole("limit.in-flight", status(200)),
  "limit.in-flight/code": whole(
    "limit.in-flight",
    error("code", () => "rate_limit_exceeded"),
  ),
  "limit.in-flight/when": whole("limit.in-flight", limited(header("retry-after", () => undefined))),
  "limit.in-flight/message": whole(
    "limit.in-flight",
    error("message", () => "Too many."),
  ),
  "limit.in-flight/over": {
    when: both(marked("limit.in-flight"), says("Again.")),
    answer: status(429),
  },
};

export const contentFaults = named("robust", content);
