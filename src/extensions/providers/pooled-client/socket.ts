// Sockets to a provider, over TCP or TLS.
import net from "node:net";
import tls from "node:tls";
import { lookup } from "../../bounds/lookups/index.ts";

/**
 * All sockets read into this memory: no code keeps the bytes until the next read. Node would
 * allocate 64 KiB for each read, which costs more than copying the bytes that are kept.
 */
const READ_MEMORY = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * TCP probes a silent server after 15 seconds: a model may think for minutes, and the network may
 * drop an idle connection in the meantime. Of several addresses, each but the last gets two
 * seconds, or half of `connectMs` if that is less: Node's default of 250 ms is too short for a
 * server on another continent.
 */
export const tcpOptions = (connectMs: number) => ({
  lookup,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
  autoSelectFamilyAttemptTimeout: Math.ceil(Math.min(2_000, connectMs / 2)),
});

/** The events of a socket for its connection. */
export interface SocketEvents {
  /** From now on, the end, errors and close of this socket are those of the connection. */
  follow(socket: net.Socket): void;
  /** The connection is established, including its TLS handshake if it has one. */
  opened(): void;
  /** Bytes have arrived. They are valid during this call only. */
  receive(bytes: Buffer): void;
  /** The connection cannot be established. */
  failed(error: Error): void;
}

/** Opens a socket to one origin, and calls `follow` at once. `connectMs`: as for openConnection. */
export type Connect = (events: SocketEvents, connectMs: number) => void;

/** Authorities other than Node's, or a client certificate. Absent: neither. */
export type SecureOptions = Pick<tls.ConnectionOptions, "secureContext">;

/** Where an origin is. */
export interface Endpoint {
  /** A host name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Undefined: without TLS. */
  readonly secure: tls.ConnectionOptions | undefined;
}

export function endpointOf({ protocol, hostname, port }: URL, secured: SecureOptions): Endpoint {
  const isSecure = protocol === "https:";
  const host = hostname.replace(/^\[|\]$/g, ""); // an IPv6 address
  const secure: tls.ConnectionOptions = {
    ...secured,
    // RFC 6066, section 3: an IP address is not a server name.
    ...(net.isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ["http/1.1"],
  };
  return {
    host,
    port: Number(port || (isSecure ? 443 : 80)),
    secure: isSecure ? secure : undefined,
  };
}

/**
 * Connects as node:net and node:tls do by default: tries all addresses of a host, alternating
 * between both families, and verifies the certificate against the authorities of Node and
 * NODE_EXTRA_CA_CERTS, unless `secured` has others.
 */
export function connectTo(origin: URL, secured: SecureOptions = {}): Connect {
  const { host, port, secure } = endpointOf(origin, secured);

  return ({ follow, opened, receive }, connectMs) => {
    const options = {
      host,
      port,
      ...tcpOptions(connectMs),
      onread: {
        buffer: READ_MEMORY,
        callback(size: number) {
          receive(READ_MEMORY.subarray(0, size));
          return true;
        },
      },
    };
    const socket = secure
      ? tls.connect({ ...options, ...secure }, opened)
      : net.connect(options, opened);
    follow(socket);
    if (!secure) return;
    // Makes the next handshake shorter. Node reports a session only after it has verified the
    // certificate.
    socket.on("session", (session) => {
      secure.session = session;
    });
    // The session may have caused a failed handshake.
    socket.on("error", () => delete secure.session);
  };
}
