// A library: decides which parts of a native Messages request go to a provider of that format. The
// parts that always pass are listed here. All others, also new ones, pass only if the trait
// `passes` lists them: fields that raise the price, tools that run at the provider, and ids of
// things that are stored there under the operator's key.
import type { NativeRequest } from "../../../core/openai/native-request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

type Path = readonly (string | number)[];

const setOf = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

const FIELDS = setOf(
  "model messages max_tokens system stream temperature top_p top_k stop_sequences tools " +
    "tool_choice thinking output_config output_format metadata cache_control context_management",
);
/** Fields that are left out, not refused, unless they are listed: replies do not depend on them. */
const OPTIONAL_FIELDS = setOf("service_tier diagnostics fallback_credit_token");
/** Tools that the client runs. One that the client describes has the type `custom`, or none. */
const TOOLS = setOf("custom bash text_editor computer memory computer_toolset browser_toolset");
const BLOCKS = setOf(
  "text image document search_result thinking redacted_thinking tool_use tool_result " +
    "tool_reference browser_state",
);
const SOURCES = setOf("base64 url text content");
const EDITS = setOf("clear_tool_uses clear_thinking");
const BETAS = setOf(
  "computer_use context_management dev_full_thinking effort extended_cache_ttl " +
    "fine_grained_tool_streaming interleaved_thinking model_context_window_exceeded output_128k " +
    "pdfs prompt_caching structured_outputs thinking_binding_controls thinking_display_updates " +
    "token_efficient_tools tool_examples",
);
/** Betas of the vendor's own API: clouds that serve its models refuse them. */
const VENDOR_BETAS = setOf(
  "advanced_tool_use claude_code mid_conversation_output_config " +
    "mid_conversation_system_clear_at per_turn_control prompt_caching_scope task_budgets " +
    "thinking_token_count token_counting",
);

/** Further names that a word of `passes` allows: a tool's blocks, or a field's beta. */
const SYNONYMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    advisor: "advisor_tool",
    billing_policy: "user_profiles_billing",
    code_execution: "bash_code_execution text_editor_code_execution",
    compact: "compaction",
    container: "container_upload skills",
    fallback_credit_token: "fallback_credit",
    fallbacks: "fallback server_side_fallback",
    files: "file files_api",
    mcp_servers: "mcp mcp_client mcp_tool_listing mcp_tool_use mcp_toolset mcp_tunnels",
    safeguards: "dangerous_tool_use",
    speed: "fast_mode",
    thread: "message_threads",
    tool_addition: "tool_removal inline_tools mid_conversation_tool_changes",
    tool_search: "tool_search_tool tool_search_tool_bm25 tool_search_tool_regex",
  }).flatMap(([word, names]) => names.split(" ").map((name) => [name, word] as const)),
);

/** The word of `passes` for a name: without its version, and without the ending of results. */
function wordFor(name: string): string {
  const plain = name
    .replaceAll("-", "_")
    .replace(/_(\d{8}|\d{4}_\d{2}_\d{2})$/, "")
    .replace(/_tool_result$/, "");
  return SYNONYMS.get(plain) ?? plain;
}

/** A part of a request that passes only if it is listed. */
interface RestrictedPart {
  /** The word of `passes` that allows it. */
  readonly word: string;
  readonly path: Path;
}

/**
 * The first part of a request that may not pass, with the message for the client: what the operator
 * can do. Undefined: all of it may.
 */
export function firstUnlisted(body: NativeRequest["body"], passes: readonly string[]) {
  const listed = new Set(passes.map(wordFor));
  const unlisted = restrictedParts(body).find(({ word }) => !listed.has(word));
  if (!unlisted) return undefined;
  const { path, word } = unlisted;
  const message =
    "this gateway does not pass it on. Its operator can allow it: 'passes' with " +
    `${JSON.stringify(word)} in the provider's settings`;
  return { path: [...path], message };
}

