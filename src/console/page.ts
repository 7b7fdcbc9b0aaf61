// The console's page, and what a browser may do for it: run what stands in it, ask the address that it came from, and nothing else.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

/** A build of one file puts the page in here. */
declare const CONSOLE_PAGE: string;
const text = typeof CONSOLE_PAGE === "string" ? CONSOLE_PAGE : readFileSync(new URL("index.html", import.meta.url), "utf8");
const digestOf = (tag: string) => `'sha256-${hash("sha256", new RegExp(`<${tag}>(.*)</${tag}>`, "s").exec(text)![1]!, "base64")}'`;
const policy = `default-src 'none'; script-src ${digestOf("script")}; style-src ${digestOf("style")}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
export const page = {
  text,
  headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache" },
};
