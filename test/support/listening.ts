// Starts servers of tests on free ports.

import net, { type AddressInfo, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Scope } from "./scope.ts";

/** Why a test of IPv6 is skipped. False: this machine has ::1. */
export const noIpv6 = (): string | false =>
  Object.values(networkInterfaces())
    .flat()
    .every((each) => each?.address !== "::1") && "no IPv6 here";

/** Starts a server, and stops it at the end of the scope. Resolves with its address. */
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