/** The parts that pass only if they are listed, in their order. */
function restrictedParts(body: NativeRequest["body"]): readonly RestrictedPart[] {
  const restricted: RestrictedPart[] = [];
  const add = (name: unknown, path: Path) => restricted.push({ word: wordFor(String(name)), path });

  function addTypes(list: unknown, always: ReadonlySet<string>, path: Path): void {
    for (const [index, entry] of asArray(list).entries()) {
      const type = asString(asObject(entry)["type"]);
      if (type !== undefined && !always.has(wordFor(type))) add(type, [...path, index, "type"]);
    }
  }

  /** `isWithin`: the content is in a restricted block, so only its sources are checked. */
  function addContent(content: unknown, path: Path, isWithin: boolean): void {
    if (!Array.isArray(content)) addBlock(asObject(content), path, isWithin);
    else
      for (const [index, block] of content.entries())
        addBlock(asObject(block), [...path, index], isWithin);
  }

  function addBlock(block: Record<string, unknown>, path: Path, isWithin: boolean): void {
    const { type = "text", name, source, content } = block;
    const isRestricted = !BLOCKS.has(String(type));
    // A call of a tool that runs at the provider has the tool in its name.
    if (isRestricted && !isWithin) add(type === "server_tool_use" ? name : type, [...path, "type"]);
    const { type: sourceType = "text", content: nested } = asObject(source);
    if (!SOURCES.has(String(sourceType))) add(sourceType, [...path, "source"]);
    if (nested) addContent(nested, [...path, "source", "content"], isWithin || isRestricted);
    if (content) addContent(content, [...path, "content"], isWithin || isRestricted);
  }

  for (const [field, value] of Object.entries(body)) {
    // The usual speed is the default, and has the usual price.
    const hasNoEffect = isEmpty(value) || (field === "speed" && value === "standard");
    if (!FIELDS.has(field) && !OPTIONAL_FIELDS.has(field) && !hasNoEffect) add(field, [field]);
  }
  addTypes(body["tools"], TOOLS, ["tools"]);
  const { edits } = asObject(body["context_management"]);
  addTypes(edits, EDITS, ["context_management", "edits"]);
  addContent(body["system"], ["system"], false);
  for (const [index, message] of asArray(body["messages"]).entries())
    addContent(asObject(message)["content"], ["messages", index, "content"], false);
  return restricted;
}

/** Whether a field has no effect, such as one that an SDK sets to null. */
const isEmpty = (value: unknown): boolean =>
  value === null || (Array.isArray(value) && value.length === 0);

/** The request without unlisted optional parts and without empty fields. */
export function allowedParts(
  { body, headers }: NativeRequest,
  { passes, omit }: Pick<Traits, "passes" | "omit">,
): Pick<NativeRequest, "body" | "headers"> {
  const listed = new Set(passes.map(wordFor));
  const takesVendorBetas = !omit.includes("vendor_betas");
  const isPassed = ([field, value]: readonly [string, unknown]): boolean =>
    !isEmpty(value) && (FIELDS.has(field) || listed.has(wordFor(field)));
  const { "anthropic-beta": betas = "", "anthropic-user-profile-id": profile, ...rest } = headers;
  const passedBetas = betas
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => {
      const word = wordFor(beta);
      return BETAS.has(word) || (takesVendorBetas && VENDOR_BETAS.has(word)) || listed.has(word);
    })
    .join(",");
  const isProfilePassed = profile !== undefined && listed.has("user_profiles");
  const passed = Object.fromEntries(Object.entries(body).filter(isPassed));
  return {
    body: takesVendorBetas ? passed : withoutVendorBetas(passed),
    headers: {
      ...(takesVendorBetas && rest),
      ...(passedBetas !== "" && { "anthropic-beta": passedBetas }),
      ...(isProfilePassed && { "anthropic-user-profile-id": profile }),
    },
  };
}

/** The paths of parts that belong to VENDOR_BETAS. `*`: each entry of a list. */
const VENDOR_BETA_PATHS: readonly Path[] = [
  ["cache_control", "scope"],
  ["output_config", "task_budget"],
  ["system", "*", "cache_control", "scope"],
  ["tools", "*", "cache_control", "scope"],
  ["tools", "*", "defer_loading"],
  ["tools", "*", "input_examples"],
  ["tools", "*", "allowed_callers"],
  ["messages", "*", "output_config"],
  ["messages", "*", "content", "*", "cache_control", "scope"],
];

/** The parts of the results of tools. */
const RESULT_PARTS: Path = ["messages", "*", "content", "*", "content", "*"];

function withoutVendorBetas(body: object): Record<string, unknown> {
  let left: unknown = body;
  for (const path of VENDOR_BETA_PATHS) left = changed(left, path, () => undefined);
  return asObject(changed(left, RESULT_PARTS, withoutReference));
}

/** Without `defer_loading` the model knows every tool, so a reference to a tool becomes a text. */
function withoutReference(part: unknown): unknown {
  const { type, tool_name } = asObject(part);
  if (type !== "tool_reference") return part;
  return { type: "text", text: `The tool ${String(tool_name)} can be called now.` };
}

/** Changes what is at a path; undefined removes it. Copies the value only if it changes. */
function changed(value: unknown, path: Path, change: (found: unknown) => unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change(value);
  if (step === "*") {
    const items = asArray(value).map((item) => changed(item, rest, change));
    return items.some((item, at) => item !== asArray(value)[at]) ? items : value;
  }
  const inner = asObject(value)[step];
  const after = inner === undefined ? inner : changed(inner, rest, change);
  if (after === inner) return value;
  if (after !== undefined) return { ...asObject(value), [step]: after };
  const { [step]: _, ...others } = asObject(value);
  return others;
}
