// Anthropic's limits of strictness. It compiles the strict schemas of a request into one grammar,
// and refuses the request if that would be too large.
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";

const MAX_TOOLS = 20;
/** The most properties of all schemas that need not be there. */
const MAX_OPTIONAL = 24;
/** The most schemas with several types or alternatives. */
const MAX_UNIONS = 16;

/** Whether these tools may all be strict, beside the schema of the reply. */
export function mayBeStrict(tools: readonly unknown[], reply: unknown): boolean {
  let optional = 0;
  let unions = 0;

  function count(node: unknown): void {
    if (typeof node !== "object" || node === null) return;
    const { properties, required, type, anyOf } = asObject(node);
    const demanded = new Set(asArray(required));
    optional += Object.keys(asObject(properties)).filter((name) => !demanded.has(name)).length;
    if (Array.isArray(type) || Array.isArray(anyOf)) unions += 1;
    Object.values(node).forEach(count);
  }

  count([tools, reply]);
  return tools.length <= MAX_TOOLS && optional <= MAX_OPTIONAL && unions <= MAX_UNIONS;
}
