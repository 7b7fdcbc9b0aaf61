// The command `init`: writes a first gateway.json, for a vendor or from a configuration of LiteLLM,
// and prints the next steps. It never overwrites a file.
import {
  JSON_OPTION,
  programSlots,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { url } from "../../../config/fields.ts";
import { DEFAULT_FILE } from "../../../config/load.ts";
import { VENDOR_PRESETS } from "../../../config/vendors.ts";
import { fromLitellm } from "./litellm-command.ts";
import { baseUrlFor, VENDOR_ROWS, type VendorRow } from "../vendor-models/index.ts";
import { nextStepsText, writeNew } from "./write-new.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("init"), initCommand);
}

/** The environment variable that holds the clients' key. */
const CLIENT_VARIABLE = "GATEWAY_KEY";
/** The account to which the clients' key belongs. */
const ACCOUNT = "main";

const VENDORS = `vendors: ${[...VENDOR_ROWS.keys()].join(", ")}`;

/** The arguments of `init --vendor`. */
interface InitRequest {
  readonly file: string;
  readonly vendor: string;
  /** The vendor's display name. */
  readonly title: string;
  readonly row: VendorRow;
  /** The models, under the vendor's names: at least one, each once. */
  readonly models: readonly string[];
  /** Undefined: the vendor's own address. */
  readonly baseUrl: string | undefined;
}

const isUrl = (text: string): boolean => {
  try {
    return url(text) !== "";
  } catch {
    return false;
  }
};

const splitNames = (list: string): readonly string[] => list.split(",").map((name) => name.trim());

const areDistinctNames = (list: string): boolean => {
  const names = splitNames(list);
  return !names.includes("") && new Set(names).size === names.length;
};

async function run(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { vendor, "from-litellm": litellm } = args.values;
  if (litellm !== undefined) return await fromLitellm(litellm, args, terminal);
  if (vendor === undefined && terminal.stdout.isTTY)
    return await terminal.print(`init --vendor V writes a first ${DEFAULT_FILE}; ${VENDORS}\n`);
  const request = parseRequest(args);
  const { file, title, row, models } = request;
  const config = firstConfig(request);
  await writeNew(file, `${JSON.stringify(config, null, 2)}\n`);
  const { as_of = null, prices = null, variable } = row;
  const aliases = Object.keys(config.aliases);
  const variables = variable === undefined ? [CLIENT_VARIABLE] : [variable, CLIENT_VARIABLE];
  const nextSteps = nextStepsText(file, [
    ...(variable === undefined ? [] : [`${variable}=...   # your key at ${title}`]),
    `${CLIENT_VARIABLE}=...   # the key of your clients, a secret that you make up`,
  ]);
  const result = { file, vendor, models, aliases, as_of, prices, variables };
  const content = `${models.join(", ")} of ${title}; aliases ${aliases.join(", ")}`;
  const summary = `${file} is written: ${content}; account ${ACCOUNT}.\n`;
  await terminal.printResult(args, result, [summary, figuresText(request), nextSteps].join("\n"));
}

/** Throws a UsageError if a required option is missing. */
function parseRequest({ values }: CommandArguments): InitRequest {
  const { vendor, models: listed, config: file = DEFAULT_FILE, "base-url": baseUrl } = values;
  if (vendor === undefined) throw new UsageError(`init needs --vendor; ${VENDORS}`);
  const row = VENDOR_ROWS.get(vendor);
  if (!row)
    throw new UsageError(`--vendor: there is no vendor ${JSON.stringify(vendor)}; ${VENDORS}`);
  const models = listed === undefined ? Object.keys(row.models) : splitNames(listed);
  const needs = `init --vendor ${vendor} needs`;
  if (models.length === 0)
    throw new UsageError(`${needs} --models: the model names that the server uses`);
  const { title = vendor, base_url: ownUrl } = VENDOR_PRESETS.get(vendor) ?? {};
  if ((baseUrl ?? ownUrl ?? row.settings?.["base_url"]) === undefined)
    throw new UsageError(`${needs} --base-url: the address of the server`);
  return { file, vendor, title, row, models, baseUrl };
}

/** The configuration to write. A model that is not in the row gets no context length or price. */
function firstConfig({ vendor, row, models, baseUrl }: InitRequest) {
  const { variable } = row;
  const key = variable === undefined ? undefined : `$${variable}`;
  const address = baseUrl === undefined ? {} : { base_url: baseUrlFor(vendor, baseUrl) };
  const known = models.map((name) => [name, { provider: vendor, ...row.models[name] }] as const);
  // Models that are not in the row come last: nothing is known of their abilities.
  const others = models.filter((name) => !Object.hasOwn(row.models, name));
  const lists = {
    "auto/chat": [...row.chat.filter((name) => models.includes(name)), ...others],
    "auto/reasoning": row.reasoning.filter((name) => models.includes(name)),
  };
  const aliases = Object.entries(lists).filter(([, names]) => names.length > 0);
  return {
    providers: { [vendor]: { vendor, api_key: key, ...row.settings, ...address } },
    models: Object.fromEntries(known),
    aliases: Object.fromEntries(aliases.map(([name, names]) => [name, { models: names }])),
    keys: [{ account: ACCOUNT, key: `$${CLIENT_VARIABLE}` }],
    apis: ["messages", "responses"],
  };
}

/** The date of the figures, and the models whose figures are not known. */
function figuresText({ title, row, models }: InitRequest): string {
  const { as_of, prices, replace } = row;
  const unpriced = models.filter((model) => !row.models[model]?.price);
  let figures = `Prices, in USD per million tokens, are as of ${as_of}: compare with ${prices}`;
  if (as_of === undefined)
    figures = `init has no data about the models of ${title}: state their context_tokens.`;
  else if (unpriced.length === models.length) figures = `Prices are at ${prices}`;
  if (replace !== undefined) figures = `Before you start: ${replace}.\n${figures}`;
  if (unpriced.length === 0) return `${figures}\n`;
  const names = unpriced.join(", ");
  return `${figures}\nWithout a price: ${names}. They cost 0 until models.M.price states one.\n`;
}

const initCommand: Command = {
  summary: "write a first gateway.json for a vendor, or from LiteLLM's; never overwrites",
  example: "init --vendor deepseek",
  options: {
    vendor: {
      value: "V",
      help: "the vendor, one of the page `providers`",
      fallback: "prints the vendors, on a terminal",
    },
    models: {
      value: "a,b",
      help: "the models, under the vendor's names",
      fallback: "those that init knows from the vendor",
      test: areDistinctNames,
      expected: "names separated by commas, each once",
    },
    "base-url": {
      value: "URL",
      help: "the address of the server",
      fallback: "the vendor's own address",
      test: isUrl,
      expected: "an http:// or https:// address without credentials or query",
    },
    "from-litellm": {
      value: "FILE",
      help: "import models, keys and fallbacks from a LiteLLM configuration, in place of --vendor",
    },
    json: JSON_OPTION,
  },
  run,
};
