// The console's page, joined from the files in `page`. Its Content-Security-Policy allows its own
// script and style, and requests to its own origin.
import { hash } from "node:crypto";
import { embeddedText } from "../../../embedded.ts";

/**
 * The modules of the script, each after those that it imports. They share one scope in the page, so
 * no two of them may define the same name.
 */
const SCRIPTS = [
  "words",
  "dom",
  "views",
  "verdict",
  "now",
  "from-books",
  "story",
  "requests",
  "costs",
  "keys",
  "try",
  "manual",
  "main",
];

const read = (file: string): string => embeddedText(`extensions/operations/console/page/${file}`);

const style = read("base.css") + read("parts.css");
const modules = SCRIPTS.map((name) => read(`${name}.js`)).join("\n");
const script = `"use strict";\n${modules}`
  .replace(/^import \{[^}]*\} from .*;$/gm, "")
  .replace(/^export /gm, "");

/** The digest of an inline script or style, in the syntax of a Content-Security-Policy. */
const digestOf = (content: string): string => `'sha256-${hash("sha256", content, "base64")}'`;

const policy = [
  "default-src 'none'",
  `script-src ${digestOf(script)}`,
  `style-src ${digestOf(style)}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

export const page = {
  // Functions, because replace() interprets `$` in replacement strings.
  text: read("page.html")
    .replace("<style></style>", () => `<style>${style}</style>`)
    .replace("<script></script>", () => `<script>${script}</script>`),
  headers: {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  },
};
