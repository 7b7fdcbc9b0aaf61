// A library: the part of a client's own Messages request that goes to a provider of that format.
// Fields that raise the price, tools that work at the provider, and names of things that are stored
// there under the operator's key go only where the trait `passes` lists them. The parts that always
// pass are listed here: a field or a type that is new passes unread nowhere.
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { pathText } from "../../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

type Path = readonly (string | number)[];

const setOf = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

const FIELDS = setOf(
  "model messages max_tokens system stream temperature top_p top_k stop_sequences tools " +
    "tool_choice thinking output_config output_format metadata cache_control context_management",
);
/** Left out unless they are listed: the reply means the same without them. */
const DROPPED = setOf("service_tier diagnostics fallback_credit_token");
/** The client runs these itself. A tool that it describes has no type, or `custom`. */
const TOOLS = setOf("custom bash text_editor computer memory computer_toolset browser_toolset");
const BLOCKS = setOf(
  "text image document search_result thinking redacted_thinking tool_use tool_result " +
    "tool_reference",
);
const SOURCES = setOf("base64 url text content");
const EDITS = setOf("clear_tool_uses clear_thinking");
const BETAS = setOf(
  "computer_use context_management dev_full_thinking effort extended_cache_ttl " +
    "fine_grained_tool_streaming interleaved_thinking model_context_window_exceeded output_128k " +
    "pdfs prompt_caching structured_outputs token_efficient_tools tool_examples",
);
/** Clouds that serve these models refuse a request with such a beta. */
const VENDOR_BETAS = setOf(
  "advanced_tool_use claude_code mid_conversation_output_config " +
    "mid_conversation_system_clear_at prompt_caching_scope task_budgets " +
    "thinking_binding_controls thinking_display_updates thinking_token_count token_counting",
);

/**
 * Names that stand for the same thing as a word of `passes`: blocks of a tool, a beta of a field.
 */
const SAME: ReadonlyMap<string, string> = new Map(
  Object.entries({
    code_execution: "bash_code_execution text_editor_code_execution",
    compact: "compaction",
    container: "container_upload skills",
    fallbacks: "fallback server_side_fallback",
    files: "file files_api",
    mcp_servers: "mcp mcp_client mcp_tool_listing mcp_tool_use mcp_toolset mcp_tunnels",
    speed: "fast_mode",
    thread: "message_threads",
    tool_search: "tool_search_tool tool_search_tool_bm25 tool_search_tool_regex",
  }).flatMap(([word, names]) => names.split(" ").map((name) => [name, word] as const)),
);

/**
 * The word of `passes` for a name: without its version, and for the results of a tool that tool's.
 */
function wordFor(name: string): string {
  const plain = name
    .replaceAll("-", "_")
    .replace(/_(\d{8}|\d{4}_\d{2}_\d{2})$/, "")
    .replace(/_tool_result$/, "");
  return SAME.get(plain) ?? plain;
}

/** A part of a request that is not always passed. */
interface Need {
  /** The word of `passes` that allows it. */
  readonly word: string;
  readonly path: Path;
}

/** Throws an ApiError that names the first part of a request that must not pass. */
export function refuseUnlisted(body: NativeRequest["body"], passes: readonly string[]): void {
  const unlisted = firstUnlisted(body, passes);
  if (!unlisted) return;
  const param = pathText([...unlisted.path]);
  throw new ApiError("unsupported_value", `Invalid '${param}': ${notPassed(unlisted)}.`, { param });
}

/** Why a part of a request is not passed on, and what the operator can do, for the client. */
export const notPassed = ({ word }: Need): string =>
  "this gateway does not pass it on. Its operator can allow it: 'passes' with " +
  `${JSON.stringify(word)} in the provider's settings`;

/** The first part of a request that must not pass. Undefined: all of it may. */
export function firstUnlisted(
  body: NativeRequest["body"],
  passes: readonly string[],
): Need | undefined {
  const listed = new Set(passes.map(wordFor));
  return needsOf(body).find(({ word }) => !listed.has(word));
}

