// The console's page, and what a browser may do for it: run the script that stands in it, ask the
// address that it came from, and nothing else.
import { hash } from "node:crypto";
import { embeddedText } from "../../embedded.ts";

const text = embeddedText("extensions/console/index.html");

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
