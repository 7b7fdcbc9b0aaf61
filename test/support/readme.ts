// Reads the code blocks of README.md and of the manual's pages, runs them in a shell, and reads the
// tables of the page "fields".

import assert from "node:assert/strict";
import { spawn, type SpawnOptions } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { manual } from "../../src/extensions/operations/manual/index.ts";
import { within } from "./wait.ts";

/** README.md, then the manual's pages, ordered by name. `name`: "README", or the page's topic. */
export const pages = () =>
  ["README.md", ...readdirSync("src/manual").map((file) => `src/manual/${file}`)].map((path) => ({
    name: path.replace(/^src\/manual\/|\.md$/g, ""),
    path,
    text: readFileSync(path, "utf8"),
  }));

/** The code blocks of a text, in order. */
export const blocksIn = (text: string) =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)\n```$/gm)].map(([, language, body]) => ({
    language: language!,
    text: body!,
  }));

/** All code blocks of README.md and the manual, in order. */
export const allBlocks = () =>
  pages().flatMap(({ name, text }) => blocksIn(text).map((block) => ({ page: name, ...block })));

/** The contents of a page's blocks in one language, in order. Without `page`: of README.md. */
export const blocksOf = (language: string, page = "README"): string[] =>
  allBlocks()
    .filter((block) => block.page === page && block.language === language)
    .map(({ text }) => text);

/** Addresses of stores: these variables hold addresses, not keys. */
const STORES: Readonly<Record<string, string>> = {
  REDIS_URL: "redis://127.0.0.1:6379",
  POSTGRES_URL: "postgres://127.0.0.1/usage",
};
/** A value for the secret of this name: the address of a store, or any text. */
export const secretOf = (name: string): string => STORES[name.toUpperCase()] ?? `sk-for-${name}`;

/** Starts a script. It ends at the first line that fails. */
export function startShell(script: string, options: SpawnOptions = {}) {
  const args = ["-euo", "pipefail", "-c", script];
  const child = spawn("bash", args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, output: () => output, ended: () => within(code, `the end of: ${script}`) };
}

/** Runs a script to its end. Fails if the script does. Resolves with its output. */
export async function runShell(script: string, options: SpawnOptions = {}): Promise<string> {
  const { output, ended } = startShell(script, options);
  assert.equal(await ended(), 0, `${script}\n${output()}`);
  return output();
}

/** How the gateway handles a field. */
export type Fate = "passed" | "translated" | "ignored" | "refused";

const FATE = /^(passed|translated|ignored|refused)(?: to ((?:`[\w.-]+` ?)+))?$/;
const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, n]) => n!);

/** The rows by field; one row may name several. `vendors`: the vendors that get the field. */
export function fieldTable() {
  const rows = new Map<string, { fate: Fate; vendors: readonly string[] | undefined }>();
  const page = manual.page("fields") ?? assert.fail("the manual has no chapter of fields");
  for (const line of page.split("\n").filter((each) => each.startsWith("| `"))) {
    const [, names = "", cell = ""] = line.split(/(?<!\\)\|/).map((each) => each.trim());
    const [, fate, vendors] = FATE.exec(cell) ?? assert.fail(`no fate of a field: ${cell}`);
    for (const name of namesIn(names)) {
      assert.ok(!rows.has(name), `two rows for ${name}`);
      rows.set(name, { fate: fate as Fate, vendors: vendors ? namesIn(vendors) : undefined });
    }
  }
  return rows;
}
