// The manual's table of providers, made from the vendor presets that the gateway itself goes by
// (src/core/providers). `npm run docs` writes it into src/manual/providers.md; a test compares the
// two.
import vendorsJson from "../src/config/vendors.json" with { type: "json" };
import { traitsOf } from "../src/config/vendors.ts";
import { VENDOR_ROWS } from "../src/extensions/operations/vendor-models/index.ts";
import type { Price } from "../src/core/ledger/price.ts";
import { VENDORS } from "../test/support/config.ts";

const TOOL_CHOICES = {
  all: "all forms",
  required: "all forms; to name a tool, the gateway leaves out the others",
  any: "all forms; to name a tool, the gateway leaves out the others",
  auto: "`none`, `auto`",
};

const HEAD = [
  "| Provider | `vendor` | Default `base_url` | `thinking` | `supports` | `tool_choice` | Omitted | Notes |",
  "|---|---|---|---|---|---|---|---|",
];

export function providersTable(): string {
  const rows = [...VENDORS.keys()].map(rowOf);
  return [...HEAD, ...rows].join("\n");
}

function rowOf(vendor: string): string {
  const { title, dialect, base_url } = VENDORS.get(vendor)!;
  const { note } = vendorsJson[vendor as keyof typeof vendorsJson];
  const { thinking, supports, tool_choice } = traitsOf({ vendor }, { reasoning: false });
  const hasAddress = dialect !== "demo" && base_url !== undefined;
  const cells = [
    title,
    `\`${vendor}\``,
    hasAddress ? base_url : "none",
    `\`${thinking}\``,
    codes(supports),
    TOOL_CHOICES[tool_choice],
    omittedBy(vendor),
    note,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** The columns of prices. */
const COLUMNS = [
  "input_cache_hit",
  "input_cache_miss",
  "input_cache_write",
  "input_cache_write_1h",
  "output",
] as const;

/** The models that `init` writes, with the day of their figures. */
export function modelsTable(): string {
  const rows = [...VENDOR_ROWS].flatMap(([vendor, { as_of, prices, models }]) =>
    Object.entries(models).flatMap(([model, { context_tokens, price, long_prompts = [] }]) => {
      const row = (name: string, figures: Partial<Price> = {}) => {
        const shown = [context_tokens, ...COLUMNS.map((column) => figures[column])].map(
          (figure) => figure ?? "none",
        );
        return `| ${[`\`${vendor}\``, name, ...shown, as_of, prices].join(" | ")} |`;
      };
      const long = long_prompts.map(({ above_tokens, ...prices }) =>
        row(`\`${model}\`, prompts above ${above_tokens}`, prices),
      );
      return [row(`\`${model}\``, price), ...long];
    }),
  );
  const prices = ["Cache hit", "Cache miss", "Cache write", "Write for 1 h", "Output"];
  const head = ["Vendor", "Model", "Context", ...prices, "As of", "Prices"];
  return [`| ${head.join(" | ")} |`, `|${"---|".repeat(head.length)}`, ...rows].join("\n");
}

/**
 * The parameters that are not sent: to all models of a vendor, and further ones to its reasoning
 * models.
 */
function omittedBy(vendor: string): string {
  const always = traitsOf({ vendor }, { reasoning: false }).omit;
  const whileReasoning = traitsOf({ vendor }, { reasoning: true }).omit;
  const further = whileReasoning.filter((name) => !always.includes(name));
  const parts = [];
  if (always.length > 0) parts.push(codes(always));
  if (further.length > 0) parts.push(`for reasoning models: ${codes(further)}`);
  return parts.join("; ") || "none";
}

const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(" ");
