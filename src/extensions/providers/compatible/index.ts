// OpenAI's format as the many servers speak it that are compatible with it, each a little
// differently (wire.md "OpenAI-compatible providers"). It takes the place of the core's dialect
// `openai`, which reads the format only as it is documented.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Dialect, DialectDefinition } from "../../../core/providers/dialect.ts";
import { choiceIn } from "../../../core/providers/openai/decoder.ts";
import {
  openaiDialect,
  openaiDialectDefinition,
  PATH,
} from "../../../core/providers/openai/index.ts";
import { requestBody } from "../../../core/providers/openai/request.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { finishReasonOf, refusal } from "../provider-words/index.ts";
import { createCompatibleDecoder } from "./decoder.ts";
import { toolFields } from "./tool-choice.ts";
import { THINKING_SWITCHES, thinkingFields } from "./thinking.ts";

/** The tools with the client's marks for the provider's cache. */
function withToolMarks(chat: ChatRequest): ChatRequest {
  const { tools, toolMarks } = chat;
  if (!tools || !toolMarks) return chat;
  const marked = tools.map((tool) => {
    const cache_control = toolMarks.get(tool.function.name);
    return cache_control ? { ...tool, cache_control } : tool;
  });
  return { ...chat, tools: marked };
}

/** The body with those of the further fields that the provider takes. */
function withFurther(
  body: { readonly user?: unknown },
  further: ChatRequest["further"],
  takes: Traits["takes"],
): object {
  if (!further) return body;
  const taken: { [name: string]: unknown } = { ...body };
  for (const name of takes) taken[name] = further[name];
  // A provider with a field for it does not get it as `user` too.
  if (taken["safety_identifier"] === body.user) taken["user"] = undefined;
  return taken;
}

export const compatibleDialect: Dialect = {
  ...openaiDialect,
  request(chat, target) {
    const written = target.traits.cache_control ? withToolMarks(chat) : chat;
    const { takes, tool_choice, cache_header } = target.traits;
    const documented = requestBody(written, target, thinkingFields);
    const body =
      tool_choice === "all" ? documented : { ...documented, ...toolFields(written, tool_choice) };
    const hint = cache_header && chat.further?.["prompt_cache_key"];
    const headers = hint ? { [cache_header]: String(hint) } : {};
    return { path: PATH, headers, body: withFurther(body, chat.further, takes) };
  },
  isReply(json) {
    const choice = choiceIn(json);
    // A reply that the provider's filter emptied may come without a message (Azure).
    const isFiltered = finishReasonOf(choice["finish_reason"]) === "content_filter";
    return Boolean(choice["message"]) || isFiltered;
  },
  decoder: ({ traits }) => createCompatibleDecoder(traits),
  refusal,
};

export const compatibleDialectDefinition: DialectDefinition = {
  ...openaiDialectDefinition,
  thinkingSwitches: [...THINKING_SWITCHES.keys(), "none"],
  create: () => compatibleDialect,
};

export function install(gateway: Installer): void {
  gateway.fill(slots.dialect("openai"), compatibleDialectDefinition);
}
