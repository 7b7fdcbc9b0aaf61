// Where errors say that something is: the one table of what the members of a checked request are
// called in each API. In chat completions each member has the name of its field.
import { pathText, type ValidationIssue } from "../../../core/schema/checker.ts";
import type { ApiName } from "./settings.ts";

export type Path = ValidationIssue["path"];

export type Names = Readonly<Record<string, Path>>;

const NAMES: { readonly [api in ApiName]: Names } = {
  messages: { response_format: ["output_config", "format"], stop: ["stop_sequences"] },
  responses: { messages: ["input"], response_format: ["text", "format"], logprobs: ["include"] },
};

/** The name that a member has in the errors of an API. */
export const memberName = (api: ApiName, member: string): string =>
  pathText(NAMES[api][member] ?? []) || member;

/**
 * ChatRequest.clientPath of one request. `contents`: where the content of each message stands.
 * `others`: members that stand at another place in this request than the table says.
 */
export const clientPathOf =
  (api: ApiName, contents: readonly Path[], others: Names = {}) =>
  ([first, index]: Path): (string | number)[] => {
    const member = String(first);
    const content = member === "messages" ? contents[Number(index)] : undefined;
    return [...(content ?? others[member] ?? NAMES[api][member] ?? [member])];
  };
