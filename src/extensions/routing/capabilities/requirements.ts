// What a request requires of the model that serves it.
import type { ChatRequest, MediaPart } from "../../../core/openai/request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { pathText } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { Model } from "../../../core/routing/model.ts";

/** What a model lacks for a request, so that it is no candidate. */
interface Lack {
  /** The field of the client's request that needs the capability. */
  readonly path: (string | number)[];
  /** The error message for the client. */
  readonly message: string;
}

type CheckedModel = Pick<Model, "traits" | "provider">;

/** What this model lacks for a request. Undefined: it has all that the request needs. */
export type FindLack = (model: CheckedModel, chat: ChatRequest) => Lack | undefined;

/** One requirement of a request: what a model lacks for it. Undefined: the model meets it. */
export type Requirement = (model: CheckedModel) => Lack | undefined;

/**
 * Parameters that change the meaning of the reply, so a model that refuses one is no candidate.
 * Other parameters are left out of the request instead.
 */
const MEANINGFUL = ["stop", "frequency_penalty", "presence_penalty"] as const;
const MEDIA = { image_url: "images", input_audio: "audio", file: "files" } as const;
/** The member of each media part that may hold an address for some providers. */
const ADDRESS = { image_url: "url", input_audio: "data", file: "file_data" } as const;
/** Addresses, such as `gs:`, that are read with the operator's key or on the provider's machine. */
const OTHER_SCHEME = /^(?!data:|https?:)[a-z][\w+.-]*:/i;
/** Addresses of files stored at Gemini: they have no scheme of their own. */
const FILE_AT_GEMINI = /^https?:[\\/]*([^\\/?#]*@)?generativelanguage\.googleapis\.com/i;

/**
 * An address as a URL parser reads it: without blanks and control characters. "" for a `data:` URL
 * and for plain data, which may be megabytes long.
 */
const addressIn = (text: string): string =>
  /^data:/i.test(text) || !text.includes(":") ? "" : text.replace(/[\s\p{Cc}]+/gu, "");

/**
 * The path, within a part, of a reference to a file that is stored under the operator's key. Any
 * customer of the gateway may have stored that file. Empty: the part has no such reference.
 */
function storedIn(part: MediaPart): readonly string[] {
  const { type } = part;
  if (type === "file" && (part.file["file_id"] ?? null) !== null) return ["file", "file_id"];
  const address = addressIn(asString(asObject(asObject(part)[type])[ADDRESS[type]]) ?? "");
  const isStored = OTHER_SCHEME.test(address) || FILE_AT_GEMINI.test(address);
  return isStored ? [type, ADDRESS[type]] : [];
}

/** The requirements of a request, in the order in which they are reported to the client. */
export function requirementsOf(chat: ChatRequest): readonly Requirement[] {
  const { tools, tool_choice: choice, response_format: format, logprobs } = chat;
  const { clientPath = (path) => [...path] } = chat;
  const requirements: Requirement[] = [];
  const add = (
    chatPath: Lack["path"],
    isMetBy: (model: CheckedModel) => boolean,
    message = `this model does not support ${pathText(clientPath(chatPath))}`,
  ) => {
    const lack = { path: clientPath(chatPath), message };
    requirements.push((model) => (isMetBy(model) ? undefined : lack));
  };

  if (tools) add(["tools"], ({ traits }) => traits.supports.includes("tools"));
  if (choice === "required" || typeof choice === "object")
    add(
      ["tool_choice"],
      ({ traits }) => traits.tool_choice !== "auto",
      "with this model a tool cannot be forced",
    );
  if (format)
    add(
      ["response_format"],
      ({ traits }) => traits.supports.includes(format.type),
      // LangChain for Python searches for this exact phrase (wire.md "Reply format").
      `'${pathText(clientPath(["response_format"]))}' of type '${format.type}' is not ` +
        "supported with this model",
    );
  if (logprobs) add(["logprobs"], supportsLogprobs, "this model states no log probabilities");
  for (const name of MEANINGFUL)
    if (chat[name]) add([name], ({ traits }) => !traits.omit.includes(name));
  const { dialect, nativeOnly } = chat.native ?? {};
  if (nativeOnly)
    requirements.push(({ provider }) => (provider.dialect === dialect ? undefined : nativeOnly));
  const media = mediaIn(chat.messages);
  for (const kind of new Set(media.map(({ part }) => MEDIA[part.type])))
    add(
      ["messages", media.find(({ part }) => MEDIA[part.type] === kind)!.index, "content"],
      ({ traits }) => traits.supports.includes(kind),
      `this model does not take ${kind}`,
    );
  const stored = media.find(({ part }) => storedIn(part).length > 0);
  if (stored)
    add(
      ["messages", stored.index, "content", stored.at, ...storedIn(stored.part)],
      ({ traits }) => traits.passes.includes("files"),
      "this gateway does not pass on what is stored at the provider; send the data, or its " +
        "operator can allow it: 'passes' with \"files\" in the provider's settings",
    );
  return requirements;
}

/**
 * Log probabilities of hidden reasoning would leak it, so they are not offered for a model that
 * writes its reasoning into the text.
 */
const supportsLogprobs = ({ traits }: { readonly traits: Traits }): boolean =>
  traits.supports.includes("logprobs") && !traits.omit.includes("logprobs") && !traits.think_tags;

/** The media parts of a conversation. `index`: of the message. `at`: of the part within it. */
function mediaIn(messages: ChatRequest["messages"]) {
  const media: { part: MediaPart; index: number; at: number }[] = [];
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || !content) continue;
    for (const [at, part] of content.entries())
      if (part.type !== "text") media.push({ part, index, at });
  }
  return media;
}
