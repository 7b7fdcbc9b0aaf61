// The content of a client's message as the parts that every model knows: texts, images and files.
import type { ContentPart } from "../../core/openai/request.ts";
import type { ValidationIssue } from "../../core/schema/checker.ts";
import type { MediaBlock, TextBlock, Unknown } from "./schema.ts";

export type Path = ValidationIssue["path"];

/**
 * Called for what only a provider of the same format can serve, with its place. `what` is the
 * thing, for the client. `value`: the thing itself, if a model reads it.
 */
export type Note = (path: Path, what: string, value?: unknown) => void;

type Mark = Readonly<Record<string, unknown>> | undefined;
type Block<T> = Extract<MediaBlock, { readonly type: T }>;

/** A text part. It keeps the client's mark for the provider's cache. */
export const textPart = (text: string, cache_control?: Mark): ContentPart =>
  cache_control ? { type: "text", text, cache_control } : { type: "text", text };

export function noteUnknown(path: Path, block: Unknown, note: Note): readonly [] {
  note(path, `a block of the type ${JSON.stringify(block.name)}`, block.value);
  return [];
}

/**
 * What Claude Code tells its own vendor of itself, in the first line of the first system text. It
 * is no instruction to a model.
 */
const BILLING = "x-anthropic-billing-header:";

/** System texts are paragraphs of one text. `path`: that of the blocks. */
export function systemParts(blocks: readonly TextBlock[], path: Path, note: Note) {
  const parts = blocks.flatMap((block, index) => {
    if (block.type === "unknown") return noteUnknown([...path, index], block, note);
    const text = withoutBilling(block.text);
    return text === undefined ? [] : [textPart(text, block.cache_control)];
  });
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
export const paragraphs = (parts: readonly ContentPart[]): readonly ContentPart[] =>
  parts.map((part, index) => {
    const isNext = part.type === "text" && parts[index - 1]?.type === "text";
    return isNext ? { ...part, text: `\n\n${part.text}` } : part;
  });

/** `path`: that of the list. */
export function partsOf(content: string | readonly MediaBlock[], path: Path, note: Note) {
  if (typeof content === "string") return [textPart(content)];
  return content.flatMap((block, index) => blockParts(block, [...path, index], note));
}

/** The parts of one block. Its mark for the provider's cache is at the end of them. */
export function blockParts(block: MediaBlock, path: Path, note: Note): readonly ContentPart[] {
  switch (block.type) {
    case "text":
      return [textPart(block.text, block.cache_control)];
    case "image":
      return withMark(imageParts(block, [...path, "source"], note), block.cache_control);
    case "document":
      return withMark(documentParts(block, path, note), block.cache_control);
    case "unknown":
      return noteUnknown(path, block, note);
  }
}

const withMark = (parts: readonly ContentPart[], cache_control: Mark): readonly ContentPart[] =>
  cache_control
    ? parts.map((part, index) => (index === parts.length - 1 ? { ...part, cache_control } : part))
    : parts;

const dataUrl = (source: { readonly media_type: string; readonly data: string }): string =>
  `data:${source.media_type};base64,${source.data}`;

function imageParts({ source }: Block<"image">, path: Path, note: Note): readonly ContentPart[] {
  if (source.type === "unknown") {
    note(path, `an image of the source ${JSON.stringify(source.name)}`, source.value);
    return [];
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return [{ type: "image_url", image_url: { url, detail: undefined } }];
}

function documentParts(
  { source, title, context, citations }: Block<"document">,
  path: Path,
  note: Note,
): readonly ContentPart[] {
  if (citations?.enabled) note([...path, "citations"], "citations", citations);
  const head = [title, context].filter((text) => text !== undefined);
  const place = [...path, "source"];
  switch (source.type) {
    case "base64": {
      const file = { filename: title ?? "document.pdf", file_data: dataUrl(source) };
      return [...(context ? [textPart(context)] : []), { type: "file", file }];
    }
    case "url":
      // Only a provider of the same format gets it. The part counts as a file of unknown size.
      note(place, 'a document of the source "url"', source);
      return [{ type: "file", file: { file_url: source.url } }];
    case "text":
      return [textPart([...head, source.data].join("\n\n"))];
    case "content": {
      const parts = partsOf(source.content, [...place, "content"], note);
      return [...head.map((text) => textPart(text)), ...parts];
    }
    case "unknown":
      note(place, `a document of the source ${JSON.stringify(source.name)}`, source.value);
      return [];
  }
}
