// What tests of the schema checker have in common: the issues of a refusal, and deeply nested
// values.

import assert from "node:assert/strict";
import {
  pathText,
  ValidationError,
  type Check,
  type IssueCode,
} from "../../src/core/schema/checker.ts";

/** An issue, its path as text. */
type Issue = readonly [path: string, code: IssueCode, message: string];

/** The issues of a refusal. Fails if the value is accepted or another error is thrown. */
export function issuesOf(check: Check<unknown>, value: unknown, all = false): Issue[] {
  try {
    check(value, all);
  } catch (error) {
    assert.ok(error instanceof ValidationError, `not a ValidationError: ${String(error)}`);
    return error.issues.map((issue) => [pathText(issue.path), issue.code, issue.message] as const);
  }
  return assert.fail(`accepted: ${JSON.stringify(value)}`);
}

/** What a refusal has to say. Without a path: the value itself is at fault. */
type Expected = readonly [code: IssueCode, message: string, path?: string];

/** Asserts that the value is refused with this one issue. */
export const refused = (
  check: Check<unknown>,
  value: unknown,
  ...[code, message, path = ""]: Expected
) => assert.deepEqual(issuesOf(check, value), [[path, code, message]]);

/** `[[...]]`, or `{"a":{"a":...}}`, of so many levels. */
export function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
}
