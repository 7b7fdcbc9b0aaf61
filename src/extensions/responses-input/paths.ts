// Places in the client's request. What chat completions refuse is said by the field that it was
// made of.
import { fail, ValidationError, type ValidationIssue } from "../../core/schema/checker.ts";

export type Path = ValidationIssue["path"];

/** The field of an item or a tool. Throws a ValidationError if it is absent. */
export const required = <T>(value: T | undefined, path: Path, field: string): T =>
  value ?? fail("missing_required_parameter", "is required", [...path, field]);

/** Where the messages and the tools of a chat completion stood in the client's request. */
export interface Origins {
  readonly messages: readonly Path[];
  readonly tools: readonly Path[];
}

/** What `action` throws, with the places of the client's request. */
export function withOwnPaths<T>(origins: Origins, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const path = (issue: ValidationIssue): Path => ownPath(issue.path, origins);
    throw new ValidationError(error.issues.map((issue) => ({ ...issue, path: path(issue) })));
  }
}

function ownPath([field = "input", index, ...rest]: Path, { messages, tools }: Origins): Path {
  if (field === "response_format") return ["text", "format"];
  if (field !== "messages" && field !== "tools") return [field];
  const origin = (field === "messages" ? messages : tools)[Number(index)];
  if (origin === undefined) return [field === "messages" ? "input" : field];
  if (field === "tools") return [...origin, ...rest.slice(1)];
  if (rest[0] === "content") return [...origin, ...rest];
  return rest[0] === "tool_call_id" ? [...origin, "call_id"] : origin;
}