/** The parts of a request that are not always passed, in their order. */
function needsOf(body: NativeRequest["body"]): readonly Need[] {
  const needs: Need[] = [];
  const add = (name: unknown, path: Path) => needs.push({ word: wordFor(String(name)), path });

  function addTypes(list: unknown, always: ReadonlySet<string>, path: Path): void {
    for (const [index, entry] of asArray(list).entries()) {
      const type = asString(asObject(entry)["type"]);
      if (type !== undefined && !always.has(wordFor(type))) add(type, [...path, index, "type"]);
    }
  }

  /** `isWithin`: the content is in a block that is a need, so only its sources are looked at. */
  function addContent(content: unknown, path: Path, isWithin: boolean): void {
    if (!Array.isArray(content)) addBlock(asObject(content), path, isWithin);
    else
      for (const [index, block] of content.entries())
        addBlock(asObject(block), [...path, index], isWithin);
  }

  function addBlock(block: Record<string, unknown>, path: Path, isWithin: boolean): void {
    const { type = "text", name, source, content } = block;
    const isNeed = !BLOCKS.has(String(type));
    // A call that the provider ran itself has the tool in its name.
    if (isNeed && !isWithin) add(type === "server_tool_use" ? name : type, [...path, "type"]);
    const { type: sourceType = "text", content: nested } = asObject(source);
    if (!SOURCES.has(String(sourceType))) add(sourceType, [...path, "source"]);
    if (nested) addContent(nested, [...path, "source", "content"], isWithin || isNeed);
    if (content) addContent(content, [...path, "content"], isWithin || isNeed);
  }

  for (const [field, value] of Object.entries(body))
    if (!FIELDS.has(field) && !DROPPED.has(field) && !isEmpty(value)) add(field, [field]);
  addTypes(body["tools"], TOOLS, ["tools"]);
  const { edits } = asObject(body["context_management"]);
  addTypes(edits, EDITS, ["context_management", "edits"]);
  addContent(body["system"], ["system"], false);
  for (const [index, message] of asArray(body["messages"]).entries())
    addContent(asObject(message)["content"], ["messages", index, "content"], false);
  return needs;
}

/** A field of no effect, such as one that an SDK sets to null. */
const isEmpty = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.length === 0);

/** The request without unlisted optional parts and without empty fields. */
export function withoutUnlisted(
  { body, headers }: NativeRequest,
  { passes, omit }: Pick<Traits, "passes" | "omit">,
): Pick<NativeRequest, "body" | "headers"> {
  const listed = new Set(passes.map(wordFor));
  const takesVendors = !omit.includes("vendor_betas");
  const isPassed = ([field, value]: readonly [string, unknown]): boolean =>
    !isEmpty(value) && (FIELDS.has(field) || listed.has(wordFor(field)));
  const { "anthropic-beta": betas = "", "anthropic-user-profile-id": profile, ...rest } = headers;
  const passedBetas = betas
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => {
      const word = wordFor(beta);
      return BETAS.has(word) || (takesVendors && VENDOR_BETAS.has(word)) || listed.has(word);
    })
    .join(",");
  const isProfilePassed = profile !== undefined && listed.has("user_profiles");
  const passed = Object.fromEntries(Object.entries(body).filter(isPassed));
  return {
    body: takesVendors ? passed : asObject(VENDOR_PARTS.reduce<unknown>(without, passed)),
    headers: {
      ...rest,
      ...(passedBetas !== "" && { "anthropic-beta": passedBetas }),
      ...(isProfilePassed && { "anthropic-user-profile-id": profile }),
    },
  };
}

/** Where the parts of a request stand that belong to such betas. `*`: each entry of a list. */
const VENDOR_PARTS: readonly Path[] = [
  ["cache_control", "scope"],
  ["output_config", "task_budget"],
  ["system", "*", "cache_control", "scope"],
  ["tools", "*", "cache_control", "scope"],
  ["tools", "*", "defer_loading"],
  ["tools", "*", "input_examples"],
  ["tools", "*", "allowed_callers"],
  ["messages", "*", "content", "*", "cache_control", "scope"],
];

/** A copy of a value without the member at such a path. */
function without(value: unknown, [step = "", ...rest]: Path): unknown {
  if (step === "*") return Array.isArray(value) ? value.map((each) => without(each, rest)) : value;
  const { [step]: inner, ...others } = asObject(value);
  if (inner === undefined) return value;
  return rest.length === 0 ? others : { ...asObject(value), [step]: without(inner, rest) };
}
