// Makes a gateway.json from a configuration of LiteLLM. No field is dropped silently: each one is
// either carried over, or listed with the reason.
import { fail, isObject, wrongType } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { VENDOR_ROWS } from "../vendor-models/index.ts";
import { optionalText, readDeployment, type Deployment } from "./deployment.ts";
import { freeName, convertGroups, type GroupSettings } from "./groups.ts";
import {
  createLeftOutList,
  toNumber,
  type Fields,
  type LeftOut,
  type LeftOutList,
} from "./left-out.ts";

/** The account of the clients' key. */
const ACCOUNT = "main";
const CLIENT_VARIABLE = "GATEWAY_KEY";
const ENVIRONMENT = "os.environ/";
const SECTIONS = ["model_list", "router_settings", "litellm_settings", "general_settings"];

/** A gateway.json, and what it does not carry over. */
export interface Conversion {
  readonly config: {
    readonly models: Fields;
    readonly aliases: Fields;
    readonly [section: string]: unknown;
  };
  /** In the order of the file, sections first to last. */
  readonly leftOut: readonly LeftOut[];
  /** The environment variables that hold the secrets. */
  readonly variables: readonly string[];
}

/**
 * Throws a ValidationError if the value is not a configuration of LiteLLM, or has no model that
 * this gateway can serve.
 */
export function convertLitellm(value: unknown): Conversion {
  if (!isObject(value)) return wrongType("an object with a model_list", value);
  const { model_list } = value;
  if (!Array.isArray(model_list)) return fail("invalid_type", "expected a list", ["model_list"]);
  const leftOut = createLeftOutList();
  const deployments = model_list.flatMap(
    (entry, at) => readDeployment(entry, `model_list[${at}]`, leftOut) ?? [],
  );
  if (deployments.length === 0) return fail("invalid_value", noModel(leftOut), ["model_list"]);
  const variables = createVariables(value, leftOut);
  const { providers, nameOf } = providersOf(deployments, variables);
  const sectionAt = (name: string): Fields => leftOut.objectAt(name, value[name]);
  const router = sectionAt("router_settings");
  const library = sectionAt("litellm_settings");
  const sections = { router, library, leftOut };
  const groups = convertGroups(deployments, nameOf, sections);
  const keys = [
    { account: ACCOUNT, key: clientKey(sectionAt("general_settings"), variables, leftOut) },
  ];
  const settings = attempts(sections);
  leftOut.addRest("", value, SECTIONS);
  return {
    config: {
      apis: ["messages", "responses"],
      providers,
      ...groups,
      keys,
      // LiteLLM's defaults.
      limits: { rpm: null },
      compat: { tool_choice_default: "auto" },
      ...settings,
    },
    leftOut: leftOut.list,
    variables: [...variables.names],
  };
}

function noModel({ list }: LeftOutList): string {
  const [first] = list;
  const example = first === undefined ? "" : `: ${first.path}: ${first.reason}`;
  return `expected a model that this gateway can serve${example}`;
}

/** The providers by name, and the name of each deployment's provider. */
interface Providers {
  readonly providers: Readonly<Record<string, object>>;
  readonly nameOf: (deployment: Deployment) => string;
}

/** One provider for each vendor, address, version and key. */
function providersOf(deployments: readonly Deployment[], variables: Variables): Providers {
  const identity = ({ vendor, baseUrl, apiVersion, apiKey }: Deployment): string =>
    JSON.stringify([vendor, baseUrl, apiVersion, apiKey ?? usualKey(vendor)]);
  const names = new Map<string, string>();
  const providers: Record<string, object> = {};
  for (const deployment of deployments) {
    const { vendor, baseUrl, apiVersion } = deployment;
    const id = identity(deployment);
    if (names.has(id)) continue;
    const others = Object.values(providers).filter((row) => asObject(row)["vendor"] === vendor);
    const name = others.length === 0 ? vendor : `${vendor}-${others.length + 1}`;
    names.set(id, name);
    const variable = keyVariable(deployment, name, variables);
    if (variable !== undefined) variables.names.add(variable);
    providers[name] = {
      vendor,
      base_url: baseUrl,
      api_version: apiVersion,
      ...(variable !== undefined && { api_key: `$${variable}` }),
    };
  }
  return { providers, nameOf: (deployment) => names.get(identity(deployment))! };
}

