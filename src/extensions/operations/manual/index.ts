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

const ENDING = ".md";
const MARKDOWN = { "Content-Type": "text/markdown; charset=utf-8", "Cache-Control": "no-cache" };

/**
 * Of a page the first line is the title, and the second paragraph one sentence about what the page
 * is for.
 */
function topicOf(file: string): Topic {
  const [title = "", summary = ""] = embeddedText(`manual/${file}`).split("\n\n", 2);
  const name = file.slice(0, -ENDING.length);
  return { name, title: title.replace(/^# /, ""), summary: summary.replaceAll("\n", " ") };
}

const files = (): readonly string[] =>
  embeddedNames("manual").filter((file) => file.endsWith(ENDING));

export const manual: Manual = {
  topics: () => files().map(topicOf),
  page(name) {
    const file = files().find((each) => each === `${name}${ENDING}`);
    return file && embeddedText(`manual/${file}`);
  },
};

/** The table of contents. The console reads the lines of its list. */
const contents = (): string =>
  [
    "# Manual\n\n",
    ...manual.topics().map(({ name, title, summary }) => `- [${title}](${name}.md): ${summary}\n`),
  ].join("");

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
