// Fields of OpenAI's chat completions beyond the contract. They are checked, kept for providers
// that accept them, translated, or refused where the reply would differ from what the client asked
// for. The manual's page "fields" lists the handling of every field.
import type { Installer } from "../../../core/extension/installer.ts";
import { hooks } from "../../../core/extension/places.ts";
import type { ChatRequest, Message } from "../../../core/openai/request.ts";
import type { Model } from "../../../core/routing/model.ts";
import { pseudonymOf } from "../../../core/providers/parameters.ts";
import { makeCheck, type Check, type JsonSchema } from "../../../core/schema/checker.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import { adaptModels } from "../../routing/capabilities/index.ts";
import { chatFields, openaiBounds } from "./fields.ts";
import { checkWithTools, refuseLegacyMessage } from "./functions.ts";
import rules from "./fields.json" with { type: "json" };

/** OpenAI's pattern of names. Any other name is ignored. */
const NAME_PATTERN = /^[^\s<|\\/>]{1,64}$/;
/** The roles whose messages may have a name. */
const ROLES_WITH_NAME: readonly unknown[] = ["system", "developer", "user", "assistant"];

export function install(gateway: Installer): void {
  gateway.on(hooks.extendRequest, withChatFields);
  gateway.on(adaptModels, assertMetadata);
}

/** Throws a ValidationError if a model would get metadata that OpenAI refuses. */
function assertMetadata(models: readonly Model[], { extras = {} }: ChatRequest): readonly Model[] {
  if (models.some(({ traits }) => traits.takes.includes("metadata"))) openaiBounds(extras);
  return models;
}

/** The check, extended by these fields. */
export function withChatFields(check: Check<ChatRequest>): Check<ChatRequest> {
  return makeCheck(schemaOf(check.schema), (json, all) => {
    const raw = asArray(asObject(json)["messages"]);
    for (const [index, message] of raw.entries()) refuseLegacyMessage(message, index);
    const fields = chatFields(json, all);
    const chat = checkWithTools(check, fields, json, all);
    const { safety_identifier: end_user } = fields;
    return Object.assign(chat, {
      messages: withNames(chat.messages, raw),
      // Most providers have only one field that identifies the end user.
      user: chat.user ?? end_user,
      extras: { ...fields, safety_identifier: end_user && pseudonymOf(end_user) },
    });
  });
}

/** Copies the `name` of each message in the JSON to the checked message. */
function withNames(messages: readonly Message[], raw: readonly unknown[]): readonly Message[] {
  if (raw.every((message) => nameIn(message) === undefined)) return messages;
  return messages.map((message, index) => {
    const name = nameIn(raw[index]);
    return name === undefined ? message : { ...message, name };
  });
}

function nameIn(message: unknown): string | undefined {
  const { role, name } = asObject(message);
  const isName = typeof name === "string" && NAME_PATTERN.test(name);
  return isName && ROLES_WITH_NAME.includes(role) ? name : undefined;
}

/** Adds these fields to the JSON Schema of a request. */
function schemaOf(schema: JsonSchema): JsonSchema {
  const properties = asObject(schema["properties"]);
  return {
    ...schema,
    properties: {
      ...properties,
      ...asObject(chatFields.schema["properties"]),
      functions: functionsSchema(asObject(properties["tools"])),
    },
    dependentSchemas: { ...asObject(schema["dependentSchemas"]), ...rules },
  };
}

/** The schema of tools, without the wrapper around each function. */
function functionsSchema({ items, ...list }: Record<string, unknown>): JsonSchema {
  return { ...list, items: asObject(asObject(items)["properties"])["function"] };
}
