// A socket to a provider, over TCP or TLS, with a deadline until it is open.
import net from "node:net";
import tls from "node:tls";
import { ConnectTimeout } from "../../../core/upstream/transport.ts";

/** Where connections go. */
export interface Origin {
  /** TLS, with the certificate verified. False: TCP alone. */
  readonly secure: boolean;
  /** A name or an address, without brackets. */
  readonly host: string;
  /** The usual one of the protocol where the URL has none. */
  readonly port: number;
  /** The TLS session of an earlier connection, which makes the next handshake shorter. */
  session: Buffer | undefined;
}

export interface SocketEvents {
  /** The connection is established, and secure if it is to be. */
  open(): void;
  /** Bytes have come. They are valid during this call only. */
  bytes(bytes: Buffer): void;
  /** The server will send nothing more. */
  end(): void;
  /** The socket is closed. It may be called more than once. */
  close(error: Error): void;
}

/**
 * All sockets read into this memory: no code keeps the bytes until the next read. Node would
 * allocate 64 KiB for each read, which costs more than to copy what is kept.
 */
const READ_MEMORY = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * TCP looks after a silent server when so many milliseconds have passed: a model may think for
 * minutes, and the network may forget a connection in the meantime.
 */
const KEEP_ALIVE_MS = 15_000;

/** `connectMs`: after so many milliseconds without a connection it is closed (ConnectTimeout). */
export function openSocket(origin: Origin, connectMs: number, events: SocketEvents): net.Socket {
  const socket = connect(origin, events);
  const deadline = setTimeout(() => {
    events.close(new ConnectTimeout(`no connection within ${connectMs} ms`));
  }, connectMs);
  socket.once(origin.secure ? "secureConnect" : "connect", () => {
    clearTimeout(deadline);
    events.open();
  });
  // Node reports a session only after it has verified the certificate.
  socket.on("session", (session: Buffer) => {
    origin.session = session;
  });
  socket.on("end", events.end);
  socket.on("error", (error) => {
    origin.session = undefined; // it may be to blame for a failed handshake
    events.close(error);
  });
  socket.on("close", () => {
    clearTimeout(deadline);
    events.close(closedEarly());
  });
  return socket;
}

/**
 * What node:net and node:tls do by themselves: they try all addresses of a host, those of both
 * families side by side (RFC 8305), and verify the certificate against the authorities of Node,
 * with those of NODE_EXTRA_CA_CERTS.
 */
function connect({ secure, host, port, session }: Origin, events: SocketEvents): net.Socket {
  const options = {
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    onread: {
      buffer: READ_MEMORY,
      callback(size: number) {
        events.bytes(READ_MEMORY.subarray(0, size));
        return true;
      },
    },
  };
  if (!secure) return net.connect(options);
  return tls.connect({
    ...options,
    // RFC 6066, section 3: an address is no server name.
    ...(net.isIP(host) === 0 && { servername: host }),
    ...(session && { session }),
    ALPNProtocols: ["http/1.1"],
  });
}

/** The connection ended where it should not. */
export const closedEarly = (): NodeJS.ErrnoException =>
  Object.assign(new Error("closed before the response was complete"), { code: "ECONNRESET" });
