// A library for the extensions that serve further client APIs, and the setting that switches them
// on.
import type { IncomingHttpHeaders } from "node:http";
import { defineSetting } from "../../../config/setting.ts";
import { array, literal } from "../../../core/schema/checker.ts";

export { checkedBody, kind, type Body } from "./bodies.ts";
export {
  inputMessage,
  refuseResult,
  requestOf,
  resultOf,
  type Entry,
  type Path,
  type ToolCall,
} from "./messages.ts";

/**
 * `messages`: Anthropic's Messages API. `responses`: OpenAI's Responses API. Each loads the
 * extension that serves it. Absent: none; their paths are then unknown.
 */
const apis = defineSetting("apis", [], () => array(literal("messages", "responses")), {
  fixed: true,
});

export const settings = [apis];

export function install(): void {}

/**
 * The key as an Authorization header: clients of these APIs may also have it in `x-api-key`.
 * Undefined: there is none.
 */
export function authorization(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["x-api-key"];
  return headers.authorization || (typeof key === "string" ? `Bearer ${key}` : undefined);
}

/** An event as its JSON has it. */
export interface ReplyEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** One server-sent event, whose type its JSON repeats. */
export const eventText = (event: ReplyEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
