// Decides whether a gateway is healthy, and says so in a sentence.
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { ModelStatus } from "../../scale/installation/index.ts";
import type { ShownStatus } from "./gateway-state.ts";

export interface Health {
  /** Whether it serves, every model can, the books are writable, and the limits' store answers. */
  readonly healthy: boolean;
  /** "healthy: ..." or "not healthy: ..." with each problem. */
  readonly sentence: string;
}

export function healthOf(status: ShownStatus): Health {
  const problems = problemsOf(status);
  if (problems.length > 0)
    return { healthy: false, sentence: `not healthy: ${problems.join("; ")}` };
  const { models, in_flight } = status;
  const served = models.length === 1 ? "1 model can serve" : `${models.length} models can serve`;
  const working = in_flight === 1 ? "1 request" : `${in_flight} requests`;
  return { healthy: true, sentence: `healthy: ${served}, ${working} in flight` };
}

function problemsOf(status: ShownStatus): readonly string[] {
  const { models, limits } = status;
  const problems: string[] = [];
  if (status.status === "draining") problems.push("the gateway is stopping");
  const spend = faultIn(status["spend"]);
  if (spend !== undefined)
    problems.push(`the spend log cannot be written, so requests are refused: ${spend}`);
  // If the pause of a breaker is over, it lets the next request through.
  const failing = models.filter(({ breaker }) => breaker.retry_ms > 0);
  if (models.length === 0) problems.push("no model is configured");
  else if (failing.length === models.length) problems.push("no model can serve");
  for (const model of failing) problems.push(`${model.model} ${stateText(model)}`);
  const usage = faultIn(status["usage"]);
  if (usage !== undefined) problems.push(`the usage records cannot be written: ${usage}`);
  if (limits.fault !== null) problems.push(`the limits' store cannot be asked: ${limits.fault}`);
  return problems;
}

/** The fault of a section of the status. Undefined: there is none, or no such section. */
const faultIn = (section: unknown): string | undefined => asString(asObject(section)["fault"]);

/** "is healthy", "fails: next try in 7 s". */
export function stateText({ breaker: { state, retry_ms: ms } }: ModelStatus): string {
  if (state === "probing") return "is being tried again";
  const next = `next try in ${Math.ceil(ms / 1000)} s`;
  // The provider stated until when it is overloaded. It has not failed, but gets no requests.
  if (state === "closed") return ms > 0 ? `is overloaded: ${next}` : "is healthy";
  return ms > 0 ? `fails: ${next}` : "failed, and is tried again with the next request";
}

/** A model's last failure, and its provider's message; "" if there was none. */
export function lastFault({ breaker }: ModelStatus): string {
  const { last_fault: fault, last_answer: answer } = breaker;
  return [fault, answer?.message].filter((part) => part).join(": ");
}
