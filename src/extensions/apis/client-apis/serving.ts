// Serving a further API where the configuration switches it on.
import type { IncomingHttpHeaders } from "node:http";
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { Create, Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { descriptions, type Description } from "../openapi/index.ts";
import { apiEnabled, type ApiName } from "./settings.ts";

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
