// The request to Converse.
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { parametersOf } from "../../../core/providers/parameters.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { cut } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { closedSchema, createInliner, objectSchema } from "../schemas/index.ts";
import {
  hashedId,
  joinedSystem,
  textPart,
  turnsOf,
  type Item,
  type MediaRule,
  mediaOf,
  type Turn,
} from "../turns/index.ts";

export function requestBody(chat: ChatRequest, target: Target): object {
  const conversation = turnsOf(chat);
  const { system } = conversation;
  const mayCall = (chat.tool_choice ?? "none") !== "none";
  const turns = mayCall ? conversation.turns : conversation.turns.map(withoutCalls);
  const { temperature, top_p, max_tokens, stop } = parametersOf(chat, traitsOf(target));
  const { blocksOf, contentOf } = createBlockWriter(target);
  const { content, marked } = joinedSystem(system);
  return {
    system: content ? (marked ?? [textPart(content)]).flatMap(blocksOf) : undefined,
    messages: turns.map((turn) => ({ role: turn.role, content: contentOf(turn) })),
    inferenceConfig: {
      maxTokens: max_tokens,
      temperature,
      topP: top_p,
      stopSequences: stop?.filter((sequence) => sequence.trim() !== ""),
    },
    toolConfig: mayCall ? toolConfig(chat, target) : undefined,
    outputConfig: outputConfig(chat),
  };
}

/** The JSON Schema of the reply, as a text. Undefined: there is none. */
function outputConfig({ response_format: format }: ChatRequest): object | undefined {
  if (format?.type !== "json_schema") return undefined;
  const { name, description, schema = {} } = format.json_schema;
  const jsonSchema = { schema: JSON.stringify(closedSchema(schema)), name, description };
  return { textFormat: { type: "json_schema", structure: { jsonSchema } } };
}

/**
 * A turn with its calls and results as texts. Converse can only forbid calls by a request without
 * tools, and then it accepts no calls in the history.
 */
const withoutCalls = ({ role, items }: Turn): Turn => ({
  role,
  items: items.map((item) => {
    if (item.type === "call")
      return { type: "text", text: `(Called ${item.name} with ${JSON.stringify(item.args)}.)` };
    if (item.type !== "result") return item;
    const { name, content, cache_control: mark } = item;
    const text = { type: "text" as const, text: `(${name} returned: ${content})` };
    return mark ? { ...text, cache_control: { ...mark } } : text;
  }),
});

/** Claude refuses temperature together with top_p, and newer Claude models refuse both. */
const CLAUDE = { temperature_or_top_p: true, defaults_to_one: ["temperature"] } as const;
const traitsOf = ({ upstreamModel, traits }: Target): Traits =>
  upstreamModel.includes("anthropic.claude") ? { ...traits, ...CLAUDE } : traits;

/** Families of models that have a prompt cache: Claude from 3.7 on, and Nova. */
const CACHING = /anthropic\.claude-([a-z]+-\d|3-7)|amazon\.nova-/;

const isNovaModel = ({ upstreamModel }: Target): boolean => upstreamModel.includes("amazon.nova-");

/** Whether the model has a prompt cache. Without one, it refuses a request that has marks. */
const hasCache = ({ upstreamModel, traits }: Target): boolean =>
  traits.cache_control || CACHING.test(upstreamModel);

/** Families of models that can keep a prompt for an hour: Claude from 4.5 on. Others refuse it. */
const CACHING_FOR_AN_HOUR = /anthropic\.claude-[a-z]+-(4-[5-9]|[5-9])/;

/** Marks the end of the part that the cache is to keep. */
const cachePoint = (mark: object, { upstreamModel }: Target): object => {
  const isLong = asObject(mark)["ttl"] === "1h" && CACHING_FOR_AN_HOUR.test(upstreamModel);
  return { cachePoint: { type: "default", ttl: isLong ? "1h" : undefined } };
};

