// Bounds the connections of clients, and the bytes of bodies and replies that are kept in memory.
import type { Installer } from "../../../core/extension/installer.ts";
import { integer, nullable, positive } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { slots } from "../../../core/extension/places.ts";
import type { Capacity } from "../../../core/http/connection.ts";
import { ApiError, SOON } from "../../../core/openai/errors.ts";
import { countingKept } from "./retained.ts";
import { connectionShare, heapShare } from "./shares.ts";

const maxBytes = defineSetting(
  "server.max_bytes_in_flight",
  null,
  () => nullable(integer(1024, Number.MAX_SAFE_INTEGER)),
  { fixed: true },
);
const maxConnections = defineSetting("server.max_connections", null, () => nullable(positive), {
  fixed: true,
});

export const settings = [maxBytes, maxConnections];

export function install(gateway: Installer): void {
  gateway.around(() => countingKept);
  gateway.fill(slots.capacity, (config) =>
    createCapacity(
      maxConnections.of(config) ?? connectionShare(),
      maxBytes.of(config) ?? heapShare(),
    ),
  );
}

/** The bounds of one listener. Infinity: none. */
export function createCapacity(connectionLimit: number, byteLimit: number): Capacity {
  let total = 0;
  return {
    connected(connections, count) {
      if (count <= connectionLimit) return;
      for (const { live, socket } of connections)
        if (live.size === 0) {
          socket.destroy();
          return;
        }
    },
    retain(bytes, own) {
      // Each exchange has its own bounds, so one that is alone always has room.
      const isAlone = total === own;
      if (bytes > 0 && total + bytes > byteLimit && !isAlone)
        return new ApiError("server_overloaded", "The gateway has too many large requests.", SOON);
      total += bytes;
      return undefined;
    },
  };
}
