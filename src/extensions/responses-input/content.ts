// The content of messages and of tools' results, as chat completions have it.
import { required, type Path } from "./paths.ts";
import type { InputPart } from "./schema.ts";

export type Content = string | readonly InputPart[];

/** Throws a ValidationError if a part lacks its content. `path`: that of the list. */
export const contentParts = (parts: readonly InputPart[], path: Path) =>
  parts.map((part, index) => contentPart(part, [...path, index]));

function contentPart(part: InputPart, path: Path): { readonly type: string } {
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
    default:
      return chatPart("text", textIn(part));
  }
}

const chatPart = (type: string, content: unknown) => ({ type, [type]: content });

/** The texts of a content. */
export const textOf = (content: Content): string =>
  typeof content === "string" ? content : content.map(textIn).join("");

/**
 * `encrypted_content` stands in messages between a client's own agents, where the vendor's service
 * would have sealed what a model wrote. Here the model's words are plain.
 */
const textIn = ({ text, refusal, encrypted_content }: InputPart): string =>
  text ?? refusal ?? encrypted_content ?? "";
