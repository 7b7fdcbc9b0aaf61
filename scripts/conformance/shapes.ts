// Looking into JSON that nobody has checked yet: values by their path, and tables of what each
// field must be.

import { parseJson } from "./client.ts";

/** A rule that was not kept. */
export class Expectation extends Error {
  readonly expected: string;
  readonly got: string;
  constructor(expected: string, got: unknown) {
    const text = typeof got === "string" ? got : (JSON.stringify(got) ?? "nothing");
    super(`expected ${expected}, got ${text}`);
    this.expected = expected;
    this.got = text.length > 300 ? `${text.slice(0, 300)}...` : text;
  }
}

export function expect(holds: boolean, expected: string, got: unknown): asserts holds {
  if (!holds) throw new Expectation(expected, got);
}

/** A value, where it stands, and what it stands in. */
export interface Found {
  readonly path: string;
  readonly value: unknown;
  readonly parent: unknown;
  readonly root: unknown;
}

export type Json = Readonly<Record<string, unknown>>;
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "";
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0;
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * The values at a path such as `choices[].message.content`. A field that is missing where it could
 * stand is found as undefined; where there is no object to hold it, nothing is found: that is the
 * fault of another field.
 */
export function find(root: unknown, path: string): Found[] {
  let found: Found[] = [{ path: "", value: root, parent: undefined, root }];
  for (const step of path.split(".")) found = found.flatMap((above) => below(above, step));
  return found;
}

/** What one step finds: a field, or the members of the list in it. */
function below({ path: above, value: parent, root }: Found, step: string): Found[] {
  if (!isObject(parent)) return [];
  const name = step.replace("[]", "");
  const path = above === "" ? name : `${above}.${name}`;
  const value = Object.hasOwn(parent, name) ? parent[name] : undefined;
  if (step === name) return [{ path, value, parent, root }];
  return list(value).map((member, index) => ({
    path: `${path}[${index}]`,
    value: member,
    parent,
    root,
  }));
}

/** The first value at a path. */
export const first = (root: unknown, path: string): unknown => find(root, path)[0]?.value;

/** What a value must be, in words and as a test. */
export class Shape {
  readonly words: string;
  readonly holds: (value: unknown, at: Found) => boolean;
  constructor(words: string, holds: Shape["holds"]) {
    this.words = words;
    this.holds = holds;
  }
}
/** A shape, a pattern of the value as text, or the value itself. */
export type Expected = Shape | RegExp | string | number | boolean | null | undefined | object;
export const wordsOf = (expected: Expected): string => {
  if (expected instanceof Shape) return expected.words;
  if (expected instanceof RegExp) return `like ${expected.source}`;
  return JSON.stringify(expected) ?? "absent";
};
function holds(expected: Expected, found: Found): boolean {
  if (expected instanceof Shape) return expected.holds(found.value, found);
  if (expected instanceof RegExp) return expected.test(String(found.value));
  return JSON.stringify(found.value) === JSON.stringify(expected);
}

/** What the values at some paths must be. */
export type Fields = Readonly<Record<string, Expected>>;
export function expectField(root: unknown, path: string, expected: Expected): void {
  for (const found of find(root, path))
    expect(holds(expected, found), `${found.path} to be ${wordsOf(expected)}`, found.value);
}
/** Each path must also be there. */
export function expectFields(root: unknown, fields: Fields): void {
  for (const [path, expected] of Object.entries(fields)) {
    expect(find(root, path).length > 0, `${path} to be ${wordsOf(expected)}`, root);
    expectField(root, path, expected);
  }
}
/** Two values that must be the same, as JSON. */
export const expectSame = (got: unknown, expected: unknown): void => {
  const text = JSON.stringify(expected);
  expect(JSON.stringify(got) === text, text, got);
};

export const text = new Shape("a non-empty string", isText);
export const string = new Shape("a string", (value) => typeof value === "string");
export const jsonText = new Shape("a JSON object as a string", (value) =>
  isObject(parseJson(isText(value) ? value : undefined)),
);
export const count = new Shape("a count", isCount);
export const positive = new Shape("above 0", (value) => isCount(value) && value > 0);
export const object = new Shape("an object", isObject);
export const array = new Shape("an array", Array.isArray);
export const members = new Shape("an array that has members", (value) => list(value).length > 0);
export const empty = new Shape("nothing", (value) => (value ?? "") === "");
export const atMost = (most: number): Shape =>
  new Shape(`a count, at most ${most}`, (value) => isCount(value) && value <= most);
const tokens = new Shape("a number of tokens", isCount);
/** Neither milliseconds nor a date of another century. */
const unixTime = new Shape(
  "a Unix timestamp in seconds",
  (value) => isCount(value) && value > 1_000_000_000 && value < 10_000_000_000,
);
const textOrNothing = new Shape(
  "a string where it is present, or null",
  (value) => (value ?? null) === null || typeof value === "string",
);
/** A reply that a filter cut short says so in streams too (wire.md "Finish reasons"). */
const REASONS: readonly unknown[] = ["stop", "length", "tool_calls", "content_filter"];
const reason = "stop, length, tool_calls or content_filter";

/** contract.md "Replies". */
export const REPLY: Fields = {
  id: text,
  object: "chat.completion",
  created: unixTime,
  model: text,
  system_fingerprint: string,
  choices: members,
  "choices[].index": new Shape(
    "the position of the choice in the list",
    (value, { root, parent }) => value === list(first(root, "choices")).indexOf(parent),
  ),
  "choices[].message": object,
  "choices[].message.role": "assistant",
  "choices[].message.content": new Shape(
    "a string, or null beside tool calls",
    (value, { parent }) =>
      typeof value === "string" || (value === null && list(first(parent, "tool_calls")).length > 0),
  ),
  "choices[].finish_reason": new Shape(reason, (value) => REASONS.includes(value)),
  usage: object,
  "usage.prompt_tokens": positive,
  "usage.completion_tokens": tokens,
  "usage.total_tokens": tokens,
  "usage.prompt_cache_hit_tokens": tokens,
  "usage.prompt_cache_miss_tokens": tokens,
};

/** contract.md "Stream chunks". */
export const CHUNK: Fields = {
  id: text,
  object: "chat.completion.chunk",
  created: unixTime,
  model: text,
  choices: array,
  "choices[].index": new Shape("a position, from 0", isCount),
  "choices[].delta": object,
  "choices[].delta.role": new Shape(
    '"assistant" where it is present',
    (value) => value === undefined || value === "assistant",
  ),
  "choices[].delta.content": textOrNothing,
  "choices[].delta.reasoning_content": textOrNothing,
  "choices[].finish_reason": new Shape(
    `null, ${reason}`,
    (value) => value === null || REASONS.includes(value),
  ),
};

/** contract.md "Errors". */
export const ERROR: Fields = { message: text, type: text, code: text, request_id: text };
