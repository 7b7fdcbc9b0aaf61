// Reads one entry of LiteLLM's `model_list`: the vendor, the address and the key, and the settings
// of the model.
import { url } from "../../../config/fields.ts";
import { VENDOR_PRESETS } from "../../../config/vendors.ts";
import { fail } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { baseUrlFor, VENDOR_ROWS } from "../vendor-models/index.ts";
import { toNumber, type Fields, type LeftOutList } from "./left-out.ts";

/** LiteLLM's prefixes that differ from the vendor's name in gateway.json. */
const VENDOR_BY_PREFIX: Readonly<Record<string, string>> = {
  hosted_vllm: "vllm",
  ollama_chat: "ollama",
  dashscope: "qwen",
  zai: "zhipu",
  openai_like: "generic",
  custom_openai: "generic",
  litellm_proxy: "generic",
  lm_studio: "lmstudio",
  together_ai: "together",
  fireworks_ai: "fireworks",
  nvidia_nim: "nvidia",
  cohere_chat: "cohere",
  vertex_ai: "vertex",
  llamafile: "generic",
};

/** The values of the trait `supports`, by the fields of `model_info` that state them. */
const ABILITIES: Readonly<Record<string, string>> = {
  supports_function_calling: "tools",
  supports_response_schema: "json_schema",
  supports_vision: "images",
  supports_audio_input: "audio",
  supports_pdf_input: "files",
};

/** Fields of ABILITIES that a format cannot express, by format. */
const INEXPRESSIBLE: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["supports_audio_input"],
  ollama: ["supports_audio_input", "supports_pdf_input"],
};

/** Vendors that need a region and credentials, which LiteLLM's file need not state. */
const CLOUDS = ["bedrock", "vertex"];

/** The fields of `litellm_params` that make an endpoint and its key. */
const ENDPOINT_FIELDS = ["model", "custom_llm_provider", "api_key", "api_base", "base_url"];
const PRICES = ["input_cost_per_token", "output_cost_per_token"];
const CACHE_PRICES = ["cache_read_input_token_cost", "cache_creation_input_token_cost"];
const SIZES = ["max_input_tokens", "max_output_tokens", "max_tokens"];
const CHAT_MODES = ["chat", "responses"];
/** Models of other modes, which LiteLLM knows without `mode`. */
const NO_CHAT = /embed|rerank|whisper|dall-e|gpt-image|imagen-|[/-]tts/i;

