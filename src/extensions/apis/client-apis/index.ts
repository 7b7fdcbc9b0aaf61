// A library for the extensions that serve further client APIs, and the setting that switches them
// on.
import { apis } from "./settings.ts";

export { checkedBody, kind, type Body } from "./bodies.ts";
export { memberName, type Path } from "./error-paths.ts";
export {
  inputMessage,
  refuseResult,
  requestOf,
  resultOf,
  type Entry,
  type ToolCall,
} from "./messages.ts";
export { authorization, eventText, ifEnabled, serveApi, type ReplyEvent } from "./serving.ts";
export { apiEnabled } from "./settings.ts";

export const settings = [apis];

export function install(): void {}
