// The tools of a request with schemas that the API of the model accepts, by the name of the model.
import type { ChatRequest, Tool } from "../../../core/openai/request.ts";
import type { Target } from "../../../core/providers/dialect.ts";
import { createInliner } from "./inlined-schema.ts";
import { kimiSchema } from "./kimi-schema.ts";
import { openaiSchema, portableSchema, withObjectSchemas, type ToolSchema } from "./tool-schema.ts";

/** The names of models whose API checks the schemas of tools with Moonshot's validator. */
const KIMI = /kimi|moonshot/i;
/** The names of OpenAI's and xAI's models, also after a vendor's name or, if tuned, `ft:`. */
const OPENAI_OR_XAI = /(^|[/.:])(gpt-|chatgpt-|o\d|grok-)/i;

/** The tools with schemas that the model's API accepts. */
export function acceptedTools(tools: ChatRequest["tools"], { upstreamModel, traits }: Target) {
  if (!tools) return undefined;
  // Mistral demands a schema also where the client stated none, and LM Studio its `properties`.
  const needsObject = traits.system_first || traits.tool_choice === "any";
  const followed = OPENAI_OR_XAI.test(upstreamModel) ? openaiSchema : portableSchema;
  const inlined = createInliner();
  const kimi = (schema: ToolSchema) => schema && kimiSchema(inlined(portableSchema(schema)));
  const accepted = KIMI.test(upstreamModel) ? kimi : followed;
  return tools.map((tool): Tool => {
    const { parameters: stated, strict } = tool.function;
    // A client that demands a strict schema learns that the model cannot follow it.
    const known = strict && accepted === followed ? stated : accepted(stated);
    const parameters = needsObject ? withObjectSchemas(known) : known;
    if (parameters === tool.function.parameters) return tool;
    return { ...tool, function: { ...tool.function, parameters } };
  });
}
