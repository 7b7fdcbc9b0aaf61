// A server of the tests' own on a free port.

import net, { type AddressInfo, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Scope } from "./scope.ts";

/** Why nothing can listen at ::1 here. False: it can. */
export const noIpv6 = (): string | false =>
  Object.values(networkInterfaces())
    .flat()
    .every((each) => each?.address !== "::1") && "no IPv6 here";

/**
 * Listens until the scope ends, which closes all connections. Resolves with the server's address.
 */
export async function listening(t: Scope, server: net.Server, host = "127.0.0.1"): Promise<string> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return `http://${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
}
