// The README's code blocks.

import { readFileSync } from "node:fs";

/** The contents of all blocks in one language, in order. */
export function blocksOf(language: string): string[] {
  const text = readFileSync("README.md", "utf8");
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)\n```$/gm)].flatMap(([, name, body]) =>
    name === language ? [body!] : [],
  );
}
