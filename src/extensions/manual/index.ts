// The manual: Markdown pages, one topic a page, in src/manual. The command `help`, the admin listener and the console show them.
// Run from source, the folder is read when the manual is first asked for; a build of one file carries the pages in itself.
import { readdirSync, readFileSync } from "node:fs";
import { sendJson, type Routes } from "../../core/http/exchange.ts";
import { ApiError } from "../../core/openai/errors.ts";

/** One page of the manual. */
export interface Topic {
  /** The name of the file without its ending. It contains lower-case letters only. */
  readonly name: string;
  /** The text of the first line, without "# ". */
  readonly title: string;
  /** The second paragraph of the page: one sentence that says what the page is about. */
  readonly summary: string;
}

type Pages = Readonly<Record<string, string>>;

/** The text of each page by its name. A build of one file defines this constant. */
declare const MANUAL_PAGES: Pages;

const MARKDOWN = { "Content-Type": "text/markdown; charset=utf-8", "Cache-Control": "no-cache" };

let pages: Pages | undefined;

/** All topics, ordered by name. */
export function topics(): Topic[] {
  return Object.keys(loadedPages()).sort().map(topicOf);
}

/** The Markdown text of a topic. Undefined if there is no such topic. */
export function page(name: string): string | undefined {
  return Object.hasOwn(loadedPages(), name) ? loadedPages()[name] : undefined;
}

/** The paths of the admin listener that serve the manual as Markdown. */
export const manualRoutes: Routes = {
  "/manual": {
    GET: ({ res }) => sendJson(res, 200, contents(), MARKDOWN),
  },
  "/manual/{topic}": {
    GET: ({ res }, name) => {
      const text = page(name);
      if (text === undefined) {
        throw new ApiError("unknown_url", "The manual has no page of this name.");
      }
      sendJson(res, 200, text, MARKDOWN);
    },
  },
};

/** The table of contents as Markdown. The console reads the lines of its list. */
function contents(): string {
  const lines = topics().map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}`);
  return `# Manual\n\n${lines.join("\n")}\n`;
}

function loadedPages(): Pages {
  pages ??= typeof MANUAL_PAGES === "object" ? MANUAL_PAGES : readPages();
  return pages;
}

function readPages(): Pages {
  const folder = new URL("../../manual/", import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith(".md"));
  const entries = files.map((file) => [
    file.slice(0, -".md".length),
    readFileSync(new URL(file, folder), "utf8"),
  ]);
  return Object.fromEntries(entries);
}

function topicOf(name: string): Topic {
  const [title = "", summary = ""] = (page(name) ?? "").split("\n\n", 2);
  return {
    name,
    title: title.replace(/^# /, ""),
    summary: summary.replaceAll("\n", " "),
  };
}
