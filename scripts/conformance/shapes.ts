// Looking into JSON that nobody has checked yet: values by their path, and tables of what each
// field must be.

/** A value, where it stands, and what it stands in. */
export interface Found {
  readonly path: string;
  readonly value: unknown;
  readonly parent: unknown;
  readonly root: unknown;
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string =>
  typeof value === "string" && value !== "";
export const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0;
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

interface Step {
  readonly name: string;
  /** Whether it leads to the members of the array that has the name. */
  readonly toMembers: boolean;
}
/** The same few paths are looked for in every chunk of every stream. */
const parsedPaths = new Map<string, readonly Step[]>();
function stepsOf(path: string): readonly Step[] {
  const known = parsedPaths.get(path);
  if (known) return known;
  const steps = path
    .split(".")
    .map((step) => ({ name: step.replace("[]", ""), toMembers: step.endsWith("[]") }));
  parsedPaths.set(path, steps);
  return steps;
}

/**
 * The values at a path such as `choices[].message.content`. A field that is missing where it could
 * stand is found as undefined; where there is no object to hold it, nothing is found: that is the
 * fault of another field.
 */
export function find(root: unknown, path: string): Found[] {
  let found: Found[] = [{ path: "", value: root, parent: undefined, root }];
  for (const step of stepsOf(path)) found = found.flatMap((above) => below(above, step));
  return found;
}

/** What one step finds: a field, or the members of the list in it. */
function below(
  { path: above, value: parent, root }: Found,
  { name, toMembers }: ReturnType<typeof stepsOf>[number],
): Found[] {
  if (!isObject(parent)) return [];
  const path = above === "" ? name : `${above}.${name}`;
  const value = Object.hasOwn(parent, name) ? parent[name] : undefined;
  if (!toMembers) return [{ path, value, parent, root }];
  return list(value).map((member, index) => ({
    path: `${path}[${index}]`,
    value: member,
    parent,
    root,
  }));
}

/** The first value at a path. */
export const first = (root: unknown, path: string): unknown => find(root, path)[0]?.value;

/** What a field must be: its path, that in words, and as a test. */
export type Field = readonly [
  path: string,
  expected: string,
  holds: (value: unknown, at: Found) => boolean,
];

const exactly = (text: string) =>
  [JSON.stringify(text), (value: unknown) => value === text] as const;
/** Neither milliseconds nor a date of another century. */
const isUnixTime = (value: unknown): boolean =>
  isCount(value) && value > 1_000_000_000 && value < 10_000_000_000;
const textOrNothing = (value: unknown): boolean =>
  value === undefined || value === null || typeof value === "string";
const isPosition = (value: unknown, { root, parent }: Found): boolean =>
  value === list(first(root, "choices")).indexOf(parent);
/** A reply that a filter cut short says so in streams too (wire.md "Finish reasons"). */
export const FINISH_REASONS: readonly unknown[] = [
  "stop",
  "length",
  "tool_calls",
  "content_filter",
];

/** contract.md "Replies". */
export const REPLY: readonly Field[] = [
  ["id", "a non-empty string", isText],
  ["object", ...exactly("chat.completion")],
  ["created", "a Unix timestamp in seconds", isUnixTime],
  ["model", "a non-empty string", isText],
  ["system_fingerprint", "a string", (value) => typeof value === "string"],
  ["choices", "an array of at least one choice", (value) => list(value).length > 0],
  ["choices[].index", "the position of the choice in the list", isPosition],
  ["choices[].message", "an object", isObject],
  ["choices[].message.role", ...exactly("assistant")],
  [
    "choices[].message.content",
    "a string, or null beside tool calls",
    (value, { parent }) =>
      typeof value === "string" ||
      (value === null && isObject(parent) && list(parent["tool_calls"]).length > 0),
  ],
  [
    "choices[].finish_reason",
    "stop, length, tool_calls or content_filter",
    (value) => FINISH_REASONS.includes(value),
  ],
  ["usage", "an object", isObject],
  ["usage.prompt_tokens", "a number of tokens, at least 1", (value) => isCount(value) && value > 0],
  ["usage.completion_tokens", "a number of tokens", isCount],
  ["usage.total_tokens", "a number of tokens", isCount],
  ["usage.prompt_cache_hit_tokens", "a number of tokens", isCount],
  ["usage.prompt_cache_miss_tokens", "a number of tokens", isCount],
];

/** contract.md "Stream chunks". */
export const CHUNK: readonly Field[] = [
  ["id", "a non-empty string", isText],
  ["object", ...exactly("chat.completion.chunk")],
  ["created", "a Unix timestamp in seconds", isUnixTime],
  ["model", "a non-empty string", isText],
  ["choices", "an array", Array.isArray],
  ["choices[].index", "a position, from 0", isCount],
  ["choices[].delta", "an object", isObject],
  [
    "choices[].delta.role",
    '"assistant" where it is present',
    (value) => value === undefined || value === "assistant",
  ],
  ["choices[].delta.content", "a string where it is present, or null", textOrNothing],
  ["choices[].delta.reasoning_content", "a string where it is present, or null", textOrNothing],
  [
    "choices[].finish_reason",
    "null, stop, length, tool_calls or content_filter",
    (value) => value === null || FINISH_REASONS.includes(value),
  ],
];

/** contract.md "Errors". */
export const ERROR: readonly Field[] = ["message", "type", "code", "request_id"].map((name) => [
  `error.${name}`,
  "a non-empty string",
  isText,
]);
