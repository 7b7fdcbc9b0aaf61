// Checks the bodies of requests in further APIs, and completes the schemas of their tools.
import type { ParsedBody } from "../../../core/chat/client-api.ts";
import {
  checkInSteps,
  jsonObject,
  literal,
  object,
  type Check,
  type Fields,
} from "../../../core/schema/checker.ts";
import type { Steps } from "../../../core/turns.ts";

export type Body = Readonly<Record<string, unknown>>;

/** Parts of a body are serialized again, so its depth is bounded. */
const anyBody = jsonObject();

/**
 * Checks a body, a large one in steps of a few elements of its member `list`. Throws a
 * ValidationError.
 */
export function* checkedBody<T>(
  { json, large }: ParsedBody,
  check: Check<T>,
  list: string,
  element: Check<unknown>,
): Steps<{ readonly request: T; readonly body: Body }> {
  const body = anyBody(json);
  yield;
  const request = large ? yield* checkInSteps(check, body, body[list], element) : check(body);
  return { request, body };
}

/** A check of objects whose `type` is this one. */
export const tagged = <N extends string, F extends Fields>(type: N, fields: F) =>
  object({ type: literal(type), ...fields });

/**
 * A tool's schema with the members that OpenAI requires. Tools without parameters, such as those of
 * MCP servers and Codex, often lack them. Beside a reference they would replace its own.
 */
export const completeSchema = (schema: Body): Body =>
  "$ref" in schema || ("type" in schema && "properties" in schema)
    ? schema
    : { type: "object", properties: {}, ...schema };
