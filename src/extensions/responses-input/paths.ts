// Places in the client's request. What chat completions refuse is said by the field that it was
// made of.
import { fail, ValidationError, type ValidationIssue } from "../../core/schema/checker.ts";
import type { Steps } from "../../core/turns.ts";

export type Path = ValidationIssue["path"];

/** The field of an item or a tool. Throws a ValidationError if it is absent. */
export const required = <T>(value: T | undefined, path: Path, field: string): T =>
  value ?? fail("missing_required_parameter", "is required", [...path, field]);

/** Where a message of a chat completion stood in the client's request. */
export interface MessageOrigin {
  /** The item, or the first of several. */
  readonly path: Path;
  /** Its parts, if they come from several items. Absent: they are the content of the one item. */
  readonly parts?: readonly Path[];
}

/** Where the messages and the tools of a chat completion stood in the client's request. */
export interface Origins {
  readonly messages: readonly MessageOrigin[];
  readonly tools: readonly Path[];
}

/** The same steps. What they throw has the places of the client's request. */
export function* withOwnPaths<T>(origins: Origins, steps: Steps<T>): Steps<T> {
  try {
    return yield* steps;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const path = (issue: ValidationIssue): Path => ownPath(issue.path, origins);
    throw new ValidationError(error.issues.map((issue) => ({ ...issue, path: path(issue) })));
  }
}

function ownPath([field = "input", index, ...rest]: Path, { messages, tools }: Origins): Path {
  if (field === "response_format") return ["text", "format"];
  if (field === "tools") {
    const path = tools[Number(index)];
    return path === undefined ? [field] : [...path, ...rest.slice(1)];
  }
  if (field !== "messages") return [field];
  const origin = messages[Number(index)];
  return origin === undefined ? ["input"] : placeIn(origin, rest);
}

/** Where the content of a message stood. Of parts that come from several items: the first. */
export const contentPath = (origin: MessageOrigin): (string | number)[] => [
  ...placeIn(origin, ["content"]),
];

/** `rest`: what of the message is meant, as chat completions have it. */
function placeIn({ path, parts }: MessageOrigin, [field, index, ...rest]: Path): Path {
  if (field === "tool_call_id") return [...path, "call_id"];
  if (field !== "content") return path;
  const part = parts?.[Number(index ?? 0)];
  if (part !== undefined) return [...part, ...rest];
  return index === undefined ? [...path, field] : [...path, field, index, ...rest];
}
