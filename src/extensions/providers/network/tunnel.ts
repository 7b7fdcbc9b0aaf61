// Sockets to a provider through a proxy: the proxy is asked for a connection by CONNECT, and the
// rest is as without it. TLS is spoken with the provider, not with the proxy.
import { EventEmitter } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Connect, ProviderSocket, SecureOptions } from "../pooled-client/index.ts";

export interface ForwardProxy {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization. Undefined: the proxy asks for none. */
  readonly authorization: string | undefined;
}

/** A proxy that never ends its answer cannot fill the memory. */
const MAX_HEAD_BYTES = 16 * 1024;

/** Opens sockets to an origin through this proxy. `secured`: as for connectTo. */
export const connectThrough =
  (proxy: ForwardProxy, secured: SecureOptions) =>
  ({ protocol, hostname, port }: URL): Connect => {
    const isSecure = protocol === "https:";
    const host = hostname.replace(/^\[|\]$/g, "");
    const usualPort = isSecure ? "443" : "80";
    const authority = `${hostname}:${port === "" ? usualPort : port}`;
    const options: tls.ConnectionOptions = {
      ...secured,
      ...(net.isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ["http/1.1"],
    };

    return (opened, receive) => {
      const raw = net.connect({ host: proxy.host, port: proxy.port, noDelay: true });
      const events = new EventEmitter();
      /** What carries the bytes: the connection to the proxy, or TLS on it. */
      let current: net.Socket = raw;
      let hasAnswered = false;
      let head = Buffer.alloc(0);

      function follow(socket: net.Socket): void {
        current = socket;
        socket.on("end", () => {
          if (hasAnswered) events.emit("end");
          else raw.destroy(refused(proxy, "closed the connection without an answer"));
        });
        socket.on("close", () => events.emit("close"));
        socket.on("error", (error) => events.emit("error", explained(error)));
      }
      /** Until the proxy has answered, whatever goes wrong is about the proxy. */
      function explained(error: NodeJS.ErrnoException): Error {
        if (hasAnswered || error instanceof ProviderError) return error;
        return refused(proxy, `cannot be reached: ${error.code ?? error.message}`);
      }

      function readHead(bytes: Buffer): void {
        head = Buffer.concat([head, bytes]);
        const end = head.indexOf("\r\n\r\n");
        if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
        const status = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString("latin1", 0, 20))?.[1];
        if (end === -1 || end + 4 < head.length || status === undefined)
          raw.destroy(refused(proxy, "did not answer by HTTP"));
        else if (!status.startsWith("2"))
          raw.destroy(refused(proxy, `answered with status ${status}`));
        else begin();
      }

      function begin(): void {
        hasAnswered = true;
        raw.off("data", readHead);
        if (!isSecure) {
          raw.on("data", receive);
          opened();
          return;
        }
        raw.removeAllListeners("end").removeAllListeners("close").removeAllListeners("error");
        const secure = tls.connect({ ...options, socket: raw }, opened);
        secure.on("data", receive);
        follow(secure);
      }

      follow(raw);
      raw.on("data", readHead);
      raw.on("connect", () => raw.write(connectRequest(authority, proxy)));
      return socketOf(events, raw, () => current);
    };
  };

const connectRequest = (authority: string, { authorization }: ForwardProxy): string =>
  [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(authorization === undefined ? [] : [`Proxy-Authorization: ${authorization}`]),
    "",
    "",
  ].join("\r\n");

/** The proxy is the operator's to mend. Neither its password nor its words are told. */
const refused = ({ host, port }: ForwardProxy, what: string): ProviderError =>
  new ProviderError("model_unavailable", `the proxy ${host}:${port} ${what}`, {
    operator: "other",
  });

/** One socket to the outside, whatever carries its bytes at the moment. */
function socketOf(
  events: EventEmitter,
  raw: net.Socket,
  current: () => net.Socket,
): ProviderSocket {
  return {
    on(event: string, listener: (error: Error) => void) {
      events.on(event, listener);
      return this;
    },
    write: (bytes) => current().write(bytes),
    destroy: () => current().destroy(),
    isPaused: () => current().isPaused(),
    pause: () => current().pause(),
    resume: () => current().resume(),
    ref: () => raw.ref(),
    unref: () => raw.unref(),
    get writableLength() {
      return current().writableLength;
    },
  };
}
