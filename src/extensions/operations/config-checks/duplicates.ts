// Members that stand twice in one object of a JSON text. JSON.parse keeps the last one silently, so
// half of what an operator wrote would not be in force. Linear in the text, and without recursion
// or regular expressions, so that no nesting and no long string exhausts a stack.
import type { ValidationIssue } from "../../../core/schema/checker.ts";

/**
 * A container that is open where the scanner stands. An object has the names of its members so far,
 * an array has none. `step` is the name of the member, or the index of the element, that the
 * scanner is in.
 */
interface OpenContainer {
  readonly names: Set<string> | undefined;
  step: string | number;
}

/** One fault for each repeated member, at its path. `text` must be valid JSON. */
export function repeatedMembers(text: string): ValidationIssue[] {
  const faults: ValidationIssue[] = [];
  const open: OpenContainer[] = [];
  let string = ""; // the last string, with its quotes: before a colon it is a member's name
  for (let at = 0; at < text.length; at += 1) {
    const inside = open.at(-1);
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
        if (typeof inside?.step === "number") inside.step += 1;
        break;
      case ":":
        if (!inside?.names) break;
        inside.step = JSON.parse(string) as string;
        if (inside.names.has(inside.step)) faults.push(repeatedAt(open));
        inside.names.add(inside.step);
        break;
    }
  }
  return faults;
}

/** Where the quote is that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '"') return at;
    if (text[at] === "\\") at += 1;
  }
  return text.length;
}

const repeatedAt = (open: readonly OpenContainer[]): ValidationIssue => ({
  path: open.map(({ step }) => step),
  code: "invalid_value",
  message: "stands here twice: only the last one would count",
});
