// The manual: Markdown pages in src/manual, one topic a page. The command `help`, the admin
// listener and the console show them, so that an operator without a network has all of it.
import { embeddedNames, embeddedText } from "../../../embedded.ts";
import { once } from "../../scale/installation/index.ts";
import { programSlots } from "../../../command-line/command.ts";
import type { Manual, Topic } from "../../../command-line/manual.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ApiError } from "../../../core/openai/errors.ts";

const FOLDER = "manual";
const ENDING = ".md";
const MARKDOWN = { "Content-Type": "text/markdown; charset=utf-8", "Cache-Control": "no-cache" };

const names = (): readonly string[] =>
  embeddedNames(FOLDER)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length));

const textOf = (name: string): string => embeddedText(`${FOLDER}/${name}${ENDING}`);

/**
 * Of a page the first line is the title, and the second paragraph one sentence about what the page
 * is for.
 */
function topicOf(name: string): Topic {
  const [title = "", summary = ""] = textOf(name).split("\n\n", 2);
  return { name, title: title.replace(/^# /, ""), summary: summary.replaceAll("\n", " ") };
}

export const manual: Manual = {
  topics: () => names().map(topicOf),
  page: (name) => (names().includes(name) ? textOf(name) : undefined),
};

/** The table of contents. The console reads the lines of its list. */
function contents(): string {
  const lines = manual
    .topics()
    .map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}`);
  return `# Manual\n\n${lines.join("\n")}\n`;
}

const adminRoutes: Routes = {
  "/manual": {
    GET: ({ res }) => sendJson(res, 200, contents(), MARKDOWN),
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

export const extension: Extension = {
  name: "manual",
  install(gateway) {
    gateway.fill(programSlots.manual, manual);
    gateway.on(once, () => ({ adminRoutes }));
  },
};
