// The requirements of a request for its model.
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { pathText } from "../../../core/schema/checker.ts";
import type { Model } from "../../../core/routing/model.ts";

export interface Requirement {
  /** The field of the request that asks for it. */
  readonly path: (string | number)[];
  /** For the client, where no model supports it. */
  readonly message: string;
  /** Whether this model supports it. One that does not is no candidate. */
  satisfiedBy(model: Pick<Model, "traits" | "provider">): boolean;
}

/**
 * A model that ignored one of these would give a reply that means something else. Other parameters
 * are left out instead.
 */
const MEANINGFUL = ["logprobs", "stop", "frequency_penalty", "presence_penalty"] as const;
const MEDIA = { image_url: "images", input_audio: "audio", file: "files" } as const;
type MediaKind = (typeof MEDIA)[keyof typeof MEDIA];

/** The requirements of a request, in the order in which they are reported to the client. */
export function requirementsOf(chat: ChatRequest): readonly Requirement[] {
  const { tools, tool_choice: choice, response_format: format, logprobs } = chat;
  const { clientPath = (path) => [...path] } = chat;
  const requirements: Requirement[] = [];
  const add = (
    chatPath: Requirement["path"],
    satisfiedBy: Requirement["satisfiedBy"],
    message = `this model does not support ${pathText(clientPath(chatPath))}`,
  ) => requirements.push({ path: clientPath(chatPath), message, satisfiedBy });

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
      // LangChain for Python looks for this very phrase (wire.md "Reply format").
      `'${pathText(clientPath(["response_format"]))}' of type '${format.type}' is not ` +
        "supported with this model",
    );
  if (logprobs) add(["logprobs"], supportsLogprobs);
  for (const name of MEANINGFUL)
    if (chat[name]) add([name], ({ traits }) => !traits.omit.includes(name));
  const { dialect, only } = chat.native ?? {};
  if (only)
    requirements.push({ ...only, satisfiedBy: ({ provider }) => provider.dialect === dialect });
  for (const [kind, index] of mediaIn(chat.messages))
    add(
      ["messages", index, "content"],
      ({ traits }) => traits.supports.includes(kind),
      `this model does not take ${kind}`,
    );
  const stored = storedFileIn(chat.messages);
  if (stored)
    add(
      stored,
      ({ traits }) => traits.passes.includes("files"),
      "this gateway does not pass on what is stored at the provider; send file_data, or its " +
        "operator can allow it: 'passes' with \"files\" in the provider's settings",
    );
  return requirements;
}

/**
 * The first file that is named by an id: it is stored under the operator's key, and any customer of
 * the gateway may have stored it.
 */
function storedFileIn(messages: ChatRequest["messages"]): (string | number)[] | undefined {
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || !content) continue;
    const part = content.findIndex((each) => each.type === "file" && "file_id" in each.file);
    if (part !== -1) return ["messages", index, "content", part, "file", "file_id"];
  }
  return undefined;
}

/**
 * Log probabilities of hidden reasoning would leak it, so a model that writes its reasoning into
 * the text has none.
 */
const supportsLogprobs = ({ traits }: { readonly traits: Traits }): boolean =>
  traits.supports.includes("logprobs") && !traits.think_tags;

/** The kinds of media in a conversation, each with the index of the first message that has it. */
function mediaIn(messages: ChatRequest["messages"]): ReadonlyMap<MediaKind, number> {
  const kinds = new Map<MediaKind, number>();
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || !content) continue;
    for (const { type } of content)
      if (type !== "text" && !kinds.has(MEDIA[type])) kinds.set(MEDIA[type], index);
  }
  return kinds;
}