/** The vendor's usual variable, as an `api_key` of LiteLLM's file refers to it. */
const usualKey = (vendor: string): string => `${ENVIRONMENT}${VENDOR_ROWS.get(vendor)?.variable}`;

/** The environment variable of a provider's key. Undefined: it needs no key. */
function keyVariable(
  { vendor, apiKey, path }: Deployment,
  provider: string,
  variables: Variables,
): string | undefined {
  if (apiKey === undefined) return VENDOR_ROWS.get(vendor)?.variable;
  const fallback = `${provider.toUpperCase().replace(/\W/g, "_")}_KEY`;
  return variables.nameFor(apiKey, `${path}.litellm_params.api_key`, fallback);
}

/** The environment variables of a gateway.json. */
interface Variables {
  /** The variables to which the result refers. */
  readonly names: Set<string>;
  /**
   * The variable for a secret: the one that the file names or, for a secret in plain text, a free
   * one like `fallback`. The secret itself is never copied.
   */
  nameFor(secret: string, path: string, fallback: string): string;
}

function createVariables(file: unknown, leftOut: LeftOutList): Variables {
  // A variable that the file names holds a secret already, so it is not free for another.
  const named = JSON.stringify(file).matchAll(/os\.environ\/(\w+)/g);
  const taken = new Set([...named].map(([, name]) => name));
  return {
    names: new Set(),
    nameFor(secret, path, fallback) {
      const name = secret.slice(ENVIRONMENT.length);
      if (secret.startsWith(ENVIRONMENT) && /^[A-Za-z_]\w*$/.test(name)) return name;
      if (secret.startsWith(ENVIRONMENT))
        return fail("invalid_value", `${path}: expected ${ENVIRONMENT}NAME`);
      const free = freeName(fallback, (text) => taken.has(text), "_");
      leftOut.add(path, `a secret in plain text is not copied: export it as ${free}`);
      return free;
    },
  };
}

function clientKey(section: Fields, variables: Variables, leftOut: LeftOutList): string {
  const { master_key, ...others } = section;
  const path = "general_settings.master_key";
  const secret = optionalText(master_key, path);
  const variable =
    secret === undefined ? CLIENT_VARIABLE : variables.nameFor(secret, path, CLIENT_VARIABLE);
  variables.names.add(variable);
  leftOut.addRest("general_settings", others, []);
  return `$${variable}`;
}

/** As in LiteLLM, a field of the router counts before that of the library. */
function attempts({ router, library, leftOut }: GroupSettings): object {
  const sections = Object.entries({ router_settings: router, litellm_settings: library });
  const numberIn = (name: string, convert: (value: number) => number | undefined) => {
    const stated = sections.filter(([, fields]) => (fields[name] ?? undefined) !== undefined);
    const [[section, fields] = ["", {}], second] = stated;
    if (second) leftOut.add(`${second[0]}.${name}`, "router_settings has it, too");
    const number = convert(toNumber(fields[name]));
    if (number === undefined) leftOut.addRest(section, { [name]: fields[name] }, []);
    return number;
  };
  const max_retries = numberIn("num_retries", (count) => integer(count, 0, 10));
  const failures = numberIn("allowed_fails", (count) =>
    integer(count + 1, 1, Number.MAX_SAFE_INTEGER),
  );
  const ms = numberIn("cooldown_time", (s) => integer(Math.round(s * 1000), 1, 86_400_000));
  return {
    ...(max_retries !== undefined && { retry: { max_retries } }),
    ...((failures ?? ms) !== undefined && { breaker: { failures, cooldown_ms: ms } }),
  };
}

/** Undefined if the value is no integer in the range. */
const integer = (value: number, least: number, most: number): number | undefined =>
  Number.isInteger(value) && value >= least && value <= most ? value : undefined;