/** Writes the blocks of one request, with the client's marks if the model has a cache. */
function createBlockWriter(target: Target) {
  const cacheable = hasCache(target);
  const isNova = isNovaModel(target);
  /** The number of documents. Numbers in their names make these unique, as Converse demands. */
  let documents = 0;

  const withMark = (block: object, mark: object | undefined): object[] =>
    mark && cacheable ? [block, cachePoint(mark, target)] : [block];

  function blocksOf(item: Item): object[] {
    if (item.type === "call")
      return [{ toolUse: { toolUseId: safeId(item.id), name: item.name, input: item.args } }];
    const { cache_control } = item;
    if (item.type === "text") return withMark({ text: item.text }, cache_control);
    if (item.type === "result") {
      // A result must have a text.
      const content = [{ text: item.content.trim() === "" ? "(nothing)" : item.content }];
      return withMark({ toolResult: { toolUseId: safeId(item.id), content } }, cache_control);
    }
    const { mediaType, data: bytes } = mediaOf(item)!;
    const format = formatOf(item.type, mediaType);
    const source = { bytes };
    if (item.type === "image_url") return withMark({ image: { format, source } }, cache_control);
    documents += 1;
    const document = { format, name: `file-${documents}`, source };
    // Claude refuses a mark directly after a document that is not a PDF.
    return withMark({ document }, format === "pdf" ? cache_control : undefined);
  }

  return {
    blocksOf,
    contentOf({ items }: Turn): object[] {
      const blocks = items.flatMap(blocksOf);
      // Documents must be accompanied by a text.
      const isBare = blocks.some(has("document")) && !blocks.some(has("text"));
      if (isBare) blocks.push({ text: "(The files are attached.)" });
      // Nova refuses marks in messages with results.
      const isUnmarked = isNova && blocks.some(has("toolResult"));
      return isUnmarked ? blocks.filter((block) => !has("cachePoint")(block)) : blocks;
    },
  };
}

const has = (name: string) => (block: object) => name in block;

/** Converse accepts only ids of these characters. */
const safeId = (id: string): string => (/^[\w-]{1,64}$/.test(id) ? id : hashedId(id));

/** Converse's names of media types. */
const IMAGES = new Map(["png", "jpeg", "gif", "webp"].map((format) => [`image/${format}`, format]));
const DOCUMENTS = new Map([
  ["application/pdf", "pdf"],
  ["text/plain", "txt"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
]);

const formatsOf = (type: string) => (type === "image_url" ? IMAGES : DOCUMENTS);

const formatOf = (type: string, mediaType = ""): string | undefined =>
  formatsOf(type).get(mediaType);

/** Converse accepts data of these types, and no addresses. */
export const typeRule: MediaRule = ({ type }, { mediaType, url }) => {
  if (formatOf(type, mediaType) !== undefined) return undefined;
  const types = [...formatsOf(type).keys()].join(", ");
  const found = mediaType ?? `the address ${cut(url, 80)}`;
  return `this model takes data of ${types}, got ${cut(found, 100)}`;
};

/**
 * Returns a function that writes the parameters of a request's tools. Nova refuses any member at
 * the top of a schema other than type, properties and required.
 */
function createSchemas(target: Target): (parameters: object | undefined) => object {
  if (!isNovaModel(target)) return objectSchema;
  const inlined = createInliner();
  return (parameters) => {
    const { properties, required } = objectSchema(inlined(parameters));
    return { type: "object", properties, required };
  };
}

function toolConfig({ tools, tool_choice: choice }: ChatRequest, target: Target) {
  const schemaOf = createSchemas(target);
  const declared = tools?.map(({ function: { name, description, parameters } }) => ({
    toolSpec: {
      name,
      description: description?.trim() ? description : undefined, // it must not be empty
      inputSchema: { json: schemaOf(parameters) },
    },
  }));
  if (typeof choice === "object")
    return { tools: declared, toolChoice: { tool: { name: choice.function.name } } };
  return { tools: declared, toolChoice: choice === "auto" ? { auto: {} } : { any: {} } };
}
