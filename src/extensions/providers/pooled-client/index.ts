// Calls to providers over pooled keep-alive connections, in the place of Node's fetch.
import { nullable, positive, section } from "../../../config/fields.ts";
import type { ConfigExtension } from "../../../config/extension.ts";
import { slots } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { literal, withDefault } from "../../../core/schema/checker.ts";
import { createPooledClient } from "./client.ts";

interface UpstreamSettings {
  /** "fetch": Node's own, for those who need its support of proxies. */
  readonly client: "pooled" | "fetch";
  /** At most so many connections to one origin; null: any number. */
  readonly max_connections: number | null;
}

const upstream = defineSetting<UpstreamSettings>(
  "upstream",
  { client: "pooled", max_connections: null },
  () =>
    section({
      client: withDefault(literal("pooled", "fetch"), "pooled"),
      max_connections: withDefault(nullable(positive), null),
    }),
  { fixed: true },
);

export const extension: ConfigExtension = {
  name: "pooled-client",
  settings: [upstream],
  install(gateway) {
    gateway.fill(slots.transport, ({ config, on }) => {
      const { client, max_connections } = upstream.of(config);
      if (client === "fetch") return undefined;
      const pool = createPooledClient(max_connections ?? undefined);
      on("close", pool.close);
      return pool.send;
    });
  },
};
