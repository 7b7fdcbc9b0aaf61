// Generates the parts of the manual's pages that come from the program: `npm run docs`. Tests fail
// if a page differs.
//
// A table between `<!-- generated: NAME -->` and `<!-- end -->` is generated completely. In a table
// between `<!-- filled: NAME -->` and `<!-- end -->` the first column names the subject of the row,
// the last one is written by hand, and the columns between are filled in.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { programSlots, type CommandOption } from "../src/command-line/command.ts";
import { COMMON_OPTIONS, synopsis } from "../src/command-line/help.ts";
import { configSchema } from "../src/config/schema.ts";
import { traitsOf } from "../src/config/vendors.ts";
import vendorsJson from "../src/config/vendors.json" with { type: "json" };
import type { Price } from "../src/core/ledger/price.ts";
import { ERRORS } from "../src/core/openai/errors.ts";
import type { JsonSchema } from "../src/core/schema/checker.ts";
import { FAMILIES, type Family } from "../src/extensions/operations/metrics/families.ts";
import { VENDOR_ROWS } from "../src/extensions/operations/vendor-models/index.ts";
import { serveCommand } from "../src/program.ts";
import { checking, formats, installed, VENDORS } from "../test/support/config.ts";

/** What the program states about a row: the name of the row, and its cells. */
type Fact = readonly [name: string, cells: readonly string[]];

/** A field of the configuration, as the manual states it. */
interface Field {
  /** `server.port`, `providers.P.api_key`, `keys[].account`. */
  readonly path: string;
  readonly type: string;
  /** The default as JSON, "required", or "none" if absence has a meaning of its own. */
  readonly fallback: string;
}

/** Placeholders for the keys of the configuration's dictionaries. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  providers: "P",
  models: "M",
  aliases: "A",
  accounts: "A",
  "models.M.service_tiers": "T",
};

/** A longer list of names is in the text of the page; the table then says only "name". */
const MAX_LISTED_NAMES = 12;

/** The current tables, by their names. `table`: the one in the page. */
const TABLES: Readonly<Record<string, (table: string) => string>> = {
  providers: providersTable,
  models: modelsTable,
  commands: commandsTable,
  options: optionsTable,
  metrics: metricsTable,
  fields: filledWith(() =>
    configurationFields().map(({ path, type, fallback }) => [path, [type, fallback]]),
  ),
  errors: filledWith(() =>
    Object.entries(ERRORS).map(([code, { status, type }]) => [code, [`${status}`, codes([type])]]),
  ),
};

const commands = new Map([["serve", serveCommand], ...installed.family(programSlots.command)]);

/** The names of all commands, errors and metrics, which the manual must contain. */
export const COMMAND_NAMES = [...commands.keys()];
export const ERROR_CODES = Object.keys(ERRORS);
export const METRIC_NAMES = Object.keys(FAMILIES);
/** The options of all commands, as their synopses show them. */
export const OPTIONS = [
  ...new Set([...commands.values()].flatMap(({ options = {} }) => Object.keys(options))),
].map((name) => `--${name}`);

/** All fields of gateway.json that hold a value. */
export function configurationFields(): Field[] {
  return fieldsIn(configSchema(checking, formats).schema, "", true);
}

/** Returns the page with current tables. Throws if a row names something that does not exist. */
export const withTables = (page: string): string =>
  page.replace(
    /(?<=<!-- (?:generated|filled): (\w+) -->\n)[\s\S]*?(?=<!-- end -->)/g,
    (table, name: string) => TABLES[name]!(table),
  );

