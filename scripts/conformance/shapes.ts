// Reads unchecked JSON: finds values by their paths, and describes what a value must be.

/** A value, its path, the object or array that has it, and the root of the document. */
export interface Found {
  readonly path: string;
  readonly value: unknown;
  readonly parent: unknown;
  readonly root: unknown;
}

/** A JSON object whose members are unchecked. */
export type Json = Readonly<Record<string, unknown>>;
/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
/** Whether a value is a non-empty string. */
export const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "";
/** Whether a value is an integer, at least 0. */
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0;
/** The value if it is an array, else an empty one. */
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * The values at a path such as `choices[].message.content`. A missing field yields undefined. A
 * missing object yields nothing, because its own field reports it.
 */
export function find(root: unknown, path: string): Found[] {
  let found: Found[] = [{ path: "", value: root, parent: undefined, root }];
  for (const step of path.split(".")) found = found.flatMap((above) => below(above, step));
  return found;
}

/** The values one step below: a field, or the elements of the array in it. */
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

/** What a value must be, in words and as a predicate. */
export class Shape {
  readonly words: string;
  readonly holds: (value: unknown, at: Found) => boolean;
  constructor(words: string, holds: Shape["holds"]) {
    this.words = words;
    this.holds = holds;
  }
}
/** An expected value: a shape, a pattern that its text matches, or the value itself. */
export type Expected = Shape | RegExp | string | number | boolean | null | undefined | object;
/** An expected value in words. */
export const wordsOf = (expected: Expected): string => {
  if (expected instanceof Shape) return expected.words;
  if (expected instanceof RegExp) return `like ${expected.source}`;
  return JSON.stringify(expected) ?? "absent";
};
/** Whether a found value is as expected. */
export function holds(expected: Expected, found: Found): boolean {
  if (expected instanceof Shape) return expected.holds(found.value, found);
  if (expected instanceof RegExp) return expected.test(String(found.value));
  return JSON.stringify(found.value) === JSON.stringify(expected);
}

/** Expected values by their paths. */
export type Fields = Readonly<Record<string, Expected>>;
