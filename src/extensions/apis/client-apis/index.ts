// A library for the extensions that serve further client APIs, and the setting that switches them
// on.
import type { IncomingHttpHeaders } from "node:http";
import { defineSetting } from "../../../config/setting.ts";
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Config } from "../../../core/config.ts";
import type { Create, Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { array, literal, type Infer } from "../../../core/schema/checker.ts";
import { descriptions, type Description } from "../openapi/index.ts";

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

/** `messages`: Anthropic's Messages API. `responses`: OpenAI's Responses API. */
const apiName = literal("messages", "responses");
type ApiName = Infer<typeof apiName>;

/** Absent: none. Their paths are then unknown. */
const apis = defineSetting("apis", [], () => array(apiName), { fixed: true });

export const settings = [apis];

export function install(): void {}

/** Whether a configuration switches this API on. */
export const apiEnabled = (config: Config, name: ApiName): boolean =>
  apis.of(config).includes(name);

/** Makes this only if the configuration switches the API on. */
export const ifEnabled =
  <T>(name: ApiName, create: Create<T>): Create<T> =>
  (context) =>
    apiEnabled(context.config, name) ? create(context) : undefined;

/** Serves the API, and describes it in /openapi.json, where the configuration switches it on. */
export function serveApi(
  gateway: Installer,
  name: ApiName,
  create: Create<ClientApi>,
  description: Description,
): void {
  gateway.fill(slots.clientApi(name), ifEnabled(name, create));
  gateway.on(descriptions, (config) => (apiEnabled(config, name) ? description : undefined));
}

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