function filledWith(factsOf: () => readonly Fact[]): (table: string) => string {
  return (table) => {
    const facts = new Map(factsOf());
    return table.replace(/^\| `.*/gm, (line) => filledRow(line, facts));
  };
}

/** Fills in a row. It may name several subjects, whose facts must be equal. */
function filledRow(line: string, facts: ReadonlyMap<string, readonly string[]>): string {
  const cells = line.split(/(?<!\\)\|/).slice(1, -1);
  const [first = ""] = cells;
  const last = cells.at(-1) ?? "";
  const known = namesIn(first).map((name) => {
    const fact = facts.get(name);
    if (!fact) throw new Error(`the manual has a row for ${name}, which does not exist`);
    return fact.map((cell) => ` ${cell} `).join("|");
  });
  if (new Set(known).size !== 1) throw new Error(`one row for different things: ${first}`);
  return `|${first}|${known[0]}|${last}|`;
}

/** The names in backticks. */
export const namesIn = (text: string): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

function fieldsIn(schema: JsonSchema, path: string, isRequired: boolean): Field[] {
  const own = withoutNull(schema);
  const properties = own["properties"] as Record<string, JsonSchema> | undefined;
  if (properties) {
    const required = (own["required"] ?? []) as readonly string[];
    return Object.entries(properties).flatMap(([name, child]) =>
      fieldsIn(child, path === "" ? name : `${path}.${name}`, required.includes(name)),
    );
  }
  const entries = own["additionalProperties"] as JsonSchema | undefined;
  if (entries && isObjectSchema(entries))
    return fieldsIn(entries, `${path}.${PLACEHOLDERS[path]}`, false);
  const items = own["items"] as JsonSchema | undefined;
  if (items && isObjectSchema(items)) return fieldsIn(items, `${path}[]`, false);
  const absent = isRequired ? "required" : "none";
  const fallback = "default" in schema ? `\`${JSON.stringify(schema["default"])}\`` : absent;
  return [{ path, type: typeText(own), fallback }];
}

const isObjectSchema = (schema: JsonSchema): boolean =>
  withoutNull(schema)["properties"] !== undefined;

/**
 * The schema without null, which the page's text explains. Several objects become one with all
 * their fields.
 */
function withoutNull(schema: JsonSchema): JsonSchema {
  const choices = schema["anyOf"] as readonly JsonSchema[] | undefined;
  const [choice, ...others] = (choices ?? []).filter(({ type }) => type !== "null");
  if (!choice) return schema;
  return others.every((other) => "properties" in other)
    ? others.reduce(united, withoutNull(choice))
    : withoutNull(choice);
}

/** An object schema with the fields of both. A field with fixed values in both has all of them. */
function united(one: JsonSchema, other: JsonSchema): JsonSchema {
  const [own, more] = [one, other].map(
    ({ properties }) => properties as Record<string, JsonSchema>,
  );
  const properties = { ...own, ...more };
  const valuesOf = (field?: JsonSchema) => [field?.["enum"] ?? field?.["const"] ?? []].flat();
  for (const name of Object.keys(own!).filter((each) => each in more!)) {
    const values = valuesOf(own![name]);
    if (values.length > 0) properties[name] = { enum: [...values, ...valuesOf(more![name])] };
  }
  const required = [one, other].map((each) => (each["required"] ?? []) as readonly string[]);
  return { properties, required: required[0]!.filter((name) => required[1]!.includes(name)) };
}

function typeText(schema: JsonSchema): string {
  const names = schema["enum"] as readonly string[] | undefined;
  if (names && names.length > MAX_LISTED_NAMES) return "name";
  if (names) return names.map((name) => `\`"${name}"\``).join(", ");
  const [type] = [schema["type"]].flat();
  if (type === "array") return `list of ${typeText(withoutNull(schema["items"] as JsonSchema))}`;
  return `${type}${rangeText(schema)}`;
}

function rangeText({ minimum, maximum }: JsonSchema): string {
  if (minimum === undefined) return "";
  if (maximum === undefined || maximum === Number.MAX_SAFE_INTEGER) return `, at least ${minimum}`;
  return `, ${minimum} to ${maximum}`;
}

const rowOf = (cells: readonly unknown[]): string => `| ${cells.join(" | ")} |`;
const tableOf = (head: readonly string[], rows: readonly string[]): string =>
  [rowOf(head), `|${"---|".repeat(head.length)}`, ...rows, ""].join("\n");
const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(" ");

function commandsTable(): string {
  const rows = [...commands].map(([name, command]) => {
    const shown = synopsis(name, command).replace(" [--config FILE]", "").replaceAll("|", "\\|");
    return rowOf([`\`${shown}\``, command.summary]);
  });
  return tableOf(["Command", "What it does"], rows);
}

/** A row for each meaning of an option, with the commands in which it has that meaning. */
function optionsTable(): string {
  const rows = new Map<string, string[]>();
  const add = (command: string, [name, option]: readonly [string, CommandOption]): void => {
    const row = optionRow(name, option);
    rows.set(row, [...(rows.get(row) ?? []), command]);
  };
  for (const option of Object.entries(COMMON_OPTIONS)) add("all", option);
  for (const [command, { options = {} }] of commands)
    for (const option of Object.entries(options)) add(`\`${command}\``, option);
  const lines = [...rows].map(([row, names]) => row.replace("COMMANDS", names.join(", ")));
  return tableOf(["Option", "Commands", "Meaning", "Default"], lines);
}

function optionRow(name: string, { value, help, required, fallback }: CommandOption): string {
  const form = value === undefined ? `--${name}` : `--${name} ${value.replaceAll("|", "\\|")}`;
  const absent = required ? "required" : (fallback ?? "none");
  return rowOf([`\`${form}\``, "COMMANDS", help, value === undefined ? "off" : absent]);
}

function metricsTable(): string {
  const rows = Object.entries<Family>(FAMILIES).map(([name, { type, help, labels = [] }]) =>
    rowOf([`\`${name}\``, type, codes(labels) || "none", help]),
  );
  return tableOf(["Metric", "Type", "Labels", "Meaning"], rows);
}

const TOOL_CHOICES = {
  all: "all forms",
  required: "all forms; to name a tool, the gateway leaves out the others",
  any: "all forms; to name a tool, the gateway leaves out the others",
  auto: "`none`, `auto`",
};

/** The vendor presets of the gateway. */
function providersTable(): string {
  const fields = ["`vendor`", "Default `base_url`", "`thinking`", "`supports`", "`tool_choice`"];
  const rows = [...VENDORS].map(([vendor, { title, dialect, base_url }]) => {
    const { note } = vendorsJson[vendor as keyof typeof vendorsJson];
    const { thinking, supports, tool_choice } = traitsOf({ vendor }, { reasoning: false });
    const address = (dialect !== "demo" && base_url) || "none";
    const choices = TOOL_CHOICES[tool_choice];
    const traits = [`\`${thinking}\``, codes(supports), choices, omittedBy(vendor)];
    return rowOf([title, `\`${vendor}\``, address, ...traits, note]);
  });
  return tableOf(["Provider", ...fields, "Omitted", "Notes"], rows);
}

/** The parameters that are omitted for a vendor's models, or only for its reasoning models. */
function omittedBy(vendor: string): string {
  const always = traitsOf({ vendor }, { reasoning: false }).omit;
  const whileReasoning = traitsOf({ vendor }, { reasoning: true }).omit;
  const further = whileReasoning.filter((name) => !always.includes(name));
  const parts = [];
  if (always.length > 0) parts.push(codes(always));
  if (further.length > 0) parts.push(`for reasoning models: ${codes(further)}`);
  return parts.join("; ") || "none";
}

/** The price columns, with what each shows. */
const PRICES = {
  "Cache hit": "input_cache_hit",
  "Cache miss": "input_cache_miss",
  "Cache write": "input_cache_write",
  "Write for 1 h": "input_cache_write_1h",
  Output: "output",
} as const;

/** The models that `init` writes, with the date of their figures. */
function modelsTable(): string {
  const rows = [...VENDOR_ROWS].flatMap(([vendor, { as_of, prices, models }]) =>
    Object.entries(models).flatMap(([model, { context_tokens, price, long_prompts = [] }]) => {
      const row = (name: string, figures: Partial<Price> = {}) => {
        const costs = Object.values(PRICES).map((column) => figures[column] ?? "none");
        return rowOf([`\`${vendor}\``, name, context_tokens ?? "none", ...costs, as_of, prices]);
      };
      const long = long_prompts.map(({ above_tokens, ...prices }) =>
        row(`\`${model}\`, prompts above ${above_tokens}`, prices),
      );
      return [row(`\`${model}\``, price), ...long];
    }),
  );
  return tableOf(["Vendor", "Model", "Context", ...Object.keys(PRICES), "As of", "Prices"], rows);
}

if (import.meta.filename === process.argv[1]) {
  const pages = readdirSync("src/manual").filter((each) => each.endsWith(".md"));
  for (const file of pages.map((name) => `src/manual/${name}`)) {
    const text = readFileSync(file, "utf8");
    const updated = withTables(text);
    if (updated === text) continue;
    writeFileSync(file, updated);
    console.log(`written: ${file}`);
  }
}
