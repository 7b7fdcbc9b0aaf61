// The request to a provider's Responses API. wire.md "Responses API of providers".
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { effortOf, parametersOf } from "../../../core/providers/parameters.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asArray, parseJson } from "../../../core/schema/untrusted-json.ts";
import { withCallIds, withStatedIds } from "../provider-words/index.ts";
import { acceptedTools } from "../schemas/index.ts";
import { hashedId, type SignatureStore, withParsableArguments } from "../turns/index.ts";

/** The API refuses a smaller bound. */
const LEAST_OUTPUT_TOKENS = 16;
/** The API refuses longer ids of calls. */
const MAX_CALL_ID = 64;
/** The API demands a name for each file. */
const FILE_NAME = "document.pdf";

export function requestBody(chat: ChatRequest, target: Target, signatures: SignatureStore): object {
  const { upstreamModel, reasoning, traits } = target;
  const { max_tokens, logprobs, ...parameters } = parametersOf(chat, traits);
  const include: string[] = [];
  if (reasoning) include.push("reasoning.encrypted_content");
  if (logprobs) include.push("message.output_text.logprobs");
  return {
    model: upstreamModel,
    input: messagesOf(chat).flatMap((message) => itemsOf(message, signatures, traits)),
    stream: chat.stream || undefined,
    // The API keeps replies by default.
    store: false,
    include: include.length > 0 ? include : undefined,
    ...toolFields(chat, target),
    text: textField(chat, traits),
    reasoning: reasoning ? thinkingField(chat, traits) : undefined,
    temperature: parameters.temperature,
    top_p: parameters.top_p,
    top_logprobs: parameters.top_logprobs,
    max_output_tokens: max_tokens && Math.max(max_tokens, LEAST_OUTPUT_TOKENS),
    parallel_tool_calls: parameters.parallel_tool_calls,
    user: parameters.user,
    ...extraFields(chat, traits),
  };
}

/** The messages with ids of calls that the API accepts, and arguments that all servers parse. */
function messagesOf({ messages }: ChatRequest): readonly Message[] {
  const [called, answered] = [createCallIds(), createCallIds()];
  return withStatedIds(withParsableArguments(messages)).flatMap((message) =>
    withCallIds([message], message.role === "tool" ? answered : called),
  );
}

/**
 * The API refuses a long id, and an id of two calls, but some providers count their calls from 0 in
 * each reply. The second result with an id is that of the second call with it, and so on.
 */
function createCallIds() {
  const counts = new Map<string, number>();
  return (id: string): string => {
    const count = counts.get(id) ?? 0;
    counts.set(id, count + 1);
    if (count > 0) return hashedId(`${id} ${count}`);
    return id.length > MAX_CALL_ID ? hashedId(id) : id;
  };
}

/**
 * The items of one message. The reasoning that the provider sealed goes back before the call that
 * it led to; the first one also before the text, as it came.
 */
function itemsOf(message: Message, signatures: SignatureStore, traits: Traits): unknown[] {
  const { role, content } = message;
  if (role === "tool")
    return [{ type: "function_call_output", call_id: message.tool_call_id, output: content }];
  if (role !== "assistant")
    return [{ role, content: typeof content === "string" ? content : content?.map(partOf) }];
  const thoughts = message.tool_calls.map(({ id }) => asArray(parseJson(signatures.get(id) ?? "")));
  const calls = message.tool_calls.flatMap(({ id, function: { name, arguments: text } }, at) => [
    ...(at > 0 ? thoughts[at]! : []),
    { type: "function_call", call_id: id, name, arguments: text || "{}" },
  ]);
  const usual = calls.length > 0 ? "commentary" : "final_answer";
  const phase = traits.takes.includes("phase") ? usual : undefined;
  // llama.cpp knows the model's own messages by their type.
  const said = content ? [{ type: "message", role, content, phase }] : [];
  return [...(thoughts[0] ?? []), ...said, ...calls];
}

function partOf(part: ContentPart): object {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "file") {
    const { filename = FILE_NAME, file_data } = part.file;
    return { type: "input_file", filename, file_data };
  }
  if (part.type === "input_audio") return part;
  const { url, detail = "auto" } = part.image_url;
  return { type: "input_image", image_url: url, detail };
}

/** A tool is strict in this API unless it says otherwise, and needs the schema of an object. */
function toolFields(chat: ChatRequest, target: Target): object {
  const { tool_choice: choice } = chat;
  if (choice === "none" && target.traits.tool_choice === "auto") return {};
  const tools = acceptedTools(chat.tools, target)?.map(({ function: declared }) => ({
    type: "function",
    name: declared.name,
    description: declared.description,
    parameters: { type: "object", properties: {}, ...declared.parameters },
    strict: declared.strict ?? false,
  }));
  const tool_choice =
    typeof choice === "object" ? { type: "function", name: choice.function.name } : choice;
  return { tools, tool_choice: tools && tool_choice };
}

/** The reply's format, and how long the answer is to be. Undefined: the client asked for none. */
function textField({ response_format: format, extras }: ChatRequest, { takes }: Traits) {
  const verbosity = takes.includes("verbosity") ? extras?.["verbosity"] : undefined;
  if (!format) return verbosity === undefined ? undefined : { verbosity };
  const { type } = format;
  if (type === "json_object") return { format: { type }, verbosity };
  const { name, description, schema, strict } = format.json_schema;
  return { format: { type, name, description, schema, strict }, verbosity };
}

/** A summary takes time, and some organizations may not ask for it, so only if it is shown. */
function thinkingField(chat: ChatRequest, traits: Traits): object | undefined {
  if (traits.thinking === "none") return undefined;
  if (!chat.wantsThinking) return traits.thinking_off ? { effort: "none" } : undefined;
  const summary = chat.showThinking && traits.thinking !== "no_summary" ? "auto" : undefined;
  return { effort: effortOf(chat.effort ?? "medium", traits), summary };
}

/** The extra fields that the provider accepts and the API has, but for `verbosity`. */
function extraFields({ extras }: ChatRequest, { takes }: Traits): object {
  if (!extras) return {};
  const fields = takes.filter((name) => name !== "verbosity" && extras[name] !== undefined);
  const known = Object.fromEntries(fields.map((name) => [name, extras[name]]));
  // A provider with a field for it does not get it as `user` too.
  return known["safety_identifier"] === undefined ? known : { ...known, user: undefined };
}
