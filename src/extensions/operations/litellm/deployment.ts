// One entry of LiteLLM's `model_list`: which vendor serves it, at which address, with which key,
// and what is known of the model.
import { url } from "../../../config/fields.ts";
import { VENDOR_PRESETS } from "../../../config/vendors.ts";
import { fail } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { baseUrlFor, VENDOR_ROWS } from "../vendor-models/index.ts";
import { numberIn, type Fields, type LeftOutList } from "./left-out.ts";

/** The vendors by LiteLLM's prefixes, where these are not the vendor's name here. */
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

/** The traits `supports` by the fields of `model_info` that state them. */
const ABILITIES: Readonly<Record<string, string>> = {
  supports_function_calling: "tools",
  supports_response_schema: "json_schema",
  supports_vision: "images",
  supports_audio_input: "audio",
  supports_pdf_input: "files",
};

/** By format, abilities that it cannot express. */
const INEXPRESSIBLE: Readonly<Record<string, readonly string[]>> = {
  anthropic: ["supports_audio_input"],
  ollama: ["supports_audio_input", "supports_pdf_input"],
};

/** Vendors whose place and credentials LiteLLM's file need not state. */
const CLOUDS = ["bedrock", "vertex"];

const MODEL_FIELDS = ["model", "custom_llm_provider", "api_key", "api_base", "base_url"];
const PRICES = ["input_cost_per_token", "output_cost_per_token"];
const CACHE_PRICES = ["cache_read_input_token_cost", "cache_creation_input_token_cost"];
const SIZES = ["max_input_tokens", "max_output_tokens", "max_tokens"];
const CHAT_MODES = [undefined, null, "chat", "responses"];

const COMPATIBLE = "if its API is OpenAI's, write openai/ and its api_base";

export interface Deployment {
  /** Where it stands: `model_list[0]`. */
  readonly path: string;
  /** The name that clients send. Several deployments may have it. */
  readonly group: string;
  readonly vendor: string;
  /** Undefined: the vendor's own address. */
  readonly baseUrl: string | undefined;
  /** Of Azure's API. Undefined: none is stated. */
  readonly apiVersion: string | undefined;
  /** As LiteLLM's file has it. Undefined: LiteLLM takes it from the vendor's usual variable. */
  readonly apiKey: string | undefined;
  /** The vendor's name of the model. */
  readonly upstream: string;
  /** Settings of the model in gateway.json. */
  readonly settings: Fields;
}

/**
 * Undefined if this gateway cannot serve it; `leftOut` has the reason then. Throws a
 * ValidationError if it is not an entry of a `model_list`.
 */
export function deploymentIn(
  entry: unknown,
  path: string,
  leftOut: LeftOutList,
): Deployment | undefined {
  const { model_name, litellm_params, model_info, ...others } = asObject(entry);
  const params = asObject(litellm_params);
  const info = asObject(model_info);
  const group = textAt(model_name, `${path}.model_name`);
  const written = asString(params["model"]) ?? "";
  const refuse = (reason: string, field = ""): undefined => {
    leftOut.add(path + field, reason);
    return undefined;
  };
  if (written === "") return refuse("expected a text", ".litellm_params.model");
  if (group.includes("*") || written.includes("*"))
    return refuse("each model has a name of its own here: list those that clients may use");
  if (!CHAT_MODES.includes(info["mode"] as string)) return refuse("this gateway serves chat only");
  const address = addressIn(params, `${path}.litellm_params`);
  const served = vendorOf(written, params, address);
  if (typeof served === "string") return refuse(served);
  const { vendor, upstream } = served;
  const baseUrl = baseUrlOf(address, vendor);
  const hasVersion = VENDOR_PRESETS.get(vendor)?.versioned !== undefined;
  const version = `${path}.litellm_params.api_version`;
  const apiVersion = hasVersion ? optionalText(params["api_version"], version) : undefined;
  const unusable = whyUnusable(vendor, baseUrl, { api_base: address, api_version: apiVersion });
  if (unusable !== undefined) return refuse(unusable);
  const abilities = abilitiesIn(info, vendor);
  const price = priceIn({ ...info, ...params });
  const settings = {
    // Figures that init knows of the vendor's models; those of the file replace them.
    ...VENDOR_ROWS.get(vendor)?.models[upstream],
    ...settingsIn(info, abilities, vendor),
    ...(price && { price }),
  };
  const prices = price ? [...PRICES, ...CACHE_PRICES] : [];
  const ofModel = [...MODEL_FIELDS, ...(hasVersion ? ["api_version"] : []), ...prices];
  leftOut.addRest(`${path}.litellm_params`, params, ofModel);
  const sizes = SIZES.filter((name) => isSize(info[name]));
  const ofInfo = [...sizes, ...abilities, ...prices, "supports_reasoning", "mode"];
  leftOut.addRest(`${path}.model_info`, info, ofInfo);
  leftOut.addRest(path, others, []);
  return {
    ...{ path, group, vendor, apiVersion, upstream, settings },
    baseUrl: baseUrl ?? undefined,
    apiKey: optionalText(params["api_key"], `${path}.litellm_params.api_key`),
  };
}

