// The manual: Markdown pages in src/manual, one topic a page. The command `help`, the admin
// listener and the console show them, so that an operator without a network has all of it.
import { embeddedNames, embeddedText } from "../../../embedded.ts";
import { once, queryOf } from "../../scale/installation/index.ts";
import { programSlots } from "../../../command-line/command.ts";
import type { Manual, SearchResult, Topic } from "../../../command-line/manual.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { strict } from "../../../config/fields.ts";
import { nonEmpty, optional } from "../../../core/schema/checker.ts";
import { searchPages, type SearchedPage } from "./search.ts";

const MARKDOWN = { "Content-Type": "text/markdown; charset=utf-8", "Cache-Control": "no-cache" };

/** All pages, each with the name of its topic. */
const pages = (): readonly SearchedPage[] =>
  embeddedNames("manual")
    .filter((file) => file.endsWith(".md"))
    .map((file) => ({ name: file.slice(0, -3), text: embeddedText(`manual/${file}`) }));

/**
 * The topic of a page. The first line of a page is its title; the second paragraph is its summary,
 * one sentence.
 */
function topicOf({ name, text }: SearchedPage): Topic {
  const [title = "", summary = ""] = text.split("\n\n", 2);
  return { name, title: title.replace(/^# /, ""), summary: summary.replaceAll("\n", " ") };
}

export const manual: Manual = {
  topics: () => pages().map(topicOf),
  page: (topic) => pages().find(({ name }) => name === topic)?.text,
  search: (words) => searchPages(pages(), words),
};

/** The table of contents, in Markdown. The console parses the lines of its list. */
const contents = (): string =>
  [
    "# Manual\n\n",
    ...manual.topics().map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}\n`),
  ].join("");

/** The results of a search: a list of links to sections, each with an excerpt. */
function searchText(words: string): string {
  const results = manual.search(words);
  if (results.length === 0) return "# Search\n\nNo section of the manual has any of these words.\n";
  const item = ({ name, title, section, excerpt }: SearchResult): string => {
    const shown = section === title ? title : `${title}: ${section}`;
    return `- [${shown}](${name}.md#${anchorOf(section)}): ${excerpt}\n`;
  };
  return ["# Search\n\n", ...results.map(item)].join("");
}

/** The anchor of a heading, as Markdown viewers generate it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

const query = strict({ search: optional(nonEmpty) });

const adminRoutes: Routes = {
  "/manual": {
    GET({ req, res }) {
      const { search } = queryOf(req, query);
      sendJson(res, 200, search === undefined ? contents() : searchText(search), MARKDOWN);
    },
  },
  "/manual/{topic}": {
    GET({ res }, name) {
      const text = manual.page(name);
      if (text === undefined)
        throw new ApiError("unknown_url", "The manual has no page of this name.");
      sendJson(res, 200, text, MARKDOWN);
    },
  },
};

export function install(gateway: Installer): void {
  gateway.fill(programSlots.manual, manual);
  gateway.on(once, () => ({ adminRoutes }));
}
