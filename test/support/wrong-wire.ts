// What stands between a gateway and its provider, byte by byte, and is wrong on purpose: it changes
// what the gateway asks, as a gateway would that asks so.

import net from "node:net";
import type { TestContext } from "node:test";
import { listening } from "./listening.ts";

/** What is made of the bytes of a request; they keep their number. */
export type Change = (bytes: string) => string;

export async function startWire(t: TestContext, provider: string) {
  const { hostname, port } = new URL(provider);
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
      one.on("error", () => other.resetAndDestroy());
      one.on("close", () => other.destroy());
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
  return {
    url: await listening(t, server),
    turn: (next: Change | undefined) => {
      change = next;
    },
  };
}