/** Absent: undefined. */
const optionalText = (value: unknown, path: string): string | undefined =>
  value === undefined || value === null ? undefined : textAt(value, path);

function textAt(value: unknown, path: string): string {
  if (typeof value === "string" && value !== "") return value;
  return fail("invalid_type", `${path}: expected a text`);
}

/** The vendor and its name of the model, or why this gateway cannot serve it. */
function vendorOf(
  written: string,
  params: Fields,
  address: string | undefined,
): Pick<Deployment, "vendor" | "upstream"> | string {
  const stated = asString(params["custom_llm_provider"]);
  const [first = "", ...rest] = written.split("/");
  const prefix = stated ?? (rest.length > 0 ? first : prefixOf(written));
  const upstream = prefix === first && rest.length > 0 ? rest.join("/") : written;
  const vendor = VENDOR_BY_PREFIX[prefix] ?? prefix;
  if (CLOUDS.includes(vendor))
    return `the manual's page ${JSON.stringify(vendor)} has such a provider`;
  if (!VENDOR_ROWS.has(vendor))
    return `there is no vendor ${JSON.stringify(prefix)} here; ${COMPATIBLE}`;
  const isElsewhere = vendor === "openai" && !isOfOpenai(address);
  return { vendor: isElsewhere ? "generic" : vendor, upstream };
}

/** LiteLLM knows some names without a prefix. */
function prefixOf(name: string): string {
  if (name.startsWith("claude")) return "anthropic";
  return /^(gpt-|chatgpt-|o\d)/.test(name) ? "openai" : name;
}

const addressIn = ({ api_base, base_url }: Fields, path: string): string | undefined =>
  optionalText(api_base, `${path}.api_base`) ?? optionalText(base_url, `${path}.base_url`);

const isOfOpenai = (address: string | undefined): boolean =>
  address === undefined || /^https:\/\/api\.openai\.com(\/|$)/.test(address);

/** Undefined: the vendor's own address. Null: what is written is no address. */
function baseUrlOf(written: string | undefined, vendor: string): string | undefined | null {
  if (written === undefined) return undefined;
  try {
    return url(baseUrlFor(vendor, written));
  } catch {
    return null;
  }
}

/** Why the vendor cannot be called so. Undefined: it can. `texts`: fields, as they were written. */
function whyUnusable(
  vendor: string,
  baseUrl: string | null | undefined,
  texts: Readonly<Record<string, string | undefined>>,
): string | undefined {
  for (const [name, text] of Object.entries(texts))
    if (text?.startsWith("os.environ/"))
      return `its ${name} is in a variable: only keys may be, so write the text itself`;
  if (baseUrl === null)
    return "its api_base is not an http:// or https:// address without credentials and query";
  if (baseUrl === undefined && VENDOR_PRESETS.get(vendor)?.base_url === undefined)
    return "it has no api_base, and there is no usual one";
  return undefined;
}

/** The fields that state abilities which the vendor's format can express. */
function abilitiesIn(info: Fields, vendor: string): readonly string[] {
  const inexpressible = INEXPRESSIBLE[VENDOR_PRESETS.get(vendor)?.dialect ?? ""] ?? [];
  return Object.keys(ABILITIES).filter(
    (name) => info[name] === false || (info[name] === true && !inexpressible.includes(name)),
  );
}

/** What `model_info` says of the model, as settings. */
function settingsIn(info: Fields, abilities: readonly string[], vendor: string): Fields {
  const context = info["max_input_tokens"];
  const output = info["max_output_tokens"] ?? info["max_tokens"];
  const supports = supportsOf(info, abilities, vendor);
  return {
    ...(isSize(context) && { context_tokens: context }),
    ...(isSize(output) && { max_output_tokens: output }),
    ...(info["supports_reasoning"] === true && { reasoning: true }),
    ...(supports && { supports }),
  };
}

const isSize = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;

/** The vendor's abilities as the file changes them. Undefined: it changes none. */
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
  return {
    ...(hit !== undefined && { input_cache_hit: hit }),
    input_cache_miss: input,
    ...(write !== undefined && { input_cache_write: write }),
    output,
  };
}

/** Undefined: there is no price. Null: it cannot be stated with six decimals per million tokens. */
function perMillion(value: unknown): number | undefined | null {
  if (value === undefined || value === null) return undefined;
  const price = numberIn(value) * 1e6;
  if (!(price >= 0 && price <= 1_000_000)) return null;
  const rounded = Number(price.toFixed(6));
  return Math.abs(rounded - price) <= price * 1e-9 ? rounded : null;
}
