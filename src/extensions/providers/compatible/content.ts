// The texts of a message in whichever form a server writes them: a string, a list of parts of
// several types, or JSON (Cloudflare's JSON mode). Content of an unknown shape becomes text, as its
// JSON: it was paid for, and must not vanish.
import { textOf } from "../../../core/providers/decoding.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";

/** The texts of one event, each "" if there is none. */
export interface Texts {
  text: string;
  reasoning: string;
  refusal: string;
}

export const noTexts = (): Texts => ({ text: "", reasoning: "", refusal: "" });

const KINDS = ["text", "reasoning", "refusal"] as const;

/** Types of parts that belong to the answer. */
const PARTS = new Set<unknown>([
  "text",
  "output_text",
  "thinking",
  "reasoning",
  "refusal",
  "image",
  "image_url",
  "output_image",
  "audio",
]);

/** Types of parts that are notes on other parts, or thoughts that only their model can read. */
const NOTES = new Set<unknown>(["reference", "tool_reference", "redacted_thinking"]);

/**
 * Reads the texts of a reply's messages. `repeats`: the provider sends each piece of reasoning
 * twice in a row.
 */
export function createTextReader(repeats: boolean) {
  /** The choice that each kind of text is read from: the first one that has any. */
  const sources: Partial<Record<keyof Texts, number>> = {};
  let lastReasoning = "";

  return (message: Record<string, unknown>, choice: number): Texts => {
    const texts = textsIn(message);
    for (const kind of KINDS) {
      if (texts[kind] === "") continue;
      sources[kind] ??= choice;
      if (sources[kind] !== choice) texts[kind] = "";
    }
    const isRepeated = repeats && texts.reasoning === lastReasoning;
    // The third of several equal pieces is a new one, which the fourth repeats.
    if (isRepeated) texts.reasoning = "";
    lastReasoning = texts.reasoning;
    return texts;
  };
}

function textsIn(message: Record<string, unknown>): Texts {
  const texts = noTexts();
  const { content, refusal, images, audio } = message;
  if (Array.isArray(content) && (content.length === 0 || content.some(isPart)))
    for (const part of content) addPart(texts, part);
  else texts.text = textOf(content);
  for (const image of asArray(images)) addPart(texts, image);
  if (audio) texts.text += textOf(asObject(audio)["transcript"]);
  texts.reasoning += reasoningBeside(message);
  texts.refusal += textOf(refusal || undefined);
  return texts;
}

/**
 * Whether an element of an array is a part. An array without parts is JSON that the model wrote.
 */
function isPart(value: unknown): boolean {
  const { type, text, thinking } = asObject(value);
  return PARTS.has(type) || NOTES.has(type) || text !== undefined || thinking !== undefined;
}

function addPart(texts: Texts, part: unknown): void {
  const { type, text, thinking, summary, content, refusal } = asObject(part);
  if (NOTES.has(type)) return;
  if (thinking || type === "thinking") texts.reasoning += joined(thinking);
  else if (type === "reasoning") texts.reasoning += joined(summary ?? content ?? text);
  else if (type === "refusal") texts.refusal += textOf(refusal);
  else texts.text += textOf(text === undefined ? part : text);
}

/** The text of a string, or of a list of texts (Mistral's `thinking`, Databricks' `summary`). */
const joined = (stated: unknown): string =>
  Array.isArray(stated) ? stated.map(textOfPart).join("") : textOf(stated);

function textOfPart(part: unknown): string {
  const { type, text } = asObject(part);
  return NOTES.has(type) ? "" : textOf(text === undefined ? part : text);
}

/** The reasoning that a message states beside its content, under the first name that has any. */
function reasoningBeside(message: Record<string, unknown>): string {
  const { reasoning_content, reasoning, reasoning_text, reasoning_details } = message;
  const stated = joined(reasoning_content) || joined(reasoning) || joined(reasoning_text);
  return stated || asArray(reasoning_details).map(textOfDetail).join("");
}

/** OpenRouter's and MiniMax's form. An encrypted detail has no text. */
function textOfDetail(detail: unknown): string {
  const { text, summary } = asObject(detail);
  return joined(text ?? summary);
}
