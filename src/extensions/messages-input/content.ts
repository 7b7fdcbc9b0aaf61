// The messages of a client of the Messages API as chat-completions messages: one that answers tool
// calls becomes several, and what a tool showed beside its text follows in a message of the user.
import { SHOWN_BELOW, shownHeading } from "../client-apis/index.ts";
import type { ClientMessage, MediaBlock, ResultBlock, Unknown } from "./schema.ts";

/** The signature of thoughts of models that sign none. No provider ever made it. */
export const OWN_SIGNATURE = "chat-gateway";

/**
 * Called for what chat completions has no words for. `path` begins at the message; `what` is the
 * thing, for the client.
 */
export type Foreign = (path: readonly (string | number)[], what: string) => void;

type Part = Readonly<Record<string, unknown>>;
type UserBlock = MediaBlock | ResultBlock | Unknown;
type Blocks<R extends ClientMessage["role"]> = Exclude<
  Extract<ClientMessage, { readonly role: R }>["content"],
  string | undefined
>;

/** A text part. It keeps the client's mark for the provider's cache. */
const textPart = (text: string, cache_control?: unknown): Part => ({
  type: "text",
  text,
  ...(cache_control !== undefined && { cache_control }),
});

/** The chat-completions messages that one message of the client stands for. */
export function chatMessages(message: ClientMessage, foreign: Foreign): readonly object[] {
  const { role, content } = message;
  if (typeof content === "string") return [{ role, content }];
  // Such an instruction only says how much effort the reply is worth.
  if (content === undefined) return [];
  if (role === "user") return userMessages(message.content as Blocks<"user">, foreign);
  if (role === "assistant")
    return [assistantMessage(message.content as Blocks<"assistant">, foreign)];
  return [{ role, content: systemParts(content as Blocks<"system">, foreign) }];
}

/**
 * What Claude Code tells its own vendor of itself, in the first line of the first system text. It
 * is no instruction to a model.
 */
const BILLING = "x-anthropic-billing-header:";

/** System texts are paragraphs of one text. */
export function systemParts(blocks: Blocks<"system">, foreign: Foreign): readonly Part[] {
  const parts: Part[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.type === "unknown") foreign(["content", index], named(block));
    else {
      const text = withoutBilling(block.text);
      if (text !== undefined) parts.push(textPart(text, block.cache_control));
    }
  }
  return paragraphs(parts);
}

/** The text without that line. Undefined: there is no more. */
function withoutBilling(text: string): string | undefined {
  if (!text.startsWith(BILLING)) return text;
  const [, ...lines] = text.split("\n");
  const rest = lines.join("\n").replace(/^\n+/, "");
  return rest.trim() === "" ? undefined : rest;
}

/** Texts that follow each other become paragraphs: they are joined without a separator. */
const paragraphs = (parts: readonly Part[]): readonly Part[] =>
  parts.map((part, index) => {
    const isNext = part["type"] === "text" && parts[index - 1]?.["type"] === "text";
    return isNext ? { ...part, text: `\n\n${part["text"]}` } : part;
  });

function userMessages(blocks: readonly UserBlock[], foreign: Foreign): readonly object[] {
  const results: object[] = [];
  const parts: Part[] = [];
  for (const [index, block] of blocks.entries()) {
    const path = ["content", index];
    // One by one: a call with 100,000 arguments would overflow the stack.
    if (block.type !== "tool_result")
      for (const part of mediaParts(block, path, foreign)) parts.push(part);
    else {
      const { message, shown } = resultMessage(block, path, foreign);
      results.push(message);
      for (const part of shown) parts.push(part);
    }
  }
  if (results.length > 0 && parts.length === 0) return results;
  return [...results, { role: "user", content: paragraphs(parts) }];
}

