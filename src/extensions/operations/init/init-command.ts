// The command `init`: writes a first gateway.json for a vendor, and says what to do next. It never
// overwrites a file.
import { writeFile } from "node:fs/promises";
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { url } from "../../../config/fields.ts";
import { DEFAULT_FILE } from "../../../config/load.ts";
import { vendorFacts } from "../../../config/vendors.ts";
import { ACCOUNT, CLIENT_VARIABLE, firstConfig } from "./first-config.ts";
import { VENDOR_ROWS, type VendorRow } from "./vendors.ts";

/** What `init` is to write. */
interface Wanted {
  readonly file: string;
  readonly vendor: string;
  readonly row: VendorRow;
  /** At least one, each once. */
  readonly models: readonly string[];
  readonly baseUrl: string | undefined;
}

const isUrl = (text: string): boolean => {
  try {
    return url(text) !== "";
  } catch {
    return false;
  }
};

const namesIn = (list: string): readonly string[] => list.split(",").map((name) => name.trim());

const areNames = (list: string): boolean => {
  const names = namesIn(list);
  return !names.includes("") && new Set(names).size === names.length;
};

async function run(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { vendor } = args.values;
  if (vendor === undefined && terminal.stdout.isTTY) return await terminal.print(vendorList());
  const wanted = wantedBy(args);
  const config = firstConfig(wanted);
  await writeNew(wanted.file, `${JSON.stringify(config, null, 2)}\n`);
  const { file, row } = wanted;
  const variables = [...(row.variable === undefined ? [] : [row.variable]), CLIENT_VARIABLE];
  const { as_of = null, prices = null } = row;
  const aliases = Object.keys(config.aliases);
  const result = { file, vendor, models: wanted.models, aliases, as_of, prices, variables };
  const text = [writtenText(wanted, aliases), figuresText(wanted), nextText(wanted)].join("\n");
  await terminal.answer(args, result, text);
}

/** Throws a UsageError for what is missing. */
function wantedBy({ values }: CommandArguments): Wanted {
  const { vendor, models: listed, config: file = DEFAULT_FILE } = values;
  const baseUrl = values["base-url"];
  const vendors = [...VENDOR_ROWS.keys()];
  const list = `vendors: ${vendors.join(", ")}`;
  if (vendor === undefined) throw new UsageError(`init needs --vendor; ${list}`);
  const row = VENDOR_ROWS.get(vendor);
  if (!row) throw new UsageError(`--vendor: there is no vendor ${JSON.stringify(vendor)}; ${list}`);
  const models = listed === undefined ? Object.keys(row.models) : namesIn(listed);
  if (models.length === 0)
    throw new UsageError(
      `init --vendor ${vendor} needs --models: the names under which the server has them`,
    );
  if (baseUrl === undefined && vendorFacts(vendor)?.base_url === undefined)
    throw new UsageError(`init --vendor ${vendor} needs --base-url: the address of the server`);
  return { file, vendor, row, models, baseUrl };
}

/** Throws if there is something of this name already. */
async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: "wx" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new Error(`${file} is there already, and init never overwrites: name another --config`);
    throw new Error(`cannot write ${file}: ${code}`);
  }
}

const titleOf = (vendor: string): string => vendorFacts(vendor)?.title ?? vendor;

function vendorList(): string {
  const rows = [...VENDOR_ROWS].map(([vendor, { models }]) => ({
    vendor,
    name: titleOf(vendor),
    models: Object.keys(models).join(", ") || "those that --models names",
  }));
  return `init --vendor V writes a first ${DEFAULT_FILE}. Vendors:\n\n${table(
    ["vendor", "name", "models"],
    rows,
  )}`;
}

function writtenText({ file, vendor, models }: Wanted, aliases: readonly string[]): string {
  const counts = `${models.length} model${models.length === 1 ? "" : "s"} of ${titleOf(vendor)}`;
  return `${file} is written: ${counts}, aliases ${aliases.join(", ")}, account ${ACCOUNT}.\n`;
}

const COLUMNS = [
  "model",
  "context_tokens",
  "input_cache_hit",
  "input_cache_miss",
  "input_cache_write",
  "output",
] as const;

/** The figures, how old they are, and what is not known. */
function figuresText({ vendor, row, models }: Wanted): string {
  const rows = models.map((model) => {
    const { context_tokens, price = null } = row.models[model] ?? {};
    const { input_cache_hit, input_cache_miss, input_cache_write, output } = price ?? {};
    return { model, context_tokens, input_cache_hit, input_cache_miss, input_cache_write, output };
  });
  const figures =
    row.as_of === undefined
      ? `Nothing is known here of the models of ${titleOf(vendor)}: state their context_tokens.\n`
      : `Prices in USD per million tokens, as they were on ${row.as_of}: compare them with\n` +
        `${row.prices}\n\n${table(COLUMNS, rows)}`;
  const unpriced = rows.filter(({ output }) => output === undefined).map(({ model }) => model);
  if (unpriced.length === 0) return figures;
  return (
    `${figures}Without a price: ${unpriced.join(", ")}. A request to such a model costs 0 until ` +
    "models.M.price states one.\n"
  );
}

function nextText({ file, vendor, row }: Wanted): string {
  const config = file === DEFAULT_FILE ? "" : ` --config ${file}`;
  const exports = [
    [CLIENT_VARIABLE, "the key that your clients send; make one up and keep it secret"],
  ];
  if (row.variable !== undefined) exports.unshift([row.variable, `your key at ${titleOf(vendor)}`]);
  return `Next, with this program's name in front (npm start --, or node chat-gateway.mjs):

${exports.map(([name, meaning]) => `  export ${name}=...   # ${meaning}\n`).join("")}
  check${config}   # is the configuration valid?
  check --live${config}   # does the provider answer?
  serve${config}
`;
}

export const initCommand: Command = {
  summary: "write a first gateway.json for a vendor; never overwrites",
  example: "init --vendor deepseek",
  options: {
    vendor: {
      value: "V",
      meaning: "whose models: a vendor of the page `providers`",
      fallback: "prints the vendors, on a terminal",
    },
    models: {
      value: "a,b",
      meaning: "the models, by the vendor's names",
      fallback: "those that init knows of the vendor",
      test: areNames,
      expected: "names with commas between them, each once",
    },
    "base-url": {
      value: "URL",
      meaning: "where the server is",
      fallback: "the vendor's own address",
      test: isUrl,
      expected: "an http:// or https:// address without credentials and query",
    },
    json: JSON_OPTION,
  },
  run,
};
