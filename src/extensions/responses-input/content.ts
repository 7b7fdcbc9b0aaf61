// The content of messages and of tools' results, as chat completions have it.
import { fail } from "../../core/schema/checker.ts";
import { SHOWN_BELOW } from "../client-apis/index.ts";
import { required, type Path } from "./paths.ts";
import { isMedia, NO_TEXT, type InputPart, type TextPart } from "./schema.ts";

export type Content = string | readonly InputPart[];

/** A part of a message, as chat completions have it. */
export interface ChatPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Throws a ValidationError if a part lacks its content. `path`: that of the list. */
export const contentParts = (parts: readonly InputPart[], path: Path) =>
  parts.map((part, index) => contentPart(part, [...path, index]));

function contentPart(part: InputPart, path: Path): ChatPart {
  if (!isMedia(part)) return chatPart("text", textIn(part));
  const { type, image_url, detail, file_data, filename, input_audio } = part;
  switch (type) {
    case "input_image": {
      const url = required(image_url, path, "image_url");
      return chatPart("image_url", { url, detail });
    }
    case "input_file":
      return chatPart("file", { file_data: required(file_data, path, "file_data"), filename });
    case "input_audio":
      return chatPart("input_audio", required(input_audio, path, "input_audio"));
  }
}

const chatPart = (type: string, content: unknown): ChatPart => ({ type, [type]: content });

/**
 * The text of a content that may have texts only. Throws a ValidationError for any other part.
 * `path`: that of the content.
 */
export function textOf(content: Content, path: Path): string {
  if (typeof content === "string") return content;
  const texts = content.map((part, index) =>
    isMedia(part) ? fail("invalid_value", NO_TEXT, [...path, index, "type"]) : textIn(part),
  );
  return texts.join("");
}

/** The text of a tool's result. It says so if there are images or files, which follow. */
export function resultText(output: Content): string {
  if (typeof output === "string") return output;
  const text = output.map((part) => (isMedia(part) ? "" : textIn(part))).join("");
  if (!output.some(isMedia)) return text;
  return text === "" ? SHOWN_BELOW : `${text}\n${SHOWN_BELOW}`;
}

/**
 * `encrypted_content` stands in messages between a client's own agents, where the vendor's service
 * would have sealed what a model wrote. Here the model's words are plain.
 */
function textIn(part: TextPart): string {
  if (part.type === "refusal") return part.refusal;
  return part.type === "encrypted_content" ? part.encrypted_content : part.text;
}
