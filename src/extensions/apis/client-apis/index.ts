// A library for the extensions that serve further client APIs, and the setting that enables them.
import type { IncomingHttpHeaders } from "node:http";
import { defineSetting } from "../../../config/setting.ts";
import { array, literal } from "../../../core/schema/checker.ts";

export { checkedBody, completeSchema, tagged, type Body } from "./bodies.ts";
export {
  inputMessage,
  messageFields,
  moveToEnd,
  refuseOrphan,
  splitResult,
  type Entry,
  type Path,
  type ToolCall,
} from "./messages.ts";
export {
  createOpener,
  createReasoningSealer,
  type Opener,
  type Sealer,
} from "./sealed-reasoning.ts";

/**
 * `messages`: Anthropic's Messages API. `responses`: OpenAI's Responses API. Each loads the
 * extension that serves it. Absent: none, and their paths are unknown (404).
 */
const apis = defineSetting("apis", [], () => array(literal("messages", "responses")), {
  fixed: true,
});

export const settings = [apis];

export function install(): void {}

/**
 * The key as an Authorization header. Clients may send it in `x-api-key` instead. Undefined: no
 * key.
 */
export function authorization(headers: IncomingHttpHeaders): string | undefined {
  const key = headers["x-api-key"];
  return headers.authorization || (typeof key === "string" ? `Bearer ${key}` : undefined);
}

/** The JSON of an event. */
export interface ReplyEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** The text of a server-sent event. Its event name is its type. */
export const eventText = (event: ReplyEvent): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
