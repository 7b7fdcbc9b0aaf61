// Sockets to a provider through a proxy: asks the proxy for a connection by CONNECT, and then uses
// it like a direct one. TLS is between the gateway and the provider.
import net from "node:net";
import tls from "node:tls";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import {
  endpointOf,
  tcpOptions,
  type Connect,
  type SecureOptions,
} from "../pooled-client/index.ts";

export interface ForwardProxy {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization. Undefined: the proxy asks for none. */
  readonly authorization: string | undefined;
}

/** The most bytes of a proxy's answer. */
const MAX_HEAD_BYTES = 16 * 1024;

/** Opens sockets to an origin through this proxy. `secured`: as for endpointOf. */
export const connectThrough =
  (proxy: ForwardProxy, secured: SecureOptions) =>
  (origin: URL): Connect => {
    const { host, port, secure } = endpointOf(origin, secured);
    const authority = `${origin.hostname}:${port}`;

    return ({ follow, opened, receive, failed }, connectMs) => {
      const raw = net.connect({ host: proxy.host, port: proxy.port, ...tcpOptions(connectMs) });
      let hasAnswered = false;
      let head = Buffer.alloc(0);

      /** Until the proxy has answered, every error concerns the proxy. */
      function failBy(fault: string): void {
        if (!hasAnswered) failed(proxyError(proxy, fault));
      }

      function readHead(bytes: Buffer): void {
        head = Buffer.concat([head, bytes]);
        const end = head.indexOf("\r\n\r\n");
        if (end === -1 && head.length <= MAX_HEAD_BYTES) return;
        const fault = faultIn(head, end);
        if (fault === undefined) begin();
        else failBy(fault);
      }

      function begin(): void {
        hasAnswered = true;
        raw.off("data", readHead);
        if (secure) {
          raw.removeAllListeners("end").removeAllListeners("close").removeAllListeners("error");
          // Without a host, Node would check an IP address's certificate for the name localhost.
          follow(tls.connect({ ...secure, host, socket: raw }, opened).on("data", receive));
        } else {
          raw.on("data", receive);
          opened();
        }
      }

      raw.on("data", readHead);
      raw.on("end", () => failBy("closed the connection without an answer"));
      raw.on("error", ({ code, message }: NodeJS.ErrnoException) =>
        failBy(`cannot be reached: ${code ?? message}`),
      );
      raw.on("connect", () => raw.write(connectRequest(authority, proxy)));
      follow(raw);
    };
  };

/** The fault of an answer whose head ends at `end`. Undefined: none. A refusal may have a body. */
function faultIn(answer: Buffer, end: number): string | undefined {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString("latin1", 0, 20))?.[1];
  if (end === -1 || status === undefined) return "did not answer by HTTP";
  if (!status.startsWith("2")) return `answered with status ${status}`;
  return end + 4 < answer.length ? "did not answer by HTTP" : undefined;
}

function connectRequest(authority: string, { authorization }: ForwardProxy): string {
  const auth = authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${auth}\r\n`;
}

/** An error of the proxy, for the operator. It shows neither the password nor the proxy's text. */
const proxyError = ({ host, port }: ForwardProxy, fault: string): ProviderError =>
  new ProviderError("model_unavailable", `the proxy ${host}:${port} ${fault}`, {
    operator: "other",
  });
