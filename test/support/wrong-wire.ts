// What stands between a gateway and its provider, byte by byte, and is wrong on purpose: it changes
// what the gateway asks, as a gateway would that asks so.

import net, { type AddressInfo, type Socket } from "node:net";
import type { TestContext } from "node:test";

/** What is made of the bytes of a request; they keep their number. */
export type Change = (bytes: string) => string;

export async function startWire(t: TestContext, provider: string) {
  const { hostname, port } = new URL(provider);
  const sockets = new Set<Socket>();
  let change: Change | undefined;
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (gateway) => {
    const upstream = net.connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      allowHalfOpen: true,
    });
    for (const [one, other] of [
      [gateway, upstream],
      [upstream, gateway],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.resetAndDestroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.on("end", () => other.end());
    }
    gateway.on("data", (bytes: Buffer) => {
      upstream.write(change ? Buffer.from(change(bytes.toString("latin1")), "latin1") : bytes);
    });
    upstream.on("data", (bytes: Buffer) => {
      if (gateway.write(bytes)) return;
      upstream.pause();
      gateway.once("drain", () => upstream.resume());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    sockets.forEach((socket) => {
      socket.destroy();
    });
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    turn: (next: Change | undefined) => {
      change = next;
    },
  };
}
