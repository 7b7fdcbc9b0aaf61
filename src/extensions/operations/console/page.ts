// The console's page, joined of the files in `page`, and what a browser may do for it: run the
// script that stands in it, ask the address that it came from, and nothing else.
//
// The script's files are modules, for those who read and check them. A page that is one file has
// them as functions, of which each returns what its module exports.
import { hash } from "node:crypto";
import { embeddedText } from "../../../embedded.ts";

const STYLES = ["base", "parts", "charts"];
/** Each after those that it imports. */
const SCRIPTS = [
  "words",
  "dom",
  "net",
  "live",
  "parts",
  "chart",
  "verdict",
  "tables",
  "now",
  "from-books",
  "story",
  "requests",
  "cost-records",
  "budgets",
  "costs",
  "keys",
  "programs",
  "reply",
  "try",
  "markdown",
  "manual",
  "main",
];

const read = (file: string): string => embeddedText(`extensions/operations/console/page/${file}`);

const IMPORT = /^import (\{[^}]*\}) from "\.\/([\w-]+)\.js";$/gm;
const EXPORT = /^export (?:const|(?:async )?function) ([\w$]+)/gm;

/** A module as a part of a script. It takes what it imports from the modules before it. */
function moduleText(name: string): string {
  const text = read(`${name}.js`);
  const exported = [...text.matchAll(EXPORT)].map(([, exportedName]) => exportedName);
  const body = text.replace(IMPORT, 'const $1 = modules["$2"];').replace(/^export /gm, "");
  return `modules["${name}"] = (() => {\n${body}return { ${exported.join(", ")} };\n})();\n`;
}

const style = STYLES.map((name) => read(`${name}.css`)).join("\n");
const script = `"use strict";\nconst modules = {};\n${SCRIPTS.map(moduleText).join("\n")}`;
// A function, because the script may have the signs that replace() gives a meaning.
const text = read("page.html")
  .replace("<style></style>", () => `<style>\n${style}</style>`)
  .replace("<script></script>", () => `<script>\n${script}</script>`);

/**
 * The digest of the content of the first element of this name, as a Content-Security-Policy has it.
 */
function digestOf(element: string): string {
  const [, content = ""] = new RegExp(`<${element}>(.*)</${element}>`, "s").exec(text) ?? [];
  return `'sha256-${hash("sha256", content, "base64")}'`;
}

const policy = [
  "default-src 'none'",
  `script-src ${digestOf("script")}`,
  `style-src ${digestOf("style")}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

export const page = {
  text,
  headers: {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  },
};
