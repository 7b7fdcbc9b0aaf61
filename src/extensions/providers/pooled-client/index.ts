// Calls providers over pooled keep-alive connections, instead of Node's fetch.
import type { Installer } from "../../../core/extension/installer.ts";
import { nullable, positive, section } from "../../../config/fields.ts";
import { slots } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { literal } from "../../../core/schema/checker.ts";
import { createPooledClient } from "./client.ts";

export { createPooledClient, type PooledClient } from "./client.ts";
export { connectTo, endpointOf, tcpOptions, type Connect, type SecureOptions } from "./socket.ts";
export { maxConnections };

/** The section of these settings and of others that concern the calls. */
const upstream = defineSetting("upstream", {}, ({ extended }) => section(extended("upstream", {})));

/** "fetch": Node's own client, for operators who need its features. */
const client = defineSetting("upstream.client", "pooled", () => literal("pooled", "fetch"), {
  fixed: true,
});

/** The most connections of a client to one origin; null: any number. */
const maxConnections = defineSetting("upstream.max_connections", null, () => nullable(positive), {
  fixed: true,
});

export const settings = [upstream, client, maxConnections];

export function install(gateway: Installer): void {
  gateway.fill(slots.transport, ({ config, on }) => {
    if (client.of(config) === "fetch") return undefined;
    const pool = createPooledClient(maxConnections.of(config) ?? undefined);
    on("close", pool.close);
    return pool.send;
  });
}
