// The code blocks of README.md and of the manual's pages.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** `name` is "README", or a topic of the manual. */
export interface Page {
  readonly name: string;
  readonly path: string;
  readonly text: string;
}

export interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

const pageAt = (name: string, path: string): Page => ({
  name,
  path,
  text: readFileSync(path, "utf8"),
});

/** README.md first, then the manual ordered by name. */
export function pages(): Page[] {
  const topics = readdirSync("src/manual").sort();
  return [
    pageAt("README", "README.md"),
    ...topics.map((file) => pageAt(file.replace(/\.md$/, ""), join("src/manual", file))),
  ];
}

/** All code blocks of README.md and the manual, in order. */
export const allBlocks = (): Block[] =>
  pages().flatMap(({ name, text }) =>
    [...text.matchAll(/^```(\w*)\n([\s\S]*?)\n```$/gm)].map(([, language, body]) => ({
      page: name,
      language: language!,
      text: body!,
    })),
  );

/** The contents of a page's blocks in one language, in order. Without `page`: of README.md. */
export const blocksOf = (language: string, page = "README"): string[] =>
  allBlocks()
    .filter((block) => block.page === page && block.language === language)
    .map(({ text }) => text);