/** A tool's answer, and what it shows that a tool's message cannot hold. */
function resultMessage(
  { tool_use_id, content, is_error, cache_control }: ResultBlock,
  path: readonly (string | number)[],
  foreign: Foreign,
): { readonly message: object; readonly shown: readonly Part[] } {
  const blocks = typeof content === "string" ? [textBlock(content)] : content;
  const parts = blocks.flatMap((block, index) =>
    mediaParts(block, [...path, "content", index], foreign),
  );
  const isText = ({ type }: Part): boolean => type === "text";
  const shown = parts.filter((part) => !isText(part));
  const textParts = parts.filter(isText);
  const texts = textParts.map(({ text }) => text);
  const mark =
    cache_control ?? textParts.findLast((part) => part["cache_control"])?.["cache_control"];
  if (shown.length > 0) texts.push(SHOWN_BELOW);
  // Chat completions has no field that says so.
  const text = `${is_error ? "Error: " : ""}${texts.join("\n")}`;
  const message = {
    role: "tool",
    tool_call_id: tool_use_id,
    content: [textPart(text, mark)],
  };
  const heading = textPart(shownHeading(tool_use_id));
  return { message, shown: shown.length > 0 ? [heading, ...shown] : [] };
}

const textBlock = (text: string) => ({ type: "text" as const, text, cache_control: undefined });

function mediaParts(
  block: MediaBlock | Unknown,
  path: readonly (string | number)[],
  foreign: Foreign,
): readonly Part[] {
  switch (block.type) {
    case "text":
      return [textPart(block.text, block.cache_control)];
    case "image":
      return withMark(imageParts(block, path, foreign), block.cache_control);
    case "document":
      return withMark(documentParts(block, path, foreign), block.cache_control);
    default:
      foreign(path, named(block));
      return [];
  }
}

/** The parts of one block, with its mark for the provider's cache at their end. */
const withMark = (parts: readonly Part[], cache_control: unknown): readonly Part[] =>
  cache_control === undefined
    ? parts
    : parts.map((part, index) => (index === parts.length - 1 ? { ...part, cache_control } : part));

const dataUrl = (source: { readonly media_type: string; readonly data: string }): string =>
  `data:${source.media_type};base64,${source.data}`;

function imageParts(
  { source }: Extract<MediaBlock, { readonly type: "image" }>,
  path: readonly (string | number)[],
  foreign: Foreign,
): readonly Part[] {
  if (source.type === "unknown") {
    foreign([...path, "source"], `an image of the source ${JSON.stringify(source.name)}`);
    return [];
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return [{ type: "image_url", image_url: { url } }];
}

function documentParts(
  { source, title, context, citations }: Extract<MediaBlock, { readonly type: "document" }>,
  path: readonly (string | number)[],
  foreign: Foreign,
): readonly Part[] {
  if (citations?.enabled) foreign([...path, "citations"], "citations");
  const head = [title, context].filter((text) => text !== undefined);
  switch (source.type) {
    case "base64": {
      const file = { filename: title ?? "document.pdf", file_data: dataUrl(source) };
      return [...(context ? [textPart(context)] : []), { type: "file", file }];
    }
    case "url":
      // Only a provider of the same format gets it. The part counts as a file of unknown size.
      foreign([...path, "source"], 'a document of the source "url"');
      return [{ type: "file", file: { file_url: source.url } }];
    case "text":
      return [textPart([...head, source.data].join("\n\n"))];
    case "content": {
      const { content } = source;
      const blocks = typeof content === "string" ? [textBlock(content)] : content;
      const parts = blocks.flatMap((block, index) =>
        mediaParts(block, [...path, "source", "content", index], foreign),
      );
      return [...head.map((text) => textPart(text)), ...parts];
    }
    default:
      foreign([...path, "source"], `a document of the source ${JSON.stringify(source.name)}`);
      return [];
  }
}

/** Thoughts go back as reasoning. Encrypted ones are for their own provider alone. */
function assistantMessage(blocks: Blocks<"assistant">, foreign: Foreign): object {
  const texts: Part[] = [];
  const thoughts: string[] = [];
  const tool_calls: object[] = [];
  for (const [index, block] of blocks.entries()) {
    switch (block.type) {
      case "text":
        texts.push(textPart(block.text, block.cache_control));
        break;
      case "thinking":
        thoughts.push(block.thinking);
        break;
      case "tool_use": {
        const { id, name, input } = block;
        const called = { name, arguments: JSON.stringify(input) };
        tool_calls.push({ id, type: "function", function: called });
        break;
      }
      case "unknown":
        foreign(["content", index], named(block));
    }
  }
  const content = texts.length === 0 && tool_calls.length > 0 ? null : texts;
  const reasoning_content = thoughts.join("\n") || undefined;
  return { role: "assistant", content, reasoning_content, tool_calls };
}

const named = ({ name }: Unknown): string => `a block of the type ${JSON.stringify(name)}`;
