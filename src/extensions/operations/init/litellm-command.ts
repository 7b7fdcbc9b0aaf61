// `init --from-litellm FILE`: writes gateway.json from a configuration of LiteLLM, and lists each
// field that it did not carry over, with the reason.
import { UsageError, type CommandArguments, type Terminal } from "../../../command-line/command.ts";
import { DEFAULT_FILE } from "../../../config/load.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import {
  convertLitellm,
  readLitellmFile,
  type Conversion,
  type LeftOut,
} from "../litellm/index.ts";
import { nextStepsText, writeNew } from "./write-new.ts";

/** Options that `--from-litellm` replaces. */
const VENDOR_OPTIONS = ["vendor", "models", "base-url"];

/** Runs the command. Throws a ValidationError if the file cannot be converted. */
export async function fromLitellm(
  source: string,
  args: CommandArguments,
  terminal: Terminal,
): Promise<void> {
  for (const name of VENDOR_OPTIONS)
    if (args.values[name] !== undefined)
      throw new UsageError(`init takes either --from-litellm or --${name}`);
  const { config: file = DEFAULT_FILE } = args.values;
  const conversion = convertLitellm(readLitellmFile(source));
  const { config, leftOut, variables } = conversion;
  await writeNew(file, `${JSON.stringify(config, null, 2)}\n`);
  const models = Object.keys(config.models);
  const aliases = Object.keys(config.aliases);
  const unpriced = unpricedIn(conversion);
  const result = { file, models, aliases, variables, unpriced, left_out: leftOut };
  const parts = [
    `${file} is written: models ${models.join(", ")}; aliases ${aliases.join(", ") || "none"}.\n`,
    leftOutText(source, leftOut),
    pricesText(source, unpriced),
    nextStepsText(
      file,
      variables.map((name) => `${name}=...`),
    ),
  ];
  await terminal.printResult(args, result, parts.join("\n"));
}

const unpricedIn = ({ config }: Conversion): string[] =>
  Object.entries(config.models)
    .filter(([, model]) => asObject(model)["price"] === undefined)
    .map(([name]) => name);

function pricesText(source: string, unpriced: readonly string[]): string {
  const known = `Prices and sizes that ${source} does not state are those that init knows.
The manual's page "providers" has their date.\n`;
  if (unpriced.length === 0) return known;
  const names = unpriced.join(", ");
  return `${known}Without a price: ${names}. They cost 0 until models.M.price states one.\n`;
}

/** Lists the reasons, in the order of their first field, each with its fields. */
function leftOutText(source: string, leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return `Every field of ${source} was carried over.\n`;
  const byReason = new Map<string, string[]>();
  for (const { path, reason } of leftOut)
    byReason.set(reason, [...(byReason.get(reason) ?? []), path]);
  const parts = [...byReason].map(([reason, paths]) =>
    [`  ${reason}:`, ...paths.map((path) => `    ${path}`)].join("\n"),
  );
  return [`Not carried over from ${source}:`, ...parts, ""].join("\n");
}
