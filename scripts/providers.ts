// Prints README.md's table of providers from the data that the gateway itself goes by (src/core/providers/vendors.json):
// `node --import tsx scripts/providers.ts`. A test compares the two.
import { pathToFileURL } from "node:url";
import { VENDORS } from "../test/support/config.ts";
import { traitsOf } from "../src/core/providers/vendors.ts";

const CHOICES = {
  all: "yes",
  any: "yes; a named one by leaving the others out",
  auto: "`none`, `auto`",
};
const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(" ") || "-";

export function providersTable(): string {
  const rows = [...VENDORS].map(([vendor, { title, dialect, base_url, note }]) => {
    const [plain, thinking] = [
      traitsOf(VENDORS, { vendor }, { reasoning: false }),
      traitsOf(VENDORS, { vendor }, { reasoning: true }),
    ];
    const omitted = thinking.omit.filter((name) => !plain.omit.includes(name));
    const left = [
      list(plain.omit),
      ...(omitted.length > 0 ? [`by models that think ${list(omitted)}`] : []),
    ]
      .filter((text) => text !== "-")
      .join("; ");
    const address = dialect === "demo" || base_url === undefined ? "" : `<br>${base_url}`;
    const cells = [
      title,
      `\`${vendor}\`${address}`,
      `\`${plain.thinking}\``,
      list(plain.supports),
      CHOICES[plain.tool_choice],
      left || "-",
      note,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| Provider | `vendor` | `thinking` | `supports` | `tool_choice` | Not taken | |",
    `|${"---|".repeat(7)}`,
    ...rows,
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) console.log(providersTable());
