// Finds duplicate members in a JSON text. JSON.parse silently keeps the last one, so a part of what
// the operator wrote would have no effect. Takes linear time, and uses neither recursion nor
// regular expressions, so that deep nesting and long strings cannot exhaust the stack.
import type { ValidationIssue } from "../../../core/schema/checker.ts";

/** An object or array that contains the scanner's position. */
interface OpenContainer {
  /** The names of an object's members so far. Undefined: it is an array. */
  readonly names: Set<string> | undefined;
  /** The name of the current member, or the index of the current element. */
  step: string | number;
}

/** One issue for each repetition of a member, at its path. `text` must be valid JSON. */
export function duplicateMembers(text: string): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  const open: OpenContainer[] = [];
  let string = ""; // the last string, with its quotes; before a colon, a member's name
  for (let at = 0; at < text.length; at += 1) {
    const container = open.at(-1);
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at);
        string = text.slice(at, end + 1);
        at = end;
        break;
      }
      case "{":
        open.push({ names: new Set(), step: "" });
        break;
      case "[":
        open.push({ names: undefined, step: 0 });
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case ",":
        if (typeof container?.step === "number") container.step += 1;
        break;
      case ":":
        if (!container?.names) break;
        container.step = JSON.parse(string) as string;
        if (container.names.has(container.step)) issues.push(duplicateAt(open));
        container.names.add(container.step);
        break;
    }
  }
  return issues;
}

/** The index of the quote that closes the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '"') return at;
    if (text[at] === "\\") at += 1;
  }
  return text.length;
}

const duplicateAt = (open: readonly OpenContainer[]): ValidationIssue => ({
  path: open.map(({ step }) => step),
  code: "invalid_value",
  message: "is set twice: only the last one would count",
});
