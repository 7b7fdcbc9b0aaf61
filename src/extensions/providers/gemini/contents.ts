// The parts of a turn.
import { asString } from "../../../core/schema/untrusted-json.ts";
import {
  type Item,
  mediaOf,
  objectIn,
  type SignatureStore,
  type TextCounter,
  type Turn,
} from "../turns/index.ts";

/** Takes the place of a forgotten signature. */
const NO_SIGNATURE = "skip_thought_signature_validator";

interface ContentOptions {
  readonly signatures: SignatureStore;
  /** Whether the first tool call of a turn must carry a signature. */
  readonly mustSign: boolean;
  /** Counts the texts that are parsed. */
  readonly texts: TextCounter;
}

export function contentParts(
  { items }: Turn,
  { signatures, mustSign, texts }: ContentOptions,
): object[] {
  const firstCall = items.find(({ type }) => type === "call");
  return items.map((item) => {
    if (item.type !== "call") return partOf(item, texts);
    const placeholder = mustSign && item === firstCall ? NO_SIGNATURE : undefined;
    return {
      functionCall: { id: item.id, name: item.name, args: item.args },
      thoughtSignature: signatures.get(item.id) ?? placeholder,
    };
  });
}

type OtherItem = Exclude<Item, { readonly type: "call" }>;

function partOf(item: OtherItem, texts: TextCounter): object {
  if (item.type === "text") return { text: item.text };
  if (item.type === "input_audio") {
    const { format, data } = item.input_audio;
    return { inlineData: { mimeType: `audio/${asString(format) ?? "wav"}`, data } };
  }
  if (item.type === "result") {
    const response = objectIn(item.content, texts) ?? { result: item.content };
    return { functionResponse: { id: item.id, name: item.name, response } };
  }
  const { url, mediaType, data } = mediaOf(item);
  if (mediaType) return { inlineData: { mimeType: mediaType, data } };
  return { fileData: { fileUri: url, mimeType: imageTypeOf(url) } };
}

/** Gemini demands a media type beside an address. */
function imageTypeOf(url: string): string {
  const [, extension = "jpeg"] = /\.(png|webp|gif|heic)\b/i.exec(url) ?? [];
  return `image/${extension.toLowerCase()}`;
}