/** Whether LiteLLM calls the Responses API for a model, which this gateway can at this vendor. */
const isForResponses = (model: string, { mode }: Fields, vendor: string): boolean =>
  (mode === "responses" || /(^|\/)responses\//.test(model)) &&
  VENDOR_PRESETS.get(vendor)?.variants.has("responses") === true;

/** A model at its vendor. */
interface Endpoint {
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly upstream: string;
  /** Undefined: the vendor's own address. */
  readonly baseUrl: string | undefined;
  /** The version of Azure's API. Undefined: none is stated. */
  readonly apiVersion: string | undefined;
}

export interface Deployment extends Endpoint {
  /** The entry's path in the file: `model_list[0]`. */
  readonly path: string;
  /** The name that clients send. Several deployments may have it. */
  readonly group: string;
  /** The `api_key` in LiteLLM's file. Undefined: LiteLLM reads the vendor's usual variable. */
  readonly apiKey: string | undefined;
  /** Settings of the model in gateway.json. */
  readonly settings: Fields;
}

/**
 * Undefined if this gateway cannot serve the deployment; `leftOut` has the reason then. Throws a
 * ValidationError if `entry` is not an entry of a `model_list`.
 */
export function readDeployment(
  entry: unknown,
  path: string,
  leftOut: LeftOutList,
): Deployment | undefined {
  const { model_name, litellm_params, model_info, ...others } = asObject(entry);
  const params = asObject(litellm_params);
  const info = leftOut.objectAt(`${path}.model_info`, model_info);
  const paramsPath = `${path}.litellm_params`;
  const group = textAt(model_name, `${path}.model_name`);
  const model = asString(params["model"]) ?? "";
  if (model === "" || model.endsWith("/")) {
    leftOut.add(`${paramsPath}.model`, "expected a text with a model's name");
    return undefined;
  }
  const endpoint = whyUnservable(group, model, info) ?? endpointOf(model, params, paramsPath);
  if (typeof endpoint === "string") {
    leftOut.add(path, endpoint);
    return undefined;
  }
  const { vendor, upstream } = endpoint;
  const abilities = abilitiesIn(info, vendor);
  const price = priceIn({ ...info, ...params });
  const settings = {
    // Figures that init knows of the vendor's models; those of the file replace them.
    ...VENDOR_ROWS.get(vendor)?.models[upstream],
    ...settingsIn(info, abilities, vendor),
    ...(isForResponses(model, info, vendor) && { dialect: "responses" }),
    // The vendor's prices of long prompts do not belong to another price.
    ...(price && { price, long_prompts: undefined }),
  };
  const prices = price ? [...PRICES, ...CACHE_PRICES] : [];
  const version = isVersioned(vendor) ? ["api_version"] : [];
  leftOut.addRest(paramsPath, params, [...ENDPOINT_FIELDS, ...version, ...prices]);
  const sizes = SIZES.filter((name) => isSize(info[name]));
  const carriedInfo = [...sizes, ...abilities, ...prices, "supports_reasoning", "mode"];
  leftOut.addRest(`${path}.model_info`, info, carriedInfo);
  leftOut.addRest(path, others, []);
  const apiKey = optionalText(params["api_key"], `${paramsPath}.api_key`);
  return { ...endpoint, path, group, apiKey, settings };
}

/** Why no deployment of this kind can be served. Undefined: it can, if its vendor is known. */
function whyUnservable(group: string, model: string, info: Fields): string | undefined {
  if (group.includes("*") || model.includes("*"))
    return "each model has a name of its own here: list those that clients may use";
  const mode = info["mode"] ?? (NO_CHAT.test(model) ? "another" : "chat");
  return CHAT_MODES.includes(mode as string) ? undefined : "this gateway serves chat only";
}

/** Undefined if the value is absent or, which is the same to LiteLLM, an empty text. */
export const optionalText = (value: unknown, path: string): string | undefined =>
  value === undefined || value === null || value === "" ? undefined : textAt(value, path);

function textAt(value: unknown, path: string): string {
  if (typeof value === "string" && value !== "") return value;
  return fail("invalid_type", `${path}: expected a text`);
}

/** The endpoint, or why this gateway cannot call it. */
function endpointOf(model: string, params: Fields, path: string): Endpoint | string {
  const { api_base, base_url, api_version } = params;
  const address =
    optionalText(api_base, `${path}.api_base`) ?? optionalText(base_url, `${path}.base_url`);
  const { prefix, upstream } = splitModel(model, asString(params["custom_llm_provider"]));
  const vendor = vendorOf(prefix, address);
  const version = isVersioned(vendor) ? api_version : undefined;
  const apiVersion = optionalText(version, `${path}.api_version`);
  for (const [name, text] of Object.entries({ model, api_base: address, api_version: apiVersion }))
    if (text?.startsWith("os.environ/"))
      return `its ${name} is in a variable: only keys may be, so write the text itself`;
  if (CLOUDS.includes(vendor))
    return `the manual's page ${JSON.stringify(vendor)} has such a provider`;
  if (!VENDOR_ROWS.has(vendor))
    return (
      `there is no vendor ${JSON.stringify(prefix)} here; ` +
      "if its API is OpenAI's, write openai/ and its api_base"
    );
  if (vendor === "gemini" && /\/v1(\/|$)/.test(address ?? ""))
    return "this gateway calls /v1beta of Gemini, and its api_base is /v1";
  if (address === undefined && VENDOR_PRESETS.get(vendor)?.base_url === undefined)
    return "it has no api_base, and there is no usual one";
  try {
    const baseUrl = address === undefined ? undefined : url(baseUrlFor(vendor, address));
    return { vendor, upstream, baseUrl, apiVersion };
  } catch {
    return "its api_base is not an http:// or https:// address without credentials or query";
  }
}

/** The prefix that names the vendor, and the vendor's name of the model. */
function splitModel(model: string, stated: string | undefined) {
  const [first = "", ...rest] = model.split("/");
  const prefix = stated ?? (rest.length > 0 ? first : impliedPrefix(model));
  const upstream = prefix === first && rest.length > 0 ? rest.join("/") : model;
  // These words choose a route within LiteLLM. It does not send them.
  return { prefix, upstream: upstream.replace(/^(responses|o_series|gpt5_series)\//, "") };
}

/** LiteLLM knows the vendor of some models that have no prefix. */
function impliedPrefix(model: string): string {
  if (model.startsWith("claude")) return "anthropic";
  if (model.startsWith("gemini-")) return "vertex_ai";
  return /^(gpt-|chatgpt-|o\d)/.test(model) ? "openai" : model;
}

/** At an address other than OpenAI's, `openai/` only means the format. */
function vendorOf(prefix: string, address: string | undefined): string {
  const vendor = VENDOR_BY_PREFIX[prefix] ?? prefix;
  const isOpenaiAddress =
    address === undefined || /^https:\/\/api\.openai\.com(\/|$)/.test(address);
  return vendor === "openai" && !isOpenaiAddress ? "generic" : vendor;
}

const isVersioned = (vendor: string): boolean =>
  VENDOR_PRESETS.get(vendor)?.versioned !== undefined;

/** The fields that state abilities which the vendor's format can express. */
function abilitiesIn(info: Fields, vendor: string): readonly string[] {
  const inexpressible = INEXPRESSIBLE[VENDOR_PRESETS.get(vendor)?.dialect ?? ""] ?? [];
  return Object.keys(ABILITIES).filter(
    (name) => info[name] === false || (info[name] === true && !inexpressible.includes(name)),
  );
}

/** The settings that follow from `model_info`. */
function settingsIn(info: Fields, abilities: readonly string[], vendor: string): Fields {
  const context = info["max_input_tokens"];
  const output = [info["max_output_tokens"], info["max_tokens"]].find(isSize);
  const supports = supportsOf(info, abilities, vendor);
  return {
    ...(isSize(context) && { context_tokens: context }),
    ...(isSize(output) && { max_output_tokens: output }),
    ...(info["supports_reasoning"] === true && { reasoning: true }),
    ...(supports && { supports }),
  };
}

const isSize = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;

/** What the model supports. Undefined: the same as by the vendor's preset. */
function supportsOf(
  info: Fields,
  abilities: readonly string[],
  vendor: string,
): readonly string[] | undefined {
  const preset = VENDOR_PRESETS.get(vendor)?.traits.supports ?? [];
  const supports = new Set<string>(preset);
  for (const field of abilities)
    if (info[field] === true) supports.add(ABILITIES[field]!);
    else supports.delete(ABILITIES[field]!);
  const isSame = supports.size === preset.length && preset.every((name) => supports.has(name));
  return isSame ? undefined : [...supports];
}

/** Undefined unless the file has prices of input and output that can be billed exactly. */
function priceIn(fields: Fields): object | undefined {
  const [input, output] = PRICES.map((name) => perMillion(fields[name]));
  const [hit, write] = CACHE_PRICES.map((name) => perMillion(fields[name]));
  if (typeof input !== "number" || typeof output !== "number") return undefined;
  if (hit === null || write === null) return undefined;
  return { input_cache_hit: hit, input_cache_miss: input, input_cache_write: write, output };
}

/** Undefined: there is no price. Null: it cannot be stated with six decimals per million tokens. */
function perMillion(value: unknown): number | undefined | null {
  if (value === undefined || value === null) return undefined;
  const price = toNumber(value) * 1e6;
  if (!(price >= 0 && price <= 1_000_000)) return null;
  const rounded = Number(price.toFixed(6));
  return Math.abs(rounded - price) <= price * 1e-9 ? rounded : null;
}
